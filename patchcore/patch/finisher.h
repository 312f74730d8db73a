/* SPDX-License-Identifier: MIT */
/*
 * The thread that finishes what was started. Private; the public half is
 * pc_finisher_start() and pc_finisher_stop().
 */
#ifndef PATCHCORE_PATCH_FINISHER_H
#define PATCHCORE_PATCH_FINISHER_H

/* finisher_wake - something was started: if it sleeps, it shall not. */
void finisher_wake(void);

/* finisher_forked - in the child of fork(): there is none here. */
void finisher_forked(void);

#endif
