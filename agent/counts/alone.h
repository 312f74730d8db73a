/* SPDX-License-Identifier: MIT */
/* Whether a program whose threads have ended one by one is over. */
#ifndef AGENT_COUNTS_ALONE_H
#define AGENT_COUNTS_ALONE_H

#include <stdbool.h>

/*
 * is_program_over - the main thread has ended without the process, and no threads are left but
 * those of agents, by fi_own_thread(). The last thread of a program that ends so ends the process,
 * as exit(0) does: an agent's thread must not outlive it, and is that last thread when it returns.
 *
 * Looks once a second, however often it is called.
 */
bool is_program_over(void);

#endif
