/* SPDX-License-Identifier: MIT */
/*
 * A probe function may change registers, flags and vectors: behind the marker all is as
 * before it. A piece of assembly fills them from random bytes, runs a marker, and writes them down
 * again; the probe function changes all that a C function may change.
 *
 * Two broken ways show that the test can see it: a stub that forgets the flags, and a probe
 * function that changes vectors though it promised not to.
 */
#include <cpuid.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "patchcore/tests/scale.h"
#include "probes/core/core.h"
#include "probes/include/fastinst.h"
#include "probes/providers/marker.h"

enum {
	SSE = 0,
	AVX = 1,
	AVX512 = 2
};

#define FLAGS UINT64_C(0x8d5) /* CF, PF, AF, ZF, SF, OF */

/* Offsets in the assembly. rsp is not among the registers. */
struct machine {
	uint64_t regs[15];	 /* 0 */
	uint64_t flags;		 /* 120 */
	uint8_t vectors[32][64]; /* 128 */
	uint64_t masks[8];	 /* 2176 */
	uint64_t x87[2];	 /* 2240: what stands on its stack, as doubles */
	uint64_t red_zone[16];	 /* 2256 */
	uint32_t mxcsr;		 /* 2384 */
	uint32_t level;		 /* 2388 */
};

_Static_assert(offsetof(struct machine, flags) == 120, "assembly");
_Static_assert(offsetof(struct machine, vectors) == 128, "assembly");
_Static_assert(offsetof(struct machine, masks) == 2176, "assembly");
_Static_assert(offsetof(struct machine, x87) == 2240, "assembly");
_Static_assert(offsetof(struct machine, red_zone) == 2256, "assembly");
_Static_assert(offsetof(struct machine, mxcsr) == 2384, "assembly");
_Static_assert(offsetof(struct machine, level) == 2388, "assembly");

void machine_run(const struct machine *in, struct machine *out);
void machine_clobber(void);

uint32_t machine_level_now __attribute__((visibility("hidden")));

/* clang-format off */
#define EACH_16(m) m(0) m(1) m(2) m(3) m(4) m(5) m(6) m(7) m(8) m(9) m(10) m(11) m(12) m(13) m(14) m(15)
#define EACH_UP(m) m(16) m(17) m(18) m(19) m(20) m(21) m(22) m(23) m(24) m(25) m(26) m(27) m(28) m(29) m(30) m(31)
#define EACH_8(m)  m(0) m(1) m(2) m(3) m(4) m(5) m(6) m(7)
#define EACH_GPR(m) m(0, rax) m(1, rcx) m(2, rdx) m(3, rbx) m(4, rbp) m(5, rsi) m(6, r8) m(7, r9) \
	m(8, r10) m(9, r11) m(10, r12) m(11, r13) m(12, r14) m(13, r15)

#define LOAD_X(n)  "movups 128+64*" #n "(%rdi), %xmm" #n "\n"
#define LOAD_Y(n)  "vmovups 128+64*" #n "(%rdi), %ymm" #n "\n"
#define LOAD_Z(n)  "vmovups 128+64*" #n "(%rdi), %zmm" #n "\n"
#define LOAD_K(n)  "kmovq 2176+8*" #n "(%rdi), %k" #n "\n"
#define SAVE_X(n)  "movups %xmm" #n ", 128+64*" #n "(%rdi)\n"
#define SAVE_Y(n)  "vmovups %ymm" #n ", 128+64*" #n "(%rdi)\n"
#define SAVE_Z(n)  "vmovups %zmm" #n ", 128+64*" #n "(%rdi)\n"
#define SAVE_K(n)  "kmovq %k" #n ", 2176+8*" #n "(%rdi)\n"
#define LOAD_R(n, r) "mov 8*" #n "(%rdi), %" #r "\n"
#define SAVE_R(n, r) "mov %" #r ", 8*" #n "(%rdi)\n"
#define LOAD_Q(n)  "mov 2256+8*" #n "(%rdi), %rax\n mov %rax, -128+8*" #n "(%rsp)\n"
#define SAVE_Q(n)  "mov -128+8*" #n "(%rsp), %rax\n mov %rax, 2256+8*" #n "(%rdi)\n"
#define SPOIL_X(n) "pcmpeqd %xmm" #n ", %xmm" #n "\n"
#define SPOIL_Y(n) "vpcmpeqd %ymm" #n ", %ymm" #n ", %ymm" #n "\n"
#define SPOIL_Z(n) "vpternlogd $255, %zmm" #n ", %zmm" #n ", %zmm" #n "\n"
#define SPOIL_K(n) "kxnorq %k" #n ", %k" #n ", %k" #n "\n"

/* rdi, which has the address, goes through its place in the structure and the flags by the stack. */
asm(".pushsection .text\n"
    ".globl machine_run\n"
    ".type machine_run, @function\n"
    "machine_run:\n"
    "	push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n push %rsi\n"
    "	stmxcsr -4(%rsp)\n mov -4(%rsp), %eax\n push %rax\n"
    "	fldl 2240(%rdi)\n fldl 2248(%rdi)\n"
    "	ldmxcsr 2384(%rdi)\n"
    "	cmpl $1, 2388(%rdi)\n"
    "	jb 1f\n je 2f\n"
    	EACH_16(LOAD_Z) EACH_UP(LOAD_Z) EACH_8(LOAD_K)
    "	jmp 3f\n"
    "1:\n" EACH_16(LOAD_X)
    "	jmp 3f\n"
    "2:\n" EACH_16(LOAD_Y)
    "3:	pushq 120(%rdi)\n popfq\n"
    	EACH_16(LOAD_Q) EACH_GPR(LOAD_R)
    "	mov 112(%rdi), %rdi\n"
    "990:	nop\n .byte 0x0f, 0x1f, 0x44, 0x00, 0x08\n"
    /* The marker's note, by hand. */
    ".pushsection .note.stapsdt,\"\",\"note\"\n"
    "	.balign 4\n"
    "	.4byte 8, 994f-993f, 3\n"
    "	.asciz \"stapsdt\"\n"
    "993:	.8byte 990b, 0, 0\n"
    "	.asciz \"unit\"\n"
    "	.asciz \"machine\"\n"
    "	.asciz \"\"\n"
    "994:	.balign 4\n"
    ".popsection\n"
    "	xchg %rdi, 8(%rsp)\n" /* out, and there the value of rdi */
    	EACH_GPR(SAVE_R)
    	EACH_16(SAVE_Q)
    "	pushfq\n popq 120(%rdi)\n"
    "	mov 8(%rsp), %rax\n mov %rax, 112(%rdi)\n"
    "	stmxcsr 2384(%rdi)\n"
    "	fstpl 2248(%rdi)\n fstpl 2240(%rdi)\n"
    "	mov machine_level_now(%rip), %eax\n mov %eax, 2388(%rdi)\n"
    "	cmp $1, %eax\n"
    "	jb 1f\n je 2f\n"
    	EACH_16(SAVE_Z) EACH_UP(SAVE_Z) EACH_8(SAVE_K)
    "	vzeroupper\n"
    "	jmp 3f\n"
    "1:\n" EACH_16(SAVE_X)
    "	jmp 3f\n"
    "2:\n" EACH_16(SAVE_Y)
    "	vzeroupper\n"
    "3:	ldmxcsr (%rsp)\n"
    "	pop %rax\n pop %rsi\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n"
    "	ret\n"
    ".size machine_run, . - machine_run\n"

    ".globl machine_clobber\n"
    ".type machine_clobber, @function\n"
    "machine_clobber:\n"
    "	cmpl $1, machine_level_now(%rip)\n"
    "	jb 1f\n je 2f\n"
    	EACH_16(SPOIL_Z) EACH_UP(SPOIL_Z) EACH_8(SPOIL_K)
    "	jmp 3f\n"
    "1:\n" EACH_16(SPOIL_X)
    "	jmp 3f\n"
    "2:\n" EACH_16(SPOIL_Y)
    "3:	fldpi\n fldpi\n fldpi\n fldpi\n fldpi\n fldpi\n fldpi\n fldpi\n"
    "	fstp %st(0)\n fstp %st(0)\n fstp %st(0)\n fstp %st(0)\n"
    "	fstp %st(0)\n fstp %st(0)\n fstp %st(0)\n fstp %st(0)\n"
    "	mov $-1, %rax\n mov %rax, %rcx\n mov %rax, %rdx\n mov %rax, %rsi\n mov %rax, %rdi\n"
    "	mov %rax, %r8\n mov %rax, %r9\n mov %rax, %r10\n mov %rax, %r11\n"
    "	pushfq\n xorq $0x8d5, (%rsp)\n popfq\n"
    "	ret\n"
    ".size machine_clobber, . - machine_clobber\n"

    /* Calls as a stub does, and comes back with other flags. */
    ".globl machine_forgets_flags\n"
    ".type machine_forgets_flags, @function\n"
    "machine_forgets_flags:\n"
    "	push 8(%rsp)\n"
    "	call 1f\n"
    "	lea 8(%rsp), %rsp\n"
    "	test %rsp, %rsp\n"
    "	ret $136\n"
    "1:	push 8(%rsp)\n"
    "	jmp probe_entry\n"
    ".size machine_forgets_flags, . - machine_forgets_flags\n"
    ".popsection\n");
/* clang-format on */

void machine_forgets_flags(void);

static uint32_t level_here(void)
{
	unsigned a, b, c, d, low, high;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return SSE;
	asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	if ((low & 6) != 6 || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX2))
		return SSE;
	return (low & 0xe6) == 0xe6 && b & bit_AVX512F && b & bit_AVX512BW ? AVX512 : AVX;
}

static uint64_t random_word(void)
{
	static uint64_t x = 88172645463325252;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

static void fill(struct machine *in)
{
	const double numbers[2] = { (double)(random_word() % 1000) + 0.25, -3.5 };

	for (size_t i = 0; i < sizeof(*in) / 8; i++)
		((uint64_t *)in)[i] = random_word();
	memcpy(in->x87, numbers, sizeof(numbers));
	/* Reserved bits as they are; interrupts cannot be turned off from here anyway. */
	in->flags = (in->flags & FLAGS) | 0x202;
	in->mxcsr = random_word() % 2 ? 0x1f80 : 0x7f80;
	in->level = machine_level_now;
}

/* What the level does not have is not compared. */
static bool same(const struct machine *in, const struct machine *out)
{
	size_t width = machine_level_now == AVX512 ? 64 : machine_level_now == AVX ? 32 : 16;
	unsigned vectors = machine_level_now == AVX512 ? 32 : 16;
	bool equal = memcmp(in->regs, out->regs, sizeof(in->regs)) == 0 &&
		     ((in->flags ^ out->flags) & FLAGS) == 0 && in->mxcsr == out->mxcsr &&
		     memcmp(in->x87, out->x87, sizeof(in->x87)) == 0 &&
		     memcmp(in->red_zone, out->red_zone, sizeof(in->red_zone)) == 0;

	for (unsigned i = 0; i < vectors; i++)
		equal &= memcmp(in->vectors[i], out->vectors[i], width) == 0;
	if (machine_level_now == AVX512)
		equal &= memcmp(in->masks, out->masks, sizeof(in->masks)) == 0;
	return equal;
}

static unsigned differences(unsigned runs)
{
	static struct machine in, out;
	unsigned found = 0;

	for (unsigned i = 0; i < runs; i++) {
		fill(&in);
		memset(&out, 0, sizeof(out));
		machine_run(&in, &out);
		found += !same(&in, &out);
	}
	return found;
}

static void clobber(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	(void)id;
	(void)site;
	(void)regs;
	(void)data;
	machine_clobber();
}

static uint32_t id;

static int start(void **state)
{
	(void)state;
	machine_level_now = level_here();
	assert_int_equal(fi_init(), 0);
	assert_int_equal(fi_find("unit.machine", &id, 1), 1);
	return 0;
}

static unsigned runs(void)
{
	return (unsigned)(1000 * test_scale()) + 16;
}

static void off(void **state)
{
	(void)state;
	assert_int_equal(differences(runs()), 0);
}

static void counted(void **state)
{
	(void)state;
	assert_int_equal(fi_activate(id, NULL), 0);
	assert_int_equal(differences(runs()), 0);
	assert_int_equal(fi_count(id), runs());
	assert_int_equal(fi_deactivate(id), 0);
}

static void all_changed(void **state)
{
	(void)state;
	for (uint32_t level = SSE; level <= level_here(); level++) {
		machine_level_now = level;
		assert_int_equal(fi_activate(id, clobber), 0);
		assert_int_equal(differences(runs()), 0);
		assert_int_equal(fi_deactivate(id), 0);
	}
}

static void forgotten_vectors_are_seen(void **state)
{
	(void)state;
	machine_level_now = level_here();
	assert_int_equal(fi_activate_how(&id, 1, clobber, FI_KEEPS_VECTORS), 0);
	assert_true(differences(runs()) > 0);
	assert_int_equal(fi_deactivate(id), 0);
	assert_int_equal(differences(runs()), 0);
}

/* Another stub, with another address to call, in place of the one of the marker. */
static void forgotten_flags_are_seen(void **state)
{
	void (*entry)(void) = machine_forgets_flags;
	uint8_t code[STUB_BYTES], *stub;
	struct probe *probe;

	(void)state;
	assert_int_equal(core_lock(), 0);
	probe = probe_get(id);
	stub = near_alloc(probe->object, STUB_BYTES);
	assert_non_null(stub);
	assert_int_equal(stub_make(code, stub, id, probe->site + probe->len), 0);
	memcpy(code + STUB_BYTES - sizeof(entry), &entry, sizeof(entry));
	assert_int_equal(near_write(stub, code, sizeof(code)), 0);
	assert_int_equal(site_rel32(probe->on, 0xe9, probe->site, stub), 0);
	core_unlock();
	assert_int_equal(fi_activate(id, clobber), 0);
	assert_true(differences(runs()) > 0);
	assert_int_equal(fi_deactivate(id), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(off),
		cmocka_unit_test(counted),
		cmocka_unit_test(all_changed),
		cmocka_unit_test(forgotten_vectors_are_seen),
		cmocka_unit_test(forgotten_flags_are_seen),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
