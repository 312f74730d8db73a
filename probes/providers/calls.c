/* SPDX-License-Identifier: MIT */
/*
 * The providers of hooks, blocks and compares: their calls, which the compiler puts there.
 *
 * Off, a call is a NOP, and a tail call (a jump) a RET: one instruction for one, so any thread may
 * be running it. A tail call is turned on as a jump: the trampoline returns to the caller of the
 * function, as the RET does.
 *
 * In the middle of a function a CALL would overwrite the red zone. Where the compiler has put a
 * CALL itself the red zone is not in use.
 */
#include "probes/providers/calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <patchcore/batch.h>

#include "probes/include/fastinst/compare.h"

#define CALL   0xe8
#define JMP    0xe9
#define NOP    0x90
#define RET    0xc3
#define TEST   0xa9 /* of eax with the four bytes behind it */
#define ADDR32 0x67 /* before a CALL it makes it a byte longer, and no more */
#define SITE_5 5
#define SITE_6 6

static const uint8_t nops[][SITE_6] = { { 0x0f, 0x1f, 0x44, 0x00, 0x00 },
					{ 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00 } };
static const uint8_t rets[][SITE_6] = { { RET, 0x0f, 0x1f, 0x40, 0x00 },
					{ RET, 0x0f, 0x1f, 0x44, 0x00, 0x00 } };

/* --- Off, and probes -------------------------------------------------------------------------- */

static const uint8_t *get_off_bytes(const struct call_site *site)
{
	return (site->tail ? rets : nops)[site->len == SITE_6];
}

/* The core refuses a site that cannot be changed, by its bytes. */
static int turn_off_sites(struct object *object, const struct call_sites *sites)
{
	struct pc_op *ops = calloc(sites->n + 1, sizeof(*ops));
	size_t n = 0;

	if (!ops)
		return -ENOMEM;
	for (size_t i = 0; i < sites->n; i++) {
		const struct call_site *site = &sites->site[i];
		const uint8_t *off = get_off_bytes(site);

		if (site->reason)
			continue;
		if (object->is_file) {
			memcpy(site->at, off, site->len);
			continue;
		}
		ops[n++] = (struct pc_op){ .addr = site->at, .bytes = off, .len = site->len };
		object_note(object, site->at, site->len);
	}
	if (n) {
		object_open(1);
		site_patch(ops, n);
		object_close();
	}
	free(ops);
	return 0;
}

static int add_probe(const struct calls *calls, struct object *object, const struct call_site *site)
{
	uint64_t at = (uintptr_t)site->at - object->base - site->function->addr;
	struct probe probe = {
		.provider = calls->provider,
		.object = object,
		.kind = site->to->kind,
		.site = site->at,
		.len = site->len,
		.reason = site->reason,
		.extra = (void *)site->to->extra,
	};
	char *name = NULL;

	if (calls->by_argument)
		name = strdup(site->name);
	else if (asprintf(&name, "%s+0x%zx", site->function->name, (size_t)at) < 0)
		name = NULL;
	if (!name)
		return -ENOMEM;
	probe.name = name;
	memcpy(probe.off, get_off_bytes(site), site->len);
	return probe_add(&probe, NULL);
}

/* Refuse sites of functions that another provider counts under the same name. */
static int refuse_twice(const struct object *object, const struct call_sites *sites,
			enum fi_kind kind)
{
	struct beside beside;
	int ret = beside_find(&beside, object, kind);

	for (size_t i = 0; i < sites->n && beside.n; i++) {
		struct call_site *site = &sites->site[i];
		uintptr_t start = object->base + site->function->addr;

		if (!site->reason && site->own && site->to->kind == kind &&
		    beside_has(&beside, start, start + site->function->size))
			site->reason = CALLS_TWICE;
	}
	free(beside.site);
	return ret;
}

static int discover_calls(const struct calls *calls, struct object *object, const struct elf *elf)
{
	struct call_sites sites;
	int ret = calls_find(calls, object, elf, &sites);

	for (const struct called *to = calls->to;
	     calls->by_argument && to->function && sites.n && !ret; to++)
		ret = refuse_twice(object, &sites, to->kind);
	if (!ret)
		ret = turn_off_sites(object, &sites);
	for (size_t i = 0; i < sites.n && !ret; i++)
		ret = add_probe(calls, object, &sites.site[i]);
	calls_free(&sites);
	return ret;
}

/* The stub returns by the return address, whether it was called or jumped to. */
static int arm_call(struct probe *probe)
{
	int ret = site_arm_call(probe);
	int32_t rel;

	if (probe->off[0] == RET) {
		probe->on[0] = JMP;
		probe->on[SITE_5] = NOP;
	} else if (probe->len == SITE_6) {
		memcpy(&rel, probe->on + 1, sizeof(rel));
		rel--;
		probe->on[0] = ADDR32;
		probe->on[1] = CALL;
		memcpy(probe->on + 2, &rel, sizeof(rel));
	}
	return ret;
}

/*
 * From now on off and on share all bytes but the opcode: a change is a store of one byte, wherever
 * the site lies. Off is a TEST, which may change flags, since the compiler assumes that a call
 * does; or a RET, behind which nothing is run.
 */
static void share_operand(struct probe *probe, bool on)
{
	size_t opcode = probe->len == SITE_6 && probe->on[0] == ADDR32;

	if (!on || probe->off[opcode] == TEST)
		return;
	memcpy(probe->off, probe->on, sizeof(probe->off));
	probe->off[opcode] = probe->on[opcode] == JMP ? RET : TEST;
}

/* --- Hooks ------------------------------------------------------------------------------------ */

/*
 * Entries and exits: the calls of hooks that -finstrument-functions puts there in each function.
 *
 * They lead to the functions of that name in libc, which do nothing: nothing is lost when they are
 * turned off. Calls of hooks that the program or a library defines itself are left alone.
 * By the call at the entry the argument registers of the function hold the arguments of the call.
 */

/* Bound by the loader for this library, and so for all objects without hooks of their own. */
extern void __cyg_profile_func_enter(void *function, void *caller) __attribute__((weak));
extern void __cyg_profile_func_exit(void *function, void *caller) __attribute__((weak));

/* The object that a function lies in, by where it was loaded. */
static const void *find_object(const void *function)
{
	Dl_info info;

	return function && dladdr(function, &info) ? info.dli_fbase : NULL;
}

static struct calls hooks = {
	.provider = &hooks_provider,
	.to = { { .function = "__cyg_profile_func_enter",
		  .kind = FI_ENTRY,
		  .bound = __cyg_profile_func_enter },
		{ .function = "__cyg_profile_func_exit",
		  .kind = FI_EXIT,
		  .bound = __cyg_profile_func_exit } },
	.by_argument = true,
};

/* Not in discover(): dladdr() waits for the loader, which may wait for the core's lock. */
__attribute__((constructor)) static void find_libc_hooks(void)
{
	const void *libc = find_object(gnu_get_libc_version);

	hooks.do_nothing = libc && find_object(__cyg_profile_func_enter) == libc &&
			   find_object(__cyg_profile_func_exit) == libc;
}

static int discover_hooks(struct object *object, const struct elf *elf)
{
	return discover_calls(&hooks, object, elf);
}

const struct provider hooks_provider = {
	.name = "cyg",
	.discover = discover_hooks,
	.arm = arm_call,
};

/* --- Blocks and compares ---------------------------------------------------------------------- */

/* The calls that -fsanitize-coverage=trace-pc and trace-cmp put at each. */

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

#define CALLED(name, kind, operands)                                                               \
	{ "__sanitizer_cov_" #name, kind, operands, own_##name, bound_##name },
static const struct calls blocks = {
	.provider = &blocks_provider,
	.to = { TRACERS(CALLED) },
};

static int discover_blocks(struct object *object, const struct elf *elf)
{
	return discover_calls(&blocks, object, elf);
}

const struct provider blocks_provider = {
	.name = "blocks",
	.off_is_nop = true, /* they are in inner loops */
	.discover = discover_blocks,
	.arm = arm_call,
	.toggled = share_operand,
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
	return operands > OPERANDS_FLOAT ? 0 : operands > 0 ? 2 : operands;
}

int fi_compare_float(uint32_t id)
{
	int operands = get_operands(id);

	return operands > OPERANDS_FLOAT ? operands - OPERANDS_FLOAT : operands < 0 ? operands : 0;
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
