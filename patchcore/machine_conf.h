/* SPDX-License-Identifier: MIT */
/*
 * machine.conf: what a calibration found, and on which machine. Private.
 *
 * INI, read with inih. Sections and keys that the library does not need are
 * skipped, so that the calibrator may say more; what it needs must be there
 * once, be well formed and make sense.
 */
#ifndef PATCHCORE_MACHINE_CONF_H
#define PATCHCORE_MACHINE_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "patchcore/identity.h"

#define MACHINE_CONF_SCHEMA  2
#define MACHINE_CONF_STRETCH 64
#define MACHINE_CONF_BYTES   65536		  /* a larger file is refused */
#define MACHINE_CONF_WAIT    UINT64_C(1000000000) /* ticks; longer waits are refused */

struct machine_conf {
	struct identity identity;
	bool usable;	      /* [wait] usable: a wait without tears was found and proved */
	uint64_t first_wait;  /* ticks */
	uint64_t second_wait; /* ticks */
	uint64_t stretch;     /* and at least so many times the latency of the stores, 0 to 64 */
	uint64_t toggles;     /* behind these waits */
	double upper_p;	      /* upper bound on tears per toggle, 0 < p <= 1 */
	double confidence;    /* of that bound, 0.5 < c < 1 */
	unsigned window;      /* [window] bytes: 8, 16, 32 or 64 */
	double window_p;      /* upper bound on tears per store inside it beyond 8 bytes */
};

/*
 * machine_conf_parse - parse text of a known size, which must end in a NUL that
 * is not counted. 0, or -EINVAL with one line in why.
 */
int machine_conf_parse(struct machine_conf *conf, const char *text, size_t size, char *why,
		       size_t why_size);

/*
 * machine_conf_read - the same from a file. Also -ENOENT, -EACCES, -EFBIG, or
 * what open(2) and read(2) fail with.
 */
int machine_conf_read(struct machine_conf *conf, const char *path, char *why, size_t why_size);

/*
 * machine_conf_find - the path of the config in force: the first that exists
 * in the order of pc_init(). -ENOENT if there is none, -ENAMETOOLONG.
 */
int machine_conf_find(char *path, size_t size);

/*
 * machine_conf_default_path - where a calibration run by this user puts it: the
 * user's folder, or localstatedir for root. -ENOENT if there is no home.
 */
int machine_conf_default_path(char *path, size_t size);

#endif
