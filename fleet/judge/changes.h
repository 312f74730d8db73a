/* SPDX-License-Identifier: MIT */
/* What moved a kind: another microcode or hypervisor, another kernel, or time alone. */
#ifndef FLEET_JUDGE_CHANGES_H
#define FLEET_JUDGE_CHANGES_H

#include "fleet/judge/judge.h"
#include "fleet/judge/ladder_of.h"

struct fleet_change {
	const char *what; /* "microcode", "hypervisor", "kernel", "time" */
	char from[72], to[72];
	struct moved moved; /* p is not corrected for how many changes are looked at */
};

/*
 * changes_of_kind - the kind against those kinds that differ in microcode or hypervisor alone and
 * began earlier; its runs under a kernel against those under the kernel before; and its later half
 * of runs against the earlier one. What has too few machines to tell of is left out. The caller
 * frees. 0 or a negative errno.
 */
int changes_of_kind(const struct kind_report *r, struct fleet_change **changes, size_t *count);

#endif
