/* SPDX-License-Identifier: MIT */
/* Threads of a cell that run into a guard, or get a signal. Of this room. */
#ifndef STRESS_PROTOCOL_TRAP_H
#define STRESS_PROTOCOL_TRAP_H

/*
 * signal_threads - send a signal to every other thread, and wait until each has handled it: how
 * many were inside a site, behind its first byte. Or a negative errno.
 */
int signal_threads(void);

#endif
