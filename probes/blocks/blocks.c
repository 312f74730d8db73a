/* SPDX-License-Identifier: MIT */
/*
 * Basic blocks and compares, by the calls that -fsanitize-coverage=trace-pc and trace-cmp put at
 * each. How they are found and turned off: probes/calls.
 */
#include "probes/blocks/blocks.h"

#include <stddef.h>

#include "probes/blocks/tracers.h"
#include "probes/calls/calls.h"

/*
 * What calls until probes are found, and of sites that are refused. They change no register. Where
 * all is linked statically, the program's own functions are taken in place of them.
 *
 * taken_*: by the loader's choice, the address that this library itself was given. own_*: always
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
	void taken_##name(void) __asm__("__sanitizer_cov_" #name);                                 \
	void own_##name(void) __asm__("blocks_" #name) __attribute__((visibility("hidden")));
TRACERS(DEFINE)

#define TAKEN(name, kind, operands) taken_##name,
static void (*const taken[])(void) = { TRACERS(TAKEN) };

static const char *refuse_block(const struct object *object, const struct elf_symbols *symbols,
				const struct called *to, const void *slot);

#define CALLED(name, kind, operands) { "__sanitizer_cov_" #name, kind, operands, own_##name },
static const struct calls calls = {
	.provider = &blocks_provider,
	.n = sizeof(taken) / sizeof(*taken),
	.to = { TRACERS(CALLED) },
	.offsets = true,
	.refuse = refuse_block,
};

static const char *refuse_block(const struct object *object, const struct elf_symbols *symbols,
				const struct called *to, const void *slot)
{
	void (*tracer)(void) = taken[to - calls.to];

	(void)object;
	(void)symbols;
	(void)slot;
	/* To a compiler two names are two functions: clang answers without a look. */
	asm("" : "+r"(tracer));
	if ((const void *)tracer != to->direct)
		return CALLS_OWN;
	return NULL;
}

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
