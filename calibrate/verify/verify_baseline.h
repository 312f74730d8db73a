/* SPDX-License-Identifier: MIT */
/*
 * The looks that this one is compared with: a store of evidence (statistics/evidence.h) to which
 * every verification with --baseline adds its own.
 */
#ifndef CALIBRATE_VERIFY_VERIFY_BASELINE_H
#define CALIBRATE_VERIFY_VERIFY_BASELINE_H

#include "calibrate/verify/verify.h"
#include "patchcore/machine/cpus.h"

#define VERIFY_LOOK  "look"	 /* source of its lines */
#define VERIFY_APART (20 * 3600) /* seconds: looks that share a storm are no two looks */

/*
 * verify_baseline_add - add a look to the file, read all, and judge: v->baseline. Looks count if
 * they are at this model of CPU with as many of them and this hypervisor; its microcode and kernel
 * may have changed, for that is what moves a ladder. One that comes too soon after another is kept
 * in the file, and not ranked. 0 or a negative errno after a complaint.
 */
int verify_baseline_add(struct verify *v, const char *path, const struct cpus *cpus,
			const struct cell_record *records, size_t count);

#endif
