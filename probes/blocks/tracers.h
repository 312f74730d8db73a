/* SPDX-License-Identifier: MIT */
/*
 * What compilers call for -fsanitize-coverage=trace-pc and trace-cmp, in one table for the provider
 * and for "fastinst list".
 */
#ifndef PROBES_BLOCKS_TRACERS_H
#define PROBES_BLOCKS_TRACERS_H

/* Where a compare has what is compared: the size of the two in rdi and rsi, or one of these. */
#define OPERANDS_NONE  0
#define OPERANDS_FLOAT 32 /* or so much more: the size of the two in xmm0 and xmm1 */
#define OPERANDS_SWITCH                                                                            \
	16 /* one in rdi; rsi is the address of two words, the cases and its bits                  \
	    */

/* X(what follows __sanitizer_cov_, the kind of the probe, its operands) */
#define TRACERS(X)                                                                                 \
	X(trace_pc, FI_BLOCK, OPERANDS_NONE)                                                       \
	X(trace_cmp1, FI_COMPARE, 1)                                                               \
	X(trace_cmp2, FI_COMPARE, 2)                                                               \
	X(trace_cmp4, FI_COMPARE, 4)                                                               \
	X(trace_cmp8, FI_COMPARE, 8)                                                               \
	X(trace_const_cmp1, FI_COMPARE, 1)                                                         \
	X(trace_const_cmp2, FI_COMPARE, 2)                                                         \
	X(trace_const_cmp4, FI_COMPARE, 4)                                                         \
	X(trace_const_cmp8, FI_COMPARE, 8)                                                         \
	X(trace_cmpf, FI_COMPARE, OPERANDS_FLOAT + 4)                                              \
	X(trace_cmpd, FI_COMPARE, OPERANDS_FLOAT + 8)                                              \
	X(trace_switch, FI_COMPARE, OPERANDS_SWITCH)

#endif
