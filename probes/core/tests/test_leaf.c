/* SPDX-License-Identifier: MIT */
/*
 * A small probe function is run as a copy that keeps what the function changes, and hands over what
 * it reads: each register that a function may change, each argument, alone and all together. A
 * register that is not told, or an argument, is noticed. While a thread is in a copy it counts as
 * inside.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <cmocka.h>

#include "patchcore/tests/child.h"
#include "probes/core/core.h"
#include "probes/core/entry.h"
#include "probes/core/tests/registers.h"

/* For the assembly. */
unsigned called;
uint32_t seen_id;
void *seen_site, *seen_data;
struct fi_regs regs_seen;
_Atomic(unsigned) waits, entered;

#define CHANGED(name) fi_function changes_##name;
CHANGED(rax)
CHANGED(rcx)
CHANGED(rdx)
CHANGED(rsi)
CHANGED(rdi)
CHANGED(r8)
CHANGED(r9)
CHANGED(r10)
CHANGED(r11)
fi_function does_nothing, reads_id, reads_site, reads_registers, reads_data, does_all, stays_inside,
	needs_its_place;

asm(".pushsection .text\n"
    ".irp r,rax,rcx,rdx,rsi,rdi,r8,r9,r10,r11\n"
    ".globl changes_\\r\n"
    "changes_\\r:\n"
    "	incl called(%rip)\n"
    "	mov $-1, %\\r\n"
    "	ret\n"
    ".endr\n"
    ".globl does_nothing\n"
    "does_nothing:\n"
    "	incl called(%rip)\n"
    "	ret\n"
    ".globl reads_id\n"
    "reads_id:\n"
    "	incl called(%rip)\n"
    "	mov %edi, seen_id(%rip)\n"
    "	ret\n"
    ".globl reads_site\n"
    "reads_site:\n"
    "	incl called(%rip)\n"
    "	mov %rsi, seen_site(%rip)\n"
    "	ret\n"
    ".globl reads_data\n"
    "reads_data:\n"
    "	incl called(%rip)\n"
    "	mov %rcx, seen_data(%rip)\n"
    "	rep ret\n"
    ".globl reads_registers\n"
    "reads_registers:\n"
    "	incl called(%rip)\n"
    "	xor %eax, %eax\n"
    "1:	mov (%rdx,%rax,8), %r9\n"
    "	lea regs_seen(%rip), %r8\n"
    "	mov %r9, (%r8,%rax,8)\n"
    "	inc %eax\n"
    "	cmp $10, %eax\n"
    "	jb 1b\n"
    "	ret\n"
    ".globl does_all\n"
    "does_all:\n"
    "	incl called(%rip)\n"
    "	mov %edi, seen_id(%rip)\n"
    "	mov %rsi, seen_site(%rip)\n"
    "	mov %rcx, seen_data(%rip)\n"
    "	mov %rdx, %rsi\n"
    "	lea regs_seen(%rip), %rdi\n"
    "	mov $10, %ecx\n"
    "	rep movsq\n"
    ".irp r,rax,rcx,rdx,rsi,rdi,r8,r9,r10,r11\n"
    "	mov $-1, %\\r\n"
    ".endr\n"
    "	add %eax, %eax\n"
    "	js 2f\n"
    "	xor %eax, %eax\n"
    "2:	ret\n"
    ".globl stays_inside\n"
    "stays_inside:\n"
    "	movl $1, entered(%rip)\n"
    "1:	cmpl $0, waits(%rip)\n"
    "	jne 1b\n"
    "	ret\n"
    ".globl needs_its_place\n"
    "needs_its_place:\n"
    "	incl called(%rip)\n"
    "	mov (%rsp), %rax\n"
    "	ret\n"
    ".popsection\n");

/* --- What the library is told of a function, and what it makes of it -------------------------- */

static uint16_t hidden_reads, hidden_writes;
static uintptr_t word;
static unsigned looks; /* at functions */

struct effects __real_effects_read(uintptr_t function);
struct effects __wrap_effects_read(uintptr_t function);
uintptr_t __real_leaf_word(uintptr_t function, const struct effects *leaf);
uintptr_t __wrap_leaf_word(uintptr_t function, const struct effects *leaf);
void *__real_near_entry(const void *place, uint32_t id);
void *__wrap_near_entry(const void *place, uint32_t id);

struct effects __wrap_effects_read(uintptr_t function)
{
	struct effects leaf = __real_effects_read(function);

	looks++;
	leaf.reads &= (uint16_t)~hidden_reads;
	leaf.writes &= (uint16_t)~hidden_writes;
	return leaf;
}

uintptr_t __wrap_leaf_word(uintptr_t function, const struct effects *leaf)
{
	word = __real_leaf_word(function, leaf);
	return word;
}

static bool from_afar; /* stubs jump to the trampoline of the library, as those of markers do */

void *__wrap_near_entry(const void *place, uint32_t id)
{
	return from_afar ? (void *)probe_entry : __real_near_entry(place, id);
}

/* --- Kept, and handed over -------------------------------------------------------------------- */

enum {
	ID = 1,
	SITE = 2,
	REGISTERS = 4,
	DATA = 8
};

struct way {
	fi_function *function;
	unsigned reads;
	bool counts_first; /* it had no function at first: the other beginning */
	bool from_afar;
	bool not_copied;
	uint16_t hidden_reads, hidden_writes;
};

static void must_have_read(unsigned what, uint32_t id)
{
	uint64_t *rsp = (uint64_t *)rsp_at_site;

	MUST(!(what & ID) || seen_id == id);
	MUST(!(what & SITE) || seen_site == (void *)register_site);
	MUST(!(what & DATA) || seen_data == &called);
	if (what & REGISTERS)
		MUST(regs_seen.rax == set.general[0] && regs_seen.rcx == set.general[2] &&
		     regs_seen.rdx == set.general[3] && regs_seen.rsi == set.general[4] &&
		     regs_seen.rdi == set.general[5] && regs_seen.r8 == set.general[7] &&
		     regs_seen.r9 == set.general[8] && regs_seen.r10 == set.general[9] &&
		     regs_seen.r11 == set.general[10] && regs_seen.rsp == (uintptr_t)rsp);
}

static void is_kept(const void *arg)
{
	const struct way *way = arg;
	uint32_t id;

	from_afar = way->from_afar;
	hidden_reads = way->hidden_reads;
	hidden_writes = way->hidden_writes;
	seen_id = UINT32_MAX;
	id = register_probe();
	MUST(fi_set_data(id, &called) == 0);
	if (way->counts_first)
		MUST(fi_activate(id, NULL) == 0);
	MUST(fi_activate(id, way->function) == 0);
	MUST(!word == way->not_copied);
	run_all();
	must_have_read(way->reads, id);
	run_all();
	MUST(called == 18 && fi_lost(id) == 0);
	MUST(fi_count(id) == 18 && !(block_of_thread->inside & 1));
	/* The same copy as before, and none. */
	MUST(fi_activate(id, NULL) == 0);
	run_all();
	MUST(called == 18);
	MUST(fi_activate(id, way->function) == 0);
	run_all();
	MUST(called == 27 && fi_count(id) == 36);
	MUST(looks == 1);
}

static const struct way ways[] = {
	{ .function = changes_rax },
	{ .function = changes_rcx },
	{ .function = changes_rdx },
	{ .function = changes_rsi },
	{ .function = changes_rdi },
	{ .function = changes_r8 },
	{ .function = changes_r9 },
	{ .function = changes_r10 },
	{ .function = changes_r11 },
	{ .function = does_nothing },
	{ .function = reads_id, .reads = ID },
	{ .function = reads_site, .reads = SITE },
	{ .function = reads_registers, .reads = REGISTERS },
	{ .function = reads_data, .reads = DATA },
	{ .function = does_all, .reads = ID | SITE | REGISTERS | DATA },
};

static void each_is_kept(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		struct way way = ways[i];

		child_must_pass(is_kept, &way);
		way.counts_first = true;
		child_must_pass(is_kept, &way);
		way.from_afar = true;
		child_must_pass(is_kept, &way);
	}
}

static void what_needs_its_place_stays(void **state)
{
	(void)state;
	child_must_pass(is_kept, &(struct way){ needs_its_place, .not_copied = true });
	child_must_fail(is_kept, &(struct way){ needs_its_place, .not_copied = false });
}

/* rax, rcx and rdx are kept for all; of the last it is to be known whether it is still the block.
 */
static void what_is_not_told_is_noticed(void **state)
{
	static const uint8_t written[] = { 6, 7, 8, 9, 10, 11 };

	(void)state;
	child_must_die_of(is_kept, &(struct way){ changes_rdx, .hidden_writes = 1u << 2 }, SIGSEGV);
	for (size_t i = 0; i < sizeof(written); i++) {
		struct way way = ways[3 + i];

		way.hidden_writes = (uint16_t)(1u << written[i]);
		child_must_fail(is_kept, &way);
	}
	for (size_t i = 10; i < 15; i++) {
		struct way way = ways[i];

		way.hidden_reads = UINT16_MAX;
		child_must_fail(is_kept, &way);
	}
	for (size_t i = 8; i < 12; i++)
		child_must_fail(is_kept, &(struct way){ does_all, ID | SITE | REGISTERS | DATA,
							.hidden_writes = (uint16_t)(1u << i) });
}

/* As refused functions are; those that have become others are looked at again. */
static void is_looked_at(const void *arg)
{
	uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t id = register_probe();

	(void)arg;
	MUST(code != MAP_FAILED);
	*code = 0xcc;
	for (int i = 0; i < 2; i++)
		MUST(fi_activate(id, (fi_function *)code) == 0);
	MUST(looks == 1);
	*code = 0xc3;
	for (int i = 0; i < 2; i++)
		MUST(fi_activate(id, (fi_function *)code) == 0);
	MUST(looks == 2);
	run_all();
}

static void what_is_another_is_looked_at_again(void **state)
{
	(void)state;
	child_must_pass(is_looked_at, NULL);
}

/* --- Inside ----------------------------------------------------------------------------------- */

static _Atomic(bool) waited;

/* The first call makes the thread's counters, and is none of the copy. */
static void *run_twice(void *arg)
{
	register_site();
	entered = 0;
	waits = 1;
	register_site();
	return arg;
}

static void *wait_for_all(void *arg)
{
	*(int *)arg = fi_synchronize();
	atomic_store(&waited, true);
	return NULL;
}

static void run_in_handler(int signal)
{
	(void)signal;
	register_site();
}

static void pause_for(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

static void counts_as_inside(const void *arg)
{
	pthread_t thread, waiter;
	int ret = -1;
	uint32_t id = register_probe();

	(void)arg;
	signal(SIGUSR1, run_in_handler);
	MUST(fi_activate(id, stays_inside) == 0 && word);
	MUST(pthread_create(&thread, NULL, run_twice, NULL) == 0);
	while (!waits || !entered)
		pause_for(1);
	MUST(block_list()->inside & 1);
	/* A handler's call is lost, and leaves the thread inside. */
	MUST(pthread_kill(thread, SIGUSR1) == 0);
	while (!fi_lost(id))
		pause_for(1);
	MUST(block_list()->inside & 1);
	MUST(fi_deactivate(id) == 0);
	MUST(pthread_create(&waiter, NULL, wait_for_all, &ret) == 0);
	pause_for(20);
	MUST(!atomic_load(&waited));
	waits = 0;
	pthread_join(thread, NULL);
	pthread_join(waiter, NULL);
	MUST(ret == 0 && !(block_list()->inside & 1));
}

/* --- A thread that is inside whenever it is looked at ---------------------------------------- */

static _Atomic(bool) enough;
fi_function takes_long;

asm(".pushsection .text\n"
    ".globl takes_long\n"
    "takes_long:\n"
    "	mov $1000000, %eax\n"
    "1:	dec %eax\n"
    "	jnz 1b\n"
    "	ret\n"
    ".popsection\n");

static void *run_on(void *arg)
{
	while (!atomic_load_explicit(&enough, memory_order_relaxed))
		register_site();
	return arg;
}

static void goes_by_calls(const void *arg)
{
	uint32_t id = register_probe();
	pthread_t thread;

	(void)arg;
	MUST(fi_activate(id, takes_long) == 0 && word);
	MUST(pthread_create(&thread, NULL, run_on, NULL) == 0);
	while (!fi_count(id))
		pause_for(1);
	for (int i = 0; i < 20; i++)
		MUST(fi_synchronize() == 0);
	enough = true;
	pthread_join(thread, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_kept),
		cmocka_unit_test(what_needs_its_place_stays),
		cmocka_unit_test(what_is_not_told_is_noticed),
		cmocka_unit_test(what_is_another_is_looked_at_again),
		child_unit_case("a thread in a copy is inside", counts_as_inside, NULL),
		child_unit_case("calls one after the other are told apart", goes_by_calls, NULL),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
