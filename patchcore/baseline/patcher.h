/* SPDX-License-Identifier: MIT */
/*
 * Baseline: the patcher process. Private.
 */
#ifndef PATCHCORE_BASELINE_PATCHER_H
#define PATCHCORE_BASELINE_PATCHER_H

#include <stdint.h>
#include <sys/types.h>

#include "patchcore/patchcore.h"

/* What it is asked; it answers 0 or a negative errno, an int32_t. */
struct patcher_request {
	uintptr_t addr;
	uint64_t len; /* 0: only stop all threads once */
	uint8_t bytes[PC_PATCH_MAX];
};

/*
 * patcher_run - serve requests from the socket for a process until it closes
 * its end or ends. In a child made by clone(): uses neither heap nor locks.
 */
void patcher_run(int socket, pid_t process) __attribute__((noreturn));

#endif
