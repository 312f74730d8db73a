/* SPDX-License-Identifier: MIT */
/*
 * Probes at function entries: counts are exact, the program computes what it did before, and
 * nothing is left of a probe that is off; by one thread and by several that toggle at random.
 *
 * The same oracles see a library that does not count, one that does not restore a site, and one
 * that calls a function that was taken away.
 */
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

#include <patchcore/batch.h>

#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/scale.h"
#include "probes/core/provider.h"
#include "probes/include/fastinst.h"
#include "probes/tests/sample.h"

#define SAMPLES	  8
#define EXECUTORS 3
#define TOGGLERS  3

SAMPLE(sample_0, 3)
SAMPLE(sample_1, 5)
SAMPLE(sample_2, 7)
SAMPLE(sample_3, 11)
SAMPLE(sample_4, 13)
SAMPLE(sample_5, 17)
SAMPLE(sample_6, 19)
SAMPLE(sample_7, 23)

typedef uint64_t sample_fn(uint64_t a, double b, uint64_t c);

static sample_fn *const samples[SAMPLES] = { sample_0, sample_1, sample_2, sample_3,
					     sample_4, sample_5, sample_6, sample_7 };
static const uint64_t factors[SAMPLES] = { 3, 5, 7, 11, 13, 17, 19, 23 };
static uint32_t ids[SAMPLES];

/* --- Broken on purpose ------------------------------------------------------------------------ */

static enum {
	SOUND,
	DOES_NOT_COUNT,
	DOES_NOT_RESTORE
} broken;

void *__real_near_entry(const void *place, uint32_t id);
void *__wrap_near_entry(const void *place, uint32_t id);
int __real_pc_patch(void *addr, const void *bytes, size_t len);
int __wrap_pc_patch(void *addr, const void *bytes, size_t len);
int __wrap_pc_deactivate_call(struct pc_call *call);
int __real_pc_deactivate_call(struct pc_call *call);
int __real_pc_text_close(void *addr, size_t len);
int __wrap_pc_text_close(void *addr, size_t len);
int __real_pc_patch_batch(struct pc_op *ops, size_t n);
int __wrap_pc_patch_batch(struct pc_op *ops, size_t n);
void entry_that_counts_nothing(void);

asm(".pushsection .text\n"
    ".globl entry_that_counts_nothing\n"
    "entry_that_counts_nothing:\n"
    "	lea 8(%rsp), %rsp\n"
    "	ret\n"
    ".popsection\n");

void *__wrap_near_entry(const void *place, uint32_t id)
{
	if (broken == DOES_NOT_COUNT)
		return (void *)entry_that_counts_nothing;
	return __real_near_entry(place, id);
}

int __wrap_pc_patch_batch(struct pc_op *ops, size_t n)
{
	if (broken != DOES_NOT_RESTORE || !n || *(const uint8_t *)ops->bytes == 0xe8)
		return __real_pc_patch_batch(ops, n);
	for (size_t i = 0; i < n; i++)
		ops[i].result = 0;
	return 0;
}

int __wrap_pc_patch(void *addr, const void *bytes, size_t len)
{
	if (broken == DOES_NOT_RESTORE && *(const uint8_t *)bytes != 0xe8)
		return 0;
	return __real_pc_patch(addr, bytes, len);
}

static int closes_fail; /* so many, with this error */
static int close_error;

int __wrap_pc_text_close(void *addr, size_t len)
{
	if (!closes_fail)
		return __real_pc_text_close(addr, len);
	closes_fail--;
	return close_error;
}

int __wrap_pc_deactivate_call(struct pc_call *call)
{
	return broken == DOES_NOT_RESTORE ? 0 : __real_pc_deactivate_call(call);
}

/* --- Calls, and what they must give ----------------------------------------------------------- */

static void start(void)
{
	MUST(fi_init() == 0);
	for (int i = 0; i < SAMPLES; i++) {
		char name[] = "sample_0";
		struct fi_probe probe;

		name[7] = (char)('0' + i);
		MUST(fi_find(name, &ids[i], 1) == 1);
		MUST(fi_get(ids[i], &probe) == 0);
		MUST(probe.kind == FI_ENTRY && probe.state == FI_OFF);
		MUST(strcmp(probe.function, name) == 0 && strcmp(probe.provider, "patchable") == 0);
		MUST((uintptr_t)probe.address - (uintptr_t)samples[i] <= 4);
	}
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* n calls of random samples; calls[i] of each. */
static void work(uint64_t seed, unsigned n, uint64_t calls[SAMPLES])
{
	uint64_t state = seed * 2654435761u + 1;

	for (unsigned i = 0; i < n; i++) {
		uint64_t a = next_random(&state);
		unsigned which = a >> 40 & (SAMPLES - 1);

		MUST(samples[which](a, 2.5, i) == a * factors[which] + 2 + i);
		calls[which]++;
	}
}

static void counts_of(uint64_t count[SAMPLES])
{
	for (int i = 0; i < SAMPLES; i++)
		count[i] = fi_count(ids[i]);
}

/* --- One thread ------------------------------------------------------------------------------- */

static _Atomic uint64_t seen[SAMPLES];
static _Atomic uint64_t seen_sum;

static void see(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	MUST(data == &ids[id - ids[0]] || data == NULL);
	MUST((uintptr_t)site - (uintptr_t)samples[id - ids[0]] <= 4);
	atomic_fetch_add(&seen[id - ids[0]], 1);
	atomic_fetch_add(&seen_sum, regs->rdi + regs->rsi);
}

static void counts_are_exact(const void *arg)
{
	uint64_t calls[SAMPLES] = { 0 }, count[SAMPLES];

	broken = arg ? *(const int *)arg : SOUND;
	start();
	MUST(fi_activate_batch(ids, SAMPLES, NULL) == 0);
	work(1, 10000, calls);
	counts_of(count);
	MUST(memcmp(count, calls, sizeof(count)) == 0);
	MUST(fi_deactivate_batch(ids, SAMPLES) == 0);
	work(2, 10000, (uint64_t[SAMPLES]){ 0 });
	counts_of(count);
	MUST(memcmp(count, calls, sizeof(count)) == 0);
	MUST(fi_fini() == 0);
}

static void a_function_is_called(const void *arg)
{
	uint64_t calls[SAMPLES] = { 0 };

	(void)arg;
	start();
	for (int i = 0; i < SAMPLES; i++)
		MUST(fi_set_data(ids[i], &ids[i]) == 0);
	MUST(fi_activate_batch(ids, SAMPLES, see) == 0);
	work(3, 10000, calls);
	for (int i = 0; i < SAMPLES; i++)
		MUST(seen[i] == calls[i] && fi_count(ids[i]) == calls[i] && !fi_lost(ids[i]));
	seen_sum = 0;
	sample_0(1000, 1.0, 23);
	MUST(seen_sum == 1023);
}

static void another_function_changes_no_code(const void *arg)
{
	uint8_t *site = (uint8_t *)samples[0];
	uint8_t before[9];

	(void)arg;
	start();
	MUST(fi_activate(ids[0], NULL) == 0);
	memcpy(before, site, sizeof(before));
	MUST(fi_activate(ids[0], see) == 0);
	MUST(memcmp(before, site, sizeof(before)) == 0);
	sample_0(1, 1.0, 1);
	MUST(seen[0] == 1);
	MUST(fi_activate(ids[0], NULL) == 0);
	sample_0(1, 1.0, 1);
	MUST(seen[0] == 1 && fi_count(ids[0]) == 2);
	MUST(fi_deactivate(ids[0]) == 0 && fi_deactivate(ids[0]) == 0);
}

/* --- Probe functions that run into probes ----------------------------------------------------- */

static void calls_probed(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	(void)site;
	(void)regs;
	(void)data;
	atomic_fetch_add(&seen[id - ids[0]], 1);
	MUST(sample_0(2, 1.0, 1) == 8);
	MUST(sample_1(2, 1.0, 1) == 12);
	MUST(fi_synchronize() == -EDEADLK);
}

static void no_recursion(const void *arg)
{
	(void)arg;
	start();
	MUST(fi_activate_batch(ids, 2, calls_probed) == 0);
	for (int i = 0; i < 100; i++)
		MUST(sample_0(5, 1.0, 1) == 17);
	MUST(seen[0] == 100 && seen[1] == 0);
	MUST(fi_count(ids[0]) == 200 && fi_lost(ids[0]) == 100);
	MUST(fi_count(ids[1]) == 100 && fi_lost(ids[1]) == 100);
}

static void on_signal(int signal)
{
	(void)signal;
	sample_3(1, 1.0, 1);
}

static void in_signal_handlers(const void *arg)
{
	(void)arg;
	start();
	MUST(fi_activate(ids[3], see) == 0);
	signal(SIGUSR1, on_signal);
	for (int i = 0; i < 100; i++)
		raise(SIGUSR1);
	MUST(seen[3] == 100 && fi_count(ids[3]) == 100);
}

static jmp_buf away;

PROBED static void leaves(int how)
{
	if (how)
		longjmp(away, 1);
}

static void across_longjmp(const void *arg)
{
	uint32_t id;

	(void)arg;
	start();
	MUST(fi_find("leaves", &id, 1) == 1 && fi_activate(id, NULL) == 0);
	for (volatile int i = 0; i < 1000; i++)
		if (!setjmp(away))
			leaves(i & 1);
	MUST(fi_count(id) == 1000);
}

/* --- Several threads -------------------------------------------------------------------------- */

static _Atomic bool stop;

struct executor {
	pthread_t thread;
	uint64_t seed;
	unsigned calls_wanted; /* 0: until stop */
	uint64_t calls[SAMPLES];
};

static void *execute(void *data)
{
	struct executor *executor = data;

	if (executor->calls_wanted)
		work(executor->seed, executor->calls_wanted, executor->calls);
	while (!executor->calls_wanted && !stop)
		work(executor->seed++, 1000, executor->calls);
	return NULL;
}

static void see_no_data(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	(void)site;
	(void)data;
	(void)regs;
	atomic_fetch_add_explicit(&seen[id - ids[0]], 1, memory_order_relaxed);
}

static void *toggle(void *data)
{
	uint64_t state = (uint64_t)(uintptr_t)data * 77773 + 5;
	uint64_t *toggles = calloc(1, sizeof(*toggles));

	MUST(toggles);
	while (!stop) {
		uint64_t r = next_random(&state);
		uint32_t id = ids[r >> 20 & (SAMPLES - 1)];
		int ret;

		switch (r >> 50 & 3) {
		case 0:
			ret = fi_activate(id, NULL);
			break;
		case 1:
			ret = fi_activate(id, see_no_data);
			break;
		case 2:
			ret = fi_deactivate(id);
			break;
		default:
			ret = r & 1 << 30 ? fi_activate_batch(ids, SAMPLES, NULL)
					  : fi_deactivate_batch(ids, SAMPLES);
		}
		MUST(ret == 0);
		++*toggles;
	}
	return toggles;
}

static void run_executors(struct executor executors[EXECUTORS], unsigned calls, uint64_t seed)
{
	for (int i = 0; i < EXECUTORS; i++) {
		executors[i] =
			(struct executor){ .seed = seed + (unsigned)i, .calls_wanted = calls };
		MUST(pthread_create(&executors[i].thread, NULL, execute, &executors[i]) == 0);
	}
}

static void join_executors(struct executor executors[EXECUTORS], uint64_t calls[SAMPLES])
{
	for (int i = 0; i < EXECUTORS; i++) {
		pthread_join(executors[i].thread, NULL);
		for (int k = 0; k < SAMPLES; k++)
			calls[k] += executors[i].calls[k];
	}
}

/* From all on to all on; returns with all off. */
static void must_count_exactly(uint64_t seed)
{
	uint64_t before[SAMPLES], after[SAMPLES], calls[SAMPLES] = { 0 };
	struct executor executors[EXECUTORS];

	MUST(fi_activate_batch(ids, SAMPLES, NULL) == 0);
	counts_of(before);
	run_executors(executors, 20000, seed);
	join_executors(executors, calls);
	counts_of(after);
	for (int i = 0; i < SAMPLES; i++)
		MUST(after[i] - before[i] == calls[i]);
	MUST(fi_deactivate_batch(ids, SAMPLES) == 0);
	MUST(fi_synchronize() == 0);
	counts_of(before);
	run_executors(executors, 20000, seed + 100);
	join_executors(executors, calls);
	counts_of(after);
	MUST(memcmp(before, after, sizeof(after)) == 0);
}

static void toggled_at_random(const void *arg)
{
	const struct timespec time = { .tv_nsec = (long)(9e8 *
							 (test_scale() < 1 ? test_scale() : 1)) };
	uint64_t calls[SAMPLES] = { 0 }, toggles = 0;
	struct executor executors[EXECUTORS];
	pthread_t togglers[TOGGLERS];

	(void)arg;
	start();
	must_count_exactly(1);
	run_executors(executors, 0, 50);
	for (uintptr_t i = 0; i < TOGGLERS; i++)
		MUST(pthread_create(&togglers[i], NULL, toggle, (void *)(i + 1)) == 0);
	nanosleep(&time, NULL);
	stop = true;
	join_executors(executors, calls);
	for (int i = 0; i < TOGGLERS; i++) {
		void *result;

		pthread_join(togglers[i], &result);
		toggles += *(uint64_t *)result;
		free(result);
	}
	MUST(toggles > 0);
	for (int i = 0; i < SAMPLES; i++)
		MUST(fi_count(ids[i]) <= calls[i] + 3 * 20000 && seen[i] <= fi_count(ids[i]));
	must_count_exactly(9);
	MUST(fi_fini() == 0);
}

/* --- When an old function is left ------------------------------------------------------------- */

static _Atomic int inside, let_go;

static void stays(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	(void)id;
	(void)site;
	(void)regs;
	(void)data;
	inside = 1;
	while (!let_go)
		nanosleep(&pause, NULL);
	inside = 0;
}

static void *call_once(void *arg)
{
	sample_0(1, 1.0, 1);
	return arg;
}

static void *let_go_later(void *arg)
{
	const struct timespec pause = { .tv_nsec = 50000000 };

	nanosleep(&pause, NULL);
	let_go = 1;
	return arg;
}

/* With arg: without the grace period, which must be noticed. */
static void grace(const void *arg)
{
	pthread_t caller, other;

	start();
	MUST(fi_activate(ids[0], stays) == 0);
	MUST(pthread_create(&caller, NULL, call_once, NULL) == 0);
	while (!inside)
		sched_yield();
	MUST(fi_deactivate(ids[0]) == 0);
	/* With arg nothing is waited for, so the caller must not be let go. */
	if (!arg)
		MUST(pthread_create(&other, NULL, let_go_later, NULL) == 0);
	if (!arg && fi_synchronize() == -ENOTSUP)
		child_skip("the kernel has no expedited membarrier");
	MUST(!inside);
	pthread_join(caller, NULL);
	pthread_join(other, NULL);
	sample_0(1, 1.0, 1);
	MUST(!inside && fi_count(ids[0]) == 1);
}

/* --- fork, sets, callbacks -------------------------------------------------------------------- */

static void fork_starts_from_nothing(const void *arg)
{
	uint64_t calls[SAMPLES] = { 0 };
	int status;
	pid_t pid;

	(void)arg;
	start();
	MUST(fi_activate(ids[2], NULL) == 0);
	sample_2(1, 1.0, 1);
	pid = fork();
	if (pid == 0) {
		MUST(fi_count(ids[2]) == 0);
		sample_2(1, 1.0, 1);
		sample_2(1, 1.0, 1);
		MUST(fi_count(ids[2]) == 2 && fi_deactivate(ids[2]) == 0);
		MUST(fi_activate_batch(ids, SAMPLES, NULL) == 0);
		work(4, 1000, calls);
		MUST(fi_count(ids[5]) == calls[5]);
		_exit(0);
	}
	MUST(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
	sample_2(1, 1.0, 1);
	MUST(fi_count(ids[2]) == 2);
}

static unsigned told;

static void tell(const struct fi_probe *probe, void *data)
{
	MUST(data == &told);
	MUST(probe->id == told || told > probe->id);
	told++;
}

static void sets_and_callbacks(const void *arg)
{
	uint32_t found[SAMPLES];
	struct fi_probe probe;

	(void)arg;
	start();
	MUST(fi_find("sample_*", found, SAMPLES) == SAMPLES && found[7] == ids[7]);
	MUST(fi_find("sample_[0-3]", NULL, 0) == 4);
	MUST(fi_find("test_probes*:sample_?", found, 2) == SAMPLES && found[1] == ids[1]);
	MUST(fi_find("lib*:sample_?", NULL, 0) == 0);
	MUST(fi_find("/:sample_(1|5)$/", found, 2) == 2 && found[1] == ids[5]);
	MUST(fi_find("/sample_(/", NULL, 0) == -EINVAL && fi_find("/x", NULL, 0) == -EINVAL);
	MUST(fi_find(NULL, NULL, 0) == -EINVAL && fi_find("*", NULL, 1) == -EINVAL);
	MUST(fi_register_callback(NULL, NULL) == -EINVAL);
	MUST(fi_register_callback(tell, &told) == 0 && told == fi_probes());
	MUST(fi_scan() == 0 && told == fi_probes());
	MUST(fi_unregister_callback(tell, &told) == 0);
	MUST(fi_unregister_callback(tell, &told) == -ENOENT);
	MUST(fi_get(fi_probes(), &probe) == -ENOENT && fi_activate(fi_probes(), NULL) == -ENOENT);
	MUST(fi_activate_how(ids, 1, see, 8) == -EINVAL);
	MUST(fi_activate_batch((uint32_t[]){ ids[0], fi_probes(), ids[0], ids[1] }, 4, NULL) ==
	     -ENOENT);
	MUST(fi_get(ids[0], &probe) == 0 && probe.state == FI_ON);
	MUST(fi_get(ids[1], &probe) == 0 && probe.state == FI_ON);
	MUST(fi_fini() == 0 && fi_get(0, &probe) == -ESHUTDOWN);
	sample_0(1, 1.0, 1);
	MUST(fi_count(ids[0]) == 0 && fi_init() == 0);
	MUST(fi_activate(ids[0], NULL) == 0);
	sample_0(1, 1.0, 1);
	MUST(fi_count(ids[0]) == 1);
}

/* A table that names a place without NOPs, and one that is no code. */
asm(".pushsection .text\n"
    ".globl not_patchable\n"
    ".type not_patchable, @function\n"
    "not_patchable: xor %eax, %eax\n"
    "	ret\n"
    "	.fill 16, 1, 0xcc\n"
    ".size not_patchable, . - not_patchable\n"
    ".popsection\n"
    ".pushsection __patchable_function_entries, \"awo\", @progbits, .text\n"
    "	.quad not_patchable\n"
    ".popsection\n");

static void what_is_no_site_is_refused(const void *arg)
{
	struct fi_probe probe = { .reason = "" };

	(void)arg;
	start();
	for (uint32_t id = 0; id < fi_probes(); id++) {
		MUST(fi_get(id, &probe) == 0);
		if (!strcmp(probe.function, "not_patchable"))
			break;
	}
	MUST(!strcmp(probe.function, "not_patchable") && probe.state == FI_REFUSED);
	MUST(strstr(probe.reason, "-fpatchable-function-entry"));
	MUST(fi_activate(probe.id, NULL) == -ENOTSUP && fi_find("not_patchable", NULL, 0) == 0);
}

/* --- Pages that cannot be closed -------------------------------------------------------------- */

static unsigned writable_pages(void)
{
	unsigned n = 0;

	for (int i = 0; i < SAMPLES; i++)
		n += (code_prot((void *)samples[i]) & PROT_WRITE) != 0;
	return n;
}

/* They are with the next change of any probe; at last fi_fini() tells of them. */
static void pages_are_closed_later(const void *arg)
{
	static const int errors[] = { -EAGAIN, -ETIMEDOUT };

	(void)arg;
	start();
	MUST(writable_pages() == 0);
	for (int i = 0; i < 2; i++) {
		close_error = errors[i];
		closes_fail = 1;
		MUST(fi_activate_batch(ids, SAMPLES, NULL) == 0);
		MUST(writable_pages() > 0);
		MUST(fi_activate_batch(ids, SAMPLES, NULL) == 0);
		MUST(writable_pages() == 0);
		/* Two changes fail to close them, the second those of the first. */
		closes_fail = 2;
		MUST(fi_deactivate_batch(ids, SAMPLES) == 0);
		MUST(fi_activate_batch(ids, SAMPLES, NULL) == 0);
		MUST(closes_fail == 0 && writable_pages() > 0);
		MUST(fi_deactivate(ids[0]) == 0);
		MUST(writable_pages() == 0);
		closes_fail = 1000;
		MUST(fi_deactivate_batch(ids, SAMPLES) == 0);
		MUST(fi_fini() == errors[i] && fi_fini() == errors[i]);
		MUST(writable_pages() > 0);
		closes_fail = 0;
		MUST(fi_fini() == 0 && writable_pages() == 0);
		MUST(fi_init() == 0);
	}
}

static void test_broken(void **state)
{
	static const int variants[] = { DOES_NOT_COUNT, DOES_NOT_RESTORE };

	(void)state;
	for (unsigned i = 0; i < sizeof(variants) / sizeof(*variants); i++)
		child_must_fail(counts_are_exact, &variants[i]);
	child_must_fail(grace, "");
}

/* The first one: the children of the others begin with what is found here. */
static void test_nothing_before_init(void **state)
{
	(void)state;
	assert_int_equal(fi_find("*", NULL, 0), -ESHUTDOWN);
	assert_int_equal(fi_activate(0, NULL), -ESHUTDOWN);
	assert_int_equal(fi_init(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_before_init),
		child_unit_test(counts_are_exact),
		child_unit_test(a_function_is_called),
		child_unit_test(another_function_changes_no_code),
		child_unit_test(no_recursion),
		child_unit_test(in_signal_handlers),
		child_unit_test(across_longjmp),
		child_unit_test(toggled_at_random),
		child_unit_test(grace),
		child_unit_test(fork_starts_from_nothing),
		child_unit_test(sets_and_callbacks),
		child_unit_test(what_is_no_site_is_refused),
		child_unit_test(pages_are_closed_later),
		cmocka_unit_test(test_broken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
