/* SPDX-License-Identifier: MIT */
/*
 * Functions of each shape: those that can be moved compute what they did and are counted exactly,
 * also while they are turned on and off under threads that run them; the others are refused, each
 * for its reason. Moved without looking at what they refer to, they compute something else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka wants these first. */
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probes/entries/survey.h"
#include "probes/include/fastinst.h"

#define FUNCTION(name, body)                                                                       \
	".globl " name "\n.type " name ", @function\n.p2align 4\n" name ":\n" body ".size " name   \
	", . - " name "\n"

/* A switch of ten cases; 7 gives 57, what is above 9 gives 0. */
#define CHECK	 "	cmp $9, %edi\n	ja 9f\n"
#define WIDEN	 "	mov %edi, %edi\n"
#define TABLE	 "	lea 8f(%rip), %rdx\n"
#define DISTANCE "	movslq (%rdx,%rdi,4), %rax\n	add %rdx, %rax\n"
#define CASES(to)                                                                                  \
	"	notrack jmp *%rax\n7:	lea 50(%rdi), %rax\n	ret\n9:	xor %eax, %eax\n	"                    \
	"ret\n" TABLE_OF(to, ".rodata")
#define TABLE_OF(to, section)                                                                      \
	".pushsection " section "\n	.balign 4\n8:	.rept 7\n	.long 9b - 8b\n	.endr\n"               \
	"	.long " to " - 8b\n	.rept 2\n	.long 9b - 8b\n	.endr\n.popsection\n"
#define SWITCH(name, before) FUNCTION(name, before CASES("7b"))

/* clang-format off */
asm(".pushsection .text\n"
    FUNCTION("s_target", "	lea 100(%rdi), %rax\n	nopl 8(%rax)\n	ret\n")
    FUNCTION("s_relative", "	mov s_value(%rip), %rax\n	add %rdi, %rax\n	ret\n")
    FUNCTION("s_branch", "	test %edi, %edi\n	je 1f\n	mov $2, %eax\n	ret\n1:	mov $1, %eax\n	ret\n")
    FUNCTION("s_short", "	mov %rdi, %rax\n	ret\n")
    FUNCTION("s_tail", "	jmp s_target\n")
    FUNCTION("s_endbr", "	endbr64\n	lea 1(%rdi), %rax\n	add $1, %rax\n	ret\n")
    FUNCTION("s_red", "	mov %rdi, -8(%rsp)\n	mov -8(%rsp), %rax\n	ret\n")
    ".p2align 4\n	.fill 6, 1, 0xcc\n"
    ".globl s_cross\n.type s_cross, @function\n"
    "s_cross:	lea 3(%rdi), %rax\n	add $4, %rax\n	ret\n.size s_cross, . - s_cross\n"
    FUNCTION("s_loop", "	add %rdi, %rax\n	dec %edi\n	jne s_loop\n	ret\n")
    FUNCTION("s_again", "	mov %rdi, %rax\n1:	add $1, %rax\n	cmp $10, %rax\n	jl 1b\n	ret\n")
    FUNCTION("s_call", "	sub $8, %rsp\n	call s_target\n	add $8, %rsp\n	ret\n")
    FUNCTION("s_switch", "	lea 2f(%rip), %rdx\n	movslq (%rdx,%rdi,4), %rax\n	add %rdx, %rax\n	jmp *%rax\n"
	     "2:	.long 1f - 2b\n1:	ret\n")
    SWITCH("s_table", CHECK TABLE WIDEN DISTANCE)
    SWITCH("s_table_kept", TABLE "1:	test %edi, %edi\n	je 9f\n	cmp $1000, %edi\n	je 1b\n"
	   CHECK WIDEN DISTANCE)
    SWITCH("s_table_below", "	cmp $10, %edi\n	jb 1f\n	jmp 9f\n1:" TABLE "	nopw 100(%rax)\n" WIDEN DISTANCE)
    SWITCH("s_table_byte", TABLE "	cmp $9, %dil\n	ja 9f\n	movzbl %dil, %edi\n" DISTANCE)
    SWITCH("s_table_memory", "	mov %rdi, -8(%rsp)\n	cmpl $9, -8(%rsp)\n	ja 9f\n	movl $1, -16(%rsp)\n" TABLE
	   "	mov -8(%rsp), %edi\n" DISTANCE)
    SWITCH("s_table_unchecked", TABLE WIDEN DISTANCE)
    SWITCH("s_table_signed", "	cmp $9, %edi\n	jg 9f\n" TABLE WIDEN DISTANCE)
    SWITCH("s_table_wide", CHECK TABLE DISTANCE)
    SWITCH("s_table_another", "	cmp $9, %esi\n	ja 9f\n" TABLE WIDEN DISTANCE)
    SWITCH("s_table_changed", CHECK TABLE WIDEN "	lea 1(%rdi), %edi\n" DISTANCE)
    SWITCH("s_table_flags", "	cmp $9, %edi\n	test %esi, %esi\n	ja 9f\n" TABLE WIDEN DISTANCE)
    SWITCH("s_table_joined", "	test %esi, %esi\n	js 1f\n" CHECK "1:" TABLE WIDEN DISTANCE)
    SWITCH("s_table_stored", "	mov %rdi, -8(%rsp)\n	cmpl $9, -8(%rsp)\n	ja 9f\n	movl $99, -6(%rsp)\n" TABLE
	   "	mov -8(%rsp), %edi\n" DISTANCE)
    SWITCH("s_table_called", CHECK "	call s_target\n" TABLE WIDEN DISTANCE)
    SWITCH("s_table_two", TABLE "	test %esi, %esi\n	je 1f\n	lea s_target(%rip), %rdx\n1:" CHECK WIDEN DISTANCE)
    FUNCTION("s_table_between", CHECK TABLE WIDEN DISTANCE CASES("7b + 1"))
    FUNCTION("s_table_writable", CHECK TABLE WIDEN DISTANCE
	     "	notrack jmp *%rax\n7:	lea 50(%rdi), %rax\n	ret\n9:	xor %eax, %eax\n	ret\n" TABLE_OF("7b", ".data"))
    /* Taken, were it not for where they lead. */
    FUNCTION("s_table_into", "	nop\n1:" CHECK TABLE WIDEN DISTANCE CASES("1b"))
    FUNCTION("s_table_entry", CHECK TABLE WIDEN DISTANCE CASES("s_table_entry"))
    FUNCTION("s_tiny", "	ret\n")
    ".byte 0xc3\n"
    /* What another function jumps into. */
    FUNCTION("s_entered", "	mov %edi, %eax\n1:	add $1, %eax\n	cmp $1, %eax\n	ret\n")
    FUNCTION("s_enters", "	mov $5, %eax\n	nopl (%rax)\n	jmp s_entered + 2\n")
    ".popsection\n");
/* clang-format on */

unsigned long s_value = 1000;

typedef unsigned long sample(unsigned long x);
sample s_target, s_relative, s_branch, s_short, s_tail, s_endbr, s_red, s_cross, s_loop, s_again,
	s_call, s_enters, s_table, s_table_kept, s_table_below, s_table_byte, s_table_memory;

static const struct {
	const char *name;
	sample *run;
	unsigned long plus; /* what it gives for 7, less 7 */
} movable[] = {
	{ "s_target", s_target, 100 },
	{ "s_relative", s_relative, 1000 },
	{ "s_branch", s_branch, -5ul },
	{ "s_short", s_short, 0 },
	{ "s_tail", s_tail, 100 },
	{ "s_endbr", s_endbr, 2 },
	{ "s_red", s_red, 0 },
	{ "s_cross", s_cross, 7 },
	{ "s_table", s_table, 50 },
	{ "s_table_kept", s_table_kept, 50 },
	{ "s_table_below", s_table_below, 50 },
	{ "s_table_byte", s_table_byte, 50 },
	{ "s_table_memory", s_table_memory, 50 },
};
#define MOVABLE (sizeof(movable) / sizeof(*movable))

static uint32_t ids[MOVABLE];
static bool forgets;

int __real_survey_move(const struct survey_site *site, uint64_t from, uint64_t to,
		       uint8_t moved[SURVEY_ROOM]);
int __wrap_survey_move(const struct survey_site *site, uint64_t from, uint64_t to,
		       uint8_t moved[SURVEY_ROOM]);

/* Bytes are bytes. */
int __wrap_survey_move(const struct survey_site *site, uint64_t from, uint64_t to,
		       uint8_t moved[SURVEY_ROOM])
{
	if (!forgets)
		return __real_survey_move(site, from, to, moved);
	memcpy(moved, site->code, site->len);
	return site->len;
}

/* It is, and what is turned on here is no part of it. */
bool __wrap_object_is_own(const void *object);

bool __wrap_object_is_own(const void *object)
{
	(void)object;
	return false;
}

static int wrong(void)
{
	int n = 0;

	for (size_t i = 0; i < MOVABLE; i++)
		n += movable[i].run(7) != 7 + movable[i].plus;
	return n;
}

static int find(void **state)
{
	(void)state;
	if (fi_take_entries("") || fi_init())
		return -1;
	for (size_t i = 0; i < MOVABLE; i++)
		ids[i] = UINT32_MAX;
	for (size_t i = 0; i < MOVABLE; i++)
		fi_find(movable[i].name, &ids[i], 1);
	return 0;
}

static void skip_without_decoder(void)
{
	if (!fi_probes())
		skip();
}

static void test_moved(void **state)
{
	struct fi_probe probe;

	(void)state;
	skip_without_decoder();
	for (size_t i = 0; i < MOVABLE; i++) {
		assert_int_equal(fi_get(ids[i], &probe), 0);
		assert_string_equal(probe.provider, "entries");
		assert_int_equal(probe.kind, FI_ENTRY);
	}
	for (int round = 0; round < 3; round++) {
		uint64_t before[MOVABLE];

		for (size_t i = 0; i < MOVABLE; i++)
			before[i] = fi_count(ids[i]);
		assert_int_equal(fi_activate_batch(ids, MOVABLE, NULL), 0);
		for (int k = 0; k < 100; k++)
			assert_int_equal(wrong(), 0);
		for (size_t i = 0; i < MOVABLE; i++) {
			/* s_tail leads to s_target. */
			assert_int_equal(fi_count(ids[i]) - before[i], i ? 100 : 200);
			assert_int_equal(*(uint8_t *)(uintptr_t)movable[i].run ==
						 (strcmp(movable[i].name, "s_endbr") ? 0xe9 : 0xf3),
					 1);
		}
		assert_int_equal(fi_deactivate_batch(ids, MOVABLE), 0);
		assert_int_equal(wrong(), 0);
		assert_int_equal(fi_count(ids[1]) - before[1], 100);
	}
}

static uint64_t seen;

static void on_call(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	(void)id;
	(void)site;
	(void)data;
	/* The argument, and what rsp points at: the return address, into this program. */
	seen += regs->rdi == 7 && *(uint64_t *)(uintptr_t)regs->rsp != 0;
}

static void test_function(void **state)
{
	(void)state;
	skip_without_decoder();
	assert_int_equal(fi_activate_batch(ids, MOVABLE, on_call), 0);
	assert_int_equal(wrong(), 0);
	assert_int_equal(fi_deactivate_batch(ids, MOVABLE), 0);
	assert_int_equal(seen, MOVABLE + 1);
}

static void test_refused(void **state)
{
	static const struct {
		const char *name, *reason;
	} refused[] = {
		{ "s_loop", "a conditional branch leads to it" },
		{ "s_again", "a branch leads into" },
		{ "s_call", "a call stands" },
		{ "s_switch", "it has an indirect jump" },
		{ "s_entered", "a branch leads into" },
		{ "s_table_unchecked", "it has an indirect jump" },
		{ "s_table_signed", "it has an indirect jump" },
		{ "s_table_wide", "it has an indirect jump" },
		{ "s_table_another", "it has an indirect jump" },
		{ "s_table_changed", "it has an indirect jump" },
		{ "s_table_flags", "it has an indirect jump" },
		{ "s_table_joined", "it has an indirect jump" },
		{ "s_table_stored", "it has an indirect jump" },
		{ "s_table_two", "it has an indirect jump" },
		{ "s_table_between", "it has an indirect jump" },
		{ "s_table_writable", "it has an indirect jump" },
		{ "s_table_called", "it has an indirect jump" },
		{ "s_table_into", "a branch leads into" },
		{ "s_table_entry", "a conditional branch leads to it" },
		{ "s_tiny", "it ends" },
	};
	size_t found = 0;
	struct fi_probe probe;

	(void)state;
	skip_without_decoder();
	for (uint32_t id = 0; id < fi_probes(); id++) {
		assert_int_equal(fi_get(id, &probe), 0);
		for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
			if (strcmp(probe.function, refused[i].name) != 0)
				continue;
			found++;
			if (probe.state != FI_REFUSED)
				fail_msg("%s is not refused", probe.function);
			if (!strstr(probe.reason, refused[i].reason))
				fail_msg("%s: %s", probe.function, probe.reason);
			assert_int_equal(fi_activate(id, NULL), -ENOTSUP);
		}
	}
	assert_int_equal(found, sizeof(refused) / sizeof(*refused));
}

static atomic_bool over;
static atomic_int bad, begun;

static void *run(void *data)
{
	atomic_fetch_add(&begun, 1);
	while (!atomic_load_explicit(&over, memory_order_relaxed))
		atomic_fetch_add(&bad, wrong());
	return data;
}

static void test_threads(void **state)
{
	pthread_t threads[2];
	unsigned seed = 1;

	(void)state;
	skip_without_decoder();
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run, NULL), 0);
	/* A thread that libc has still to begin blocks SIGTRAP: no change is made beside it. */
	while (atomic_load(&begun) < 2)
		sched_yield();
	for (int i = 0; i < 150; i++) {
		uint32_t id = ids[rand_r(&seed) % MOVABLE];
		int ret = fi_activate(id, NULL);

		/* A thread that gets no CPU for a second has not answered. */
		assert_true(!ret || ret == -ETIMEDOUT);
		assert_int_equal(fi_deactivate(id), 0);
	}
	atomic_store(&over, true);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&bad), 0);
}

/* In a child: it may well crash. */
static void test_forgets(void **state)
{
	int status;
	pid_t child;

	(void)state;
	skip_without_decoder();
	child = fork();
	if (!child) {
		/* No stub is made yet. */
		signal(SIGSEGV, SIG_DFL);
		signal(SIGILL, SIG_DFL);
		/* What jumps anywhere may go round for ever. */
		alarm(3);
		forgets = true;
		if (fi_activate_batch(ids, MOVABLE, NULL))
			_exit(0);
		_exit(wrong() ? 1 : 2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forgets),	 cmocka_unit_test(test_moved),
		cmocka_unit_test(test_function), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, find, NULL);
}
