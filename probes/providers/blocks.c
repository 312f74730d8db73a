/* SPDX-License-Identifier: MIT */
/*
 * Basic blocks and compares: the calls that -fsanitize-coverage=trace-pc and trace-cmp put at each,
 * and what is compared at a compare.
 */
#include <errno.h>

#include "probes/include/fastinst/compare.h"
#include "probes/providers/calls.h"

/* The operands of a compare: the size of the two in rdi and rsi, or one of these. */
enum {
	OPERANDS_NONE = 0,
	OPERANDS_SWITCH =
		16,	     /* one in rdi; rsi: the address of two words, the cases and its bits */
	OPERANDS_FLOAT = 32, /* or so much more: the size of the two in xmm0 and xmm1 */
};

#define SWITCH_BITS 1 /* the word that has them */

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

/*
 * The functions that are called before probes are found, and from sites that are refused. They
 * change no register. In a static program its own functions are linked in place of them.
 *
 * bound_*: by the loader's choice, the address that this library itself was given. own_*: always
 * the one of this library.
 */
#define DEFINE(name, kind, operands)                                                               \
	asm(".pushsection .text\n"                                                                 \
	    ".p2align 4\n"                                                                         \
	    ".weak __sanitizer_cov_" #name "\n"                                                    \
	    ".type __sanitizer_cov_" #name ", @function\n"                                         \
	    ".hidden blocks_" #name "\n"                                                           \
	    ".globl blocks_" #name "\n"                                                            \
	    "__sanitizer_cov_" #name ":\n"                                                         \
	    "blocks_" #name ":\n"                                                                  \
	    "	endbr64\n"                                                                           \
	    "	ret\n"                                                                               \
	    ".size __sanitizer_cov_" #name ", . - __sanitizer_cov_" #name "\n"                     \
	    ".popsection\n");                                                                      \
	void bound_##name(void) __asm__("__sanitizer_cov_" #name);                                 \
	void own_##name(void) __asm__("blocks_" #name) __attribute__((visibility("hidden")));
TRACERS(DEFINE)

static const char *refuse_block(const struct object *object, const struct elf_symbols *symbols,
				const struct called *to, const void *slot)
{
	const void *tracer = to->bound;

	(void)object;
	(void)symbols;
	(void)slot;
	/* clang takes two names for two functions, and would not compare addresses. */
	asm("" : "+r"(tracer));
	return tracer != to->own ? CALLS_OWN : NULL;
}

#define CALLED(name, kind, operands)                                                               \
	{ "__sanitizer_cov_" #name, kind, operands, own_##name, bound_##name },
static const struct calls calls = {
	.provider = &blocks_provider,
	.to = { TRACERS(CALLED) },
	.offsets = true,
	.refuse = refuse_block,
};

static int discover_blocks(struct object *object, const struct elf *elf)
{
	return calls_discover(&calls, object, elf);
}

const struct provider blocks_provider = {
	.name = "blocks",
	.off_is_nop = true, /* they are in inner loops */
	.discover = discover_blocks,
	.arm = calls_arm,
	.toggled = calls_toggled,
};

/* --- What is compared: async-signal-safe, as probe functions run in signal handlers, too ----- */

/* -ENOENT: it is no compare. */
static int get_operands(uint32_t id)
{
	const struct probe *probe = probe_get(id);

	if (!probe || probe->provider != &blocks_provider || probe->kind != FI_COMPARE)
		return -ENOENT;
	return (int)(uintptr_t)probe->extra;
}

int fi_compare_args(uint32_t id)
{
	int operands = get_operands(id);

	if (operands == OPERANDS_SWITCH)
		return 1;
	if (operands > OPERANDS_FLOAT)
		return 0;
	return operands > 0 ? 2 : operands;
}

int fi_compare_float(uint32_t id)
{
	int operands = get_operands(id);

	if (operands > OPERANDS_FLOAT)
		return operands - OPERANDS_FLOAT;
	return operands < 0 ? operands : 0;
}

int fi_compare_arg(uint32_t id, const struct fi_regs *regs, unsigned number, int64_t *value)
{
	int operands = get_operands(id);
	unsigned bits = 8 * (unsigned)operands, unused;

	if (!regs || !value)
		return -EINVAL;
	if (operands < 0 || number >= (unsigned)fi_compare_args(id))
		return -ENOENT;
	if (operands == OPERANDS_SWITCH)
		bits = (unsigned)((const uint64_t *)regs->rsi)[SWITCH_BITS];
	/* The compiler says nothing of what the register holds above the operand. */
	unused = bits && bits < 64 ? 64 - bits : 0;
	*value = (int64_t)((number ? regs->rsi : regs->rdi) << unused) >> unused;
	return 0;
}
