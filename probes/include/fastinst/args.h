/* SPDX-License-Identifier: MIT */
/*
 * args: what a probe function may read at the marker that it was called for.
 *
 * All are async-signal-safe. -ENOENT: no such marker or argument; -EINVAL: a pointer is NULL.
 */
#ifndef FASTINST_ARGS_H
#define FASTINST_ARGS_H

#include <fastinst.h>

#ifdef __cplusplus
extern "C" {
#endif

/* fi_marker_args - how many arguments the marker has. */
int fi_marker_args(uint32_t id);

/*
 * fi_marker_arg - one of them, from 0. Smaller ones are extended to 64 bits by their sign.
 * @regs: what the probe function was given
 *
 * -ENOTSUP: where the compiler has put it is not understood: fi_marker_refusal() says why, and
 * returns NULL of all others.
 */
int fi_marker_arg(uint32_t id, const struct fi_regs *regs, unsigned number, int64_t *value);
const char *fi_marker_refusal(uint32_t id, unsigned number);

/*
 * fi_marker_regs - all registers as they are at the marker, by their numbers in machine code: rax,
 * rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15. At a marker, fi_regs.rsp is not the program's.
 */
int fi_marker_regs(uint32_t id, const struct fi_regs *regs, uint64_t all[16]);

#ifdef __cplusplus
}
#endif
#endif
