/* SPDX-License-Identifier: MIT */
/*
 * What a probe function may ask of the compare that it was called for. Async-signal-safe: probe
 * functions run in signal handlers, too.
 */
#include <errno.h>

#include "probes/blocks/blocks.h"
#include "probes/blocks/tracers.h"
#include "probes/include/fastinst/compare.h"

#define SWITCH_BITS 1 /* the word that has them */

/* -ENOENT: it is no compare. */
static int operands_of(uint32_t id)
{
	const struct probe *probe = probe_get(id);

	if (!probe || probe->provider != &blocks_provider || probe->kind != FI_COMPARE)
		return -ENOENT;
	return (int)(uintptr_t)probe->extra;
}

int fi_compare_args(uint32_t id)
{
	int operands = operands_of(id);

	if (operands == OPERANDS_SWITCH)
		return 1;
	if (operands > OPERANDS_FLOAT)
		return 0;
	return operands > 0 ? 2 : operands;
}

int fi_compare_float(uint32_t id)
{
	int operands = operands_of(id);

	if (operands > OPERANDS_FLOAT)
		return operands - OPERANDS_FLOAT;
	return operands < 0 ? operands : 0;
}

/* The compiler says nothing of what the register holds above the operand. */
static int64_t extended(uint64_t value, unsigned bits)
{
	unsigned unused = bits && bits < 64 ? 64 - bits : 0;

	return (int64_t)(value << unused) >> unused;
}

int fi_compare_arg(uint32_t id, const struct fi_regs *regs, unsigned number, int64_t *value)
{
	int operands = operands_of(id);
	unsigned bits = 8 * (unsigned)operands;

	if (!regs || !value)
		return -EINVAL;
	if (operands < 0 || number >= (unsigned)fi_compare_args(id))
		return -ENOENT;
	if (operands == OPERANDS_SWITCH)
		bits = (unsigned)((const uint64_t *)regs->rsi)[SWITCH_BITS];
	*value = extended(number ? regs->rsi : regs->rdi, bits);
	return 0;
}
