/* SPDX-License-Identifier: MIT */
/*
 * Choosing the library's policy, with the reason where it is refused.
 */
#ifndef BENCH_METHOD_POLICY_H
#define BENCH_METHOD_POLICY_H

#include "patchcore/patchcore.h"

/*
 * bench_set_policy - pc_set_policy(). 0, or a negative errno and bench_policy_refused(). Auto is
 * never refused: without any safe policy there are still words and calls.
 */
int bench_set_policy(enum pc_policy policy, char *why);

/* bench_policy_refused - why the library will not, in BENCH_WHY bytes. Auto: what the library says.
 */
void bench_policy_refused(enum pc_policy policy, char *why);

#endif
