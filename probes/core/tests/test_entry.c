/* SPDX-License-Identifier: MIT */
/*
 * The trampoline keeps what the ABI says a call keeps, and more: all registers that carry
 * arguments, the others that a function may change, vectors in full width, mask registers, status
 * flags, the alignment of the stack; also when the probe function changes them. And trampolines
 * that forget one thing each are noticed.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "patchcore/tests/child.h"
#include "probes/core/provider.h"
#include "probes/core/tests/registers.h"
#include "probes/include/fastinst.h"
#include "probes/insn/insn.h"

void forgets_rdx(void);
void forgets_r11(void);
void forgets_flags(void);
void forgets_xmm(void);
void probe_entry(void);

#define SWAPPED 3000 /* times all flags, and until the worst was called */

asm(".pushsection .text\n"
    /* Trampolines that forget something. */
    ".globl forgets_rdx\n"
    "forgets_rdx:	xor %edx, %edx\n"
    "	jmp probe_entry\n"
    ".globl forgets_r11\n"
    "forgets_r11:	mov $1, %r11\n"
    "	jmp probe_entry\n"
    ".globl forgets_flags\n"
    "forgets_flags:	cmp %rsp, %rsp\n"
    "	jmp probe_entry\n"
    ".globl forgets_xmm\n"
    "forgets_xmm:	pxor %xmm7, %xmm7\n"
    "	jmp probe_entry\n"
    "	jmp probe_entry\n"
    ".popsection\n");

/* --- The trampoline in use -------------------------------------------------------------------- */

static void (*trampoline)(void);

void *__real_near_entry(const void *place, uint32_t id);
void *__wrap_near_entry(const void *place, uint32_t id);

void *__wrap_near_entry(const void *place, uint32_t id)
{
	return trampoline ? (void *)trampoline : __real_near_entry(place, id);
}

struct effects __real_effects_read(uintptr_t function);
struct effects __wrap_effects_read(uintptr_t function);
static enum clobbers believes; /* of all, unless it is unknown */

struct effects __wrap_effects_read(uintptr_t function)
{
	return believes ? (struct effects){ .clobbers = believes } : __real_effects_read(function);
}

/* --- A probe function that does its worst ----------------------------------------------------- */

unsigned called; /* for the assembly, as regs_seen */
static unsigned worst_called;
static _Atomic(bool) enough;
struct fi_regs regs_seen;

static void destroy_vectors(void)
{
	if (vectors == 0)
		asm volatile(".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
			     "	pcmpeqd %%xmm\\i, %%xmm\\i\n"
			     ".endr" ::
				     : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
				       "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
				       "xmm14", "xmm15");
	else
		asm volatile("vzeroall");
	if (vectors == 2)
		asm volatile(".irp i,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
			     "	vpxorq %%zmm\\i, %%zmm\\i, %%zmm\\i\n"
			     ".endr\n"
			     ".irp i,0,1,2,3,4,5,6,7\n"
			     "	kxorw %%k\\i, %%k\\i, %%k\\i\n"
			     ".endr" ::
				     : "memory");
}

static void worst(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	(void)id;
	(void)data;
	MUST(site == (void *)register_site);
	MUST(((uintptr_t)__builtin_frame_address(0) & 15) == 0);
	regs_seen = *regs;
	called++;
	worst_called++;
	destroy_vectors();
	asm volatile("mov $-1, %%rax\n mov $-1, %%rcx\n mov $-1, %%rdx\n mov $-1, %%rsi\n"
		     "mov $-1, %%rdi\n mov $-1, %%r8\n mov $-1, %%r9\n mov $-1, %%r10\n"
		     "mov $-1, %%r11\n xor %%eax, %%eax" ::
			     : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "cc",
			       "memory");
}

/* Small, and changes the first vectors and flags of MXCSR, all by SSE. */
void first_vectors(uint32_t id, void *site, const struct fi_regs *regs, void *data);

asm(".pushsection .text\n"
    ".globl first_vectors\n"
    ".type first_vectors, @function\n"
    "first_vectors:\n"
    ".irp i,0,16,32,48,64\n"
    "	movups \\i(%rdx), %xmm0\n"
    "	movups %xmm0, regs_seen+\\i(%rip)\n"
    ".endr\n"
    ".irp i,0,1,2,3,4,5,6,7\n"
    "	pcmpeqd %xmm\\i, %xmm\\i\n"
    ".endr\n"
    "	cvttss2si %xmm0, %eax\n"
    "	incl called(%rip)\n"
    "	ret\n"
    ".size first_vectors, . - first_vectors\n"
    ".popsection\n");

FI_FUNCTION static void modest(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	(void)id;
	(void)site;
	(void)data;
	/* Of a whole struct clang makes a call of memcpy(), which changes vectors. */
	for (size_t i = 0; i < sizeof(*regs) / sizeof(uint64_t); i++)
		((volatile uint64_t *)&regs_seen)[i] = ((const uint64_t *)regs)[i];
	called++;
}

/* --- Probe functions that read vectors ------------------------------------------------------- */

static double vectors_seen[8];

/* What gcc makes of it changes the first ones at most. */
static void reads(uint32_t id, void *site, const struct fi_regs *regs, void *data, double xmm0,
		  double xmm1, double xmm2, double xmm3, double xmm4, double xmm5, double xmm6,
		  double xmm7)
{
	(void)id;
	(void)site;
	(void)data;
	for (size_t i = 0; i < sizeof(*regs) / sizeof(uint64_t); i++)
		((volatile uint64_t *)&regs_seen)[i] = ((const uint64_t *)regs)[i];
	vectors_seen[0] = xmm0, vectors_seen[1] = xmm1;
	vectors_seen[2] = xmm2, vectors_seen[3] = xmm3;
	vectors_seen[4] = xmm4, vectors_seen[5] = xmm5;
	vectors_seen[6] = xmm6, vectors_seen[7] = xmm7;
	called++;
}

static void reads_and_changes(uint32_t id, void *site, const struct fi_regs *regs, void *data,
			      double xmm0, double xmm1, double xmm2, double xmm3, double xmm4,
			      double xmm5, double xmm6, double xmm7)
{
	reads(id, site, regs, data, xmm0, xmm1, xmm2, xmm3, xmm4, xmm5, xmm6, xmm7);
	called--;
	worst(id, site, regs, data);
}

/* --- All together ----------------------------------------------------------------------------- */

struct way {
	uint64_t vectors;
	fi_function *function;
	unsigned flags;
	void (*trampoline)(void);
	enum clobbers believes;
	fi_vectors_function *reader; /* in place of the function */
};

static bool saw_vectors(void)
{
	for (unsigned i = 0; i < 8; i++)
		if (memcmp(&vectors_seen[i], set.vector[i], sizeof(double)) != 0)
			return false;
	return true;
}

static void keeps_all(const void *arg)
{
	const struct way *way = arg;
	fi_function *function = way->reader ? fi_vectors(way->reader) : way->function;
	uint32_t id;

	if ((way->vectors >= 1 && !__builtin_cpu_supports("avx")) ||
	    (way->vectors == 2 && !__builtin_cpu_supports("avx512f")))
		child_skip("this processor has no such vectors");
	vectors = way->vectors;
	trampoline = way->trampoline;
	believes = way->believes;
	id = register_probe();
	run_all();
	MUST(fi_activate_how(&id, 1, function, way->flags) == 0);
	run_all();
	run_all();
	MUST(called == (function ? 18 : 0) && fi_count(id) == 18);
	MUST(!way->reader || saw_vectors());
	if (function)
		MUST(regs_seen.rax == set.general[0] && regs_seen.rcx == set.general[2] &&
		     regs_seen.rdx == set.general[3] && regs_seen.rsi == set.general[4] &&
		     regs_seen.rdi == set.general[5] && regs_seen.r8 == set.general[7] &&
		     regs_seen.r11 == set.general[10] && !(regs_seen.rsp & 7));
	MUST(fi_deactivate(id) == 0);
	run_all();
	MUST(fi_count(id) == 18);
}

/* One of each kind, and none, in turn, as fast as they can be stored. */
static void *swap_functions(void *arg)
{
	static fi_function *const functions[] = { modest, worst, NULL, worst, first_vectors };
	const uint32_t *id = arg;

	for (unsigned i = 0; !atomic_load_explicit(&enough, memory_order_relaxed); i++)
		MUST(fi_activate(*id, functions[i % 5]) == 0);
	return NULL;
}

static void keeps_all_while_it_changes(const void *arg)
{
	const struct way *way = arg;
	pthread_t thread;
	uint64_t n = 0;
	uint32_t id;

	vectors = __builtin_cpu_supports("avx") ? 1 : 0;
	believes = way->believes;
	id = register_probe();
	MUST(fi_activate(id, NULL) == 0);
	MUST(pthread_create(&thread, NULL, swap_functions, &id) == 0);
	for (; n < SWAPPED || !worst_called; n++)
		run_all();
	atomic_store_explicit(&enough, true, memory_order_relaxed);
	pthread_join(thread, NULL);
	MUST(fi_count(id) == n * 9);
}

/*
 * A function that breaks the promise to keep the vectors, the trampolines above, and a look at the
 * function that finds nothing.
 */
static void test_broken(void **state)
{
	static const struct way ways[] = {
		{ .function = worst, .flags = FI_KEEPS_VECTORS },
		{ .function = modest, .flags = FI_KEEPS_VECTORS, .trampoline = forgets_rdx },
		{ .function = modest, .flags = FI_KEEPS_VECTORS, .trampoline = forgets_r11 },
		{ .function = NULL, .trampoline = forgets_flags },
		{ .function = worst, .trampoline = forgets_xmm },
		{ .reader = reads, .trampoline = forgets_xmm },
		{ .function = worst, .believes = CLOBBERS_NONE },
		{ .function = worst, .believes = CLOBBERS_LOWER_FLAGS, .vectors = 1 },
		{ .function = first_vectors, .believes = CLOBBERS_NONE },
		{ .function = first_vectors, .believes = CLOBBERS_LOWER },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		child_must_fail(keeps_all, &ways[i]);
	child_must_fail(keeps_all_while_it_changes,
			&(const struct way){ .believes = CLOBBERS_NONE });
}

#define WAY(...)                                                                                   \
	&(const struct way)                                                                        \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		child_unit_case("counting", keeps_all, WAY(0)),
		child_unit_case("counting, zmm", keeps_all, WAY(.vectors = 2)),
		child_unit_case("worst, xmm", keeps_all, WAY(0, .function = worst)),
		child_unit_case("worst, ymm", keeps_all, WAY(1, .function = worst)),
		child_unit_case("worst, zmm", keeps_all, WAY(2, .function = worst)),
		child_unit_case("a function that keeps the vectors", keeps_all,
				WAY(1, .function = modest, .flags = FI_KEEPS_VECTORS)),
		child_unit_case("the same, without the promise", keeps_all,
				WAY(1, .function = modest)),
		child_unit_case(
			"one that changes the first vectors, xmm", keeps_all,
			WAY(0, .function = first_vectors, .believes = CLOBBERS_LOWER_FLAGS)),
		child_unit_case(
			"one that changes the first vectors, ymm", keeps_all,
			WAY(1, .function = first_vectors, .believes = CLOBBERS_LOWER_FLAGS)),
		child_unit_case(
			"one that changes the first vectors, zmm", keeps_all,
			WAY(2, .function = first_vectors, .believes = CLOBBERS_LOWER_FLAGS)),
		child_unit_case("the same, as it is seen", keeps_all,
				WAY(2, .function = first_vectors)),
		child_unit_case("one that reads vectors", keeps_all, WAY(1, .reader = reads)),
		child_unit_case("one that reads vectors, and changes the first", keeps_all,
				WAY(1, .reader = reads, .believes = CLOBBERS_LOWER_FLAGS)),
		child_unit_case("one that reads vectors, and changes them", keeps_all,
				WAY(1, .reader = reads_and_changes)),
		child_unit_case("one that reads vectors, and changes them, zmm", keeps_all,
				WAY(2, .reader = reads_and_changes)),
		child_unit_case("another function at any time", keeps_all_while_it_changes, WAY(0)),
		cmocka_unit_test(test_broken),
	};

	/* Each child of fork() begins with what was found here. */
	if (fi_init() < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
