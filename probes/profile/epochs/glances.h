/* SPDX-License-Identifier: MIT */
/*
 * Where the program spends its time: one glance per epoch, see probes/profile/sample/glance.h.
 *
 * Of the caller who has the lock of epochs.
 */
#ifndef PROBES_PROFILE_EPOCHS_GLANCES_H
#define PROBES_PROFILE_EPOCHS_GLANCES_H

#include <stdint.h>

#include "probes/profile/estimate/share.h"

/* At an address, in ticks that the program would have taken without probes and with all its CPUs.
 */
struct glanced {
	uint64_t at; /* 0: not known */
	double ticks[SHARE_GROUPS];
};

/* glances_look - one glance. What was off stays on until glances_settle(). */
void glances_look(void);

/* glances_settle - what no window has turned on since is off again. */
void glances_settle(void);

/* glances_list - those that there are, the unknown one first. glances_forget - there was none. */
const struct glanced *glances_list(uint32_t *n);
void glances_forget(void);

#endif
