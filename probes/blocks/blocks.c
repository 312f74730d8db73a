/* SPDX-License-Identifier: MIT */
/*
 * Basic blocks, by the calls that -fsanitize-coverage=trace-pc puts at each. How they are found and
 * turned off: probes/calls.
 */
#include "probes/blocks/blocks.h"

#include <stddef.h>

#include "probes/calls/calls.h"

/* What calls until probes are found, and of sites that are refused. It changes no register. */
asm(".pushsection .text\n"
    ".p2align 4\n"
    ".globl __sanitizer_cov_trace_pc\n"
    ".type __sanitizer_cov_trace_pc, @function\n"
    ".hidden blocks_trace\n"
    ".globl blocks_trace\n"
    "__sanitizer_cov_trace_pc:\n"
    "blocks_trace:\n"
    "	endbr64\n"
    "	ret\n"
    ".size __sanitizer_cov_trace_pc, . - __sanitizer_cov_trace_pc\n"
    ".popsection\n");

/* By this name always the one of this library. */
void blocks_trace(void) __attribute__((visibility("hidden")));

static const char *refuse(const struct object *object, const struct elf_symbols *symbols,
			  const char *function, const void *slot)
{
	void (*tracer)(void) = __sanitizer_cov_trace_pc;

	(void)object;
	(void)symbols;
	(void)function;
	(void)slot;
	/*
	 * By the loader's choice: the address that this library itself was given. To a compiler two
	 * names are two functions: clang answers without a look.
	 */
	asm("" : "+r"(tracer));
	if (tracer != blocks_trace)
		return "the program, or a library, has a __sanitizer_cov_trace_pc of its own";
	return NULL;
}

static const struct calls calls = {
	.provider = &blocks_provider,
	.n = 1,
	.to = { { "__sanitizer_cov_trace_pc", FI_BLOCK } },
	.direct = blocks_trace,
	.offsets = true,
	.refuse = refuse,
};

static int discover(struct object *object, const void *image, size_t size)
{
	return calls_discover(&calls, object, image, size);
}

const struct provider blocks_provider = {
	.name = "blocks",
	.off_is_nop = true, /* they are in inner loops */
	.discover = discover,
	.arm = calls_arm,
};
