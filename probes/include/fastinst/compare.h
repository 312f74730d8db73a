/* SPDX-License-Identifier: MIT */
/*
 * What is compared at a probe on a compare or a switch, which -fsanitize-coverage=trace-cmp leaves.
 *
 * For probe functions, with the id and the registers that these are given. Async-signal-safe. 0 or
 * a number, -ENOENT: there is no such compare, or it has fewer operands, -EINVAL: a pointer is
 * NULL.
 */
#ifndef FASTINST_COMPARE_H
#define FASTINST_COMPARE_H

#include <stdint.h>

#include <fastinst.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * fi_compare_args - how many operands can be read at a compare: two; one at a switch; 0 where they
 * are floating point.
 *
 * fi_compare_float - 4 where two of float are compared, 8 of double, else 0. These are in xmm0 and
 * xmm1, which fi_vectors() has a probe function given.
 *
 * fi_compare_arg - one of them, from 0, extended to 64 bits by its sign. Where the compiler knows
 * one of the two as a constant, it is the first. At a switch it is what selects the case.
 */
int fi_compare_args(uint32_t id);
int fi_compare_float(uint32_t id);
int fi_compare_arg(uint32_t id, const struct fi_regs *regs, unsigned number, int64_t *value);

#ifdef __cplusplus
}
#endif
#endif
