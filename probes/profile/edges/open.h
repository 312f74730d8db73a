/* SPDX-License-Identifier: MIT */
/* Code whose pages stay writable: turning probes on and off there costs no system call. */
#ifndef PROBES_PROFILE_EDGES_OPEN_H
#define PROBES_PROFILE_EDGES_OPEN_H

#include "probes/include/fastinst.h"

/* Probes of one object that come one behind the other. */
struct open_range {
	const char *object;
	uintptr_t from, to;
};

/*
 * open_note - one more; *range begins as zeros. Where another object begins the range before is
 * opened. open_end - the last one is, too. Where it is refused each change costs what it costs.
 */
void open_note(struct open_range *range, const struct fi_probe *probe);
void open_end(struct open_range *range);

/* open_close_all - they get the protection back that they had. Negative errno: some did not. */
int open_close_all(void);

#endif
