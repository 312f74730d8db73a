/* SPDX-License-Identifier: MIT */
/*
 * A long run: calls and straddlers are toggled while an executor on another CPU
 * runs them, and what it got is counted, each execution.
 *
 * usage: endurance [CALLS [STRADDLERS [SINGLES [POLICY]]]]
 *	CALLS		toggles of calls, all splits by turns (100000)
 *	STRADDLERS	toggles of straddlers, in batches of 1024 (102400)
 *	SINGLES		toggles of straddlers, one by one (2000)
 *	POLICY		membarrier (default) or wait, which needs a machine.conf
 *
 * One line for each part: toggles, executions, what ran, tears, memory and
 * mappings before and after, ticks per toggle. Exit status: 0 no more tears than
 * the policy's bound allows and nothing leaked, 1 otherwise, 77 cannot be run here.
 *
 * All sites are "mov eax, imm32" against "mov ecx, imm32", where every byte
 * differs, or calls of functions that are just that.
 */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <x86intrin.h>

#include <patchcore/batch.h>
#include <patchcore/call.h>
#include <patchcore/patchcore.h>

#define LEN    5u
#define LINE   64u
#define PAGE   4096u
#define SITES  1024u
#define SPLITS 5u
#define ROUND  64u /* executions between two looks of the executor at what to run */
#define TOTAL  ((size_t)SITES * LINE + 3 * PAGE)

/* The bound, and how often chance alone may exceed it. */
#define CHANCE 1e-6

static const uint8_t code[2][LEN] = {
	{ 0xb8, 0x11, 0x11, 0x11, 0x11 },
	{ 0xb9, 0x22, 0x22, 0x22, 0x22 },
};

struct counts {
	uint64_t executions;
	uint64_t ran[3]; /* one, the other, neither because it was off */
	uint64_t torn;
};

static uint8_t *text;
static uint8_t *site[SITES];
static struct pc_call call[SITES];
static unsigned sites;

/* What the executor is to run, and what it saw; each on a line of its own. */
static struct {
	_Atomic(unsigned) first;
	_Atomic(unsigned) count;
	atomic_bool may_be_off;
	atomic_bool stop;
} work __attribute__((aligned(64)));
static _Atomic(uint64_t) rounds __attribute__((aligned(64)));
static struct counts seen; /* the executor's; read when it rests */
static _Atomic(bool) rests __attribute__((aligned(64)));

static void pin_to_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

/* Two CPUs that this process may use. */
static bool find_cpus(int cpus[2])
{
	cpu_set_t set;
	int found = 0;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return false;
	for (int i = 0; i < CPU_SETSIZE && found < 2; i++)
		if (CPU_ISSET(i, &set))
			cpus[found++] = i;
	return found == 2;
}

/* --- The executor ----------------------------------------------------------------------------- */

static inline void execute(const uint8_t *at, bool may_be_off, struct counts *count)
{
	uint32_t eax, ecx;

	__asm__ volatile("lea -128(%%rsp), %%rsp\n" /* leave the red zone to the compiler */
			 "xor %%eax, %%eax\n"
			 "xor %%ecx, %%ecx\n"
			 "call *%[at]\n"
			 "lea 128(%%rsp), %%rsp\n"
			 : "=&a"(eax), "=&c"(ecx)
			 : [at] "r"(at)
			 : "memory", "cc");
	count->executions++;
	if (eax == 0x11111111 && ecx == 0)
		count->ran[0]++;
	else if (eax == 0 && ecx == 0x22222222)
		count->ran[1]++;
	else if (eax == 0 && ecx == 0 && may_be_off)
		count->ran[2]++;
	else
		count->torn++;
}

static void *executor(void *arg)
{
	pin_to_cpu(*(int *)arg);
	while (!atomic_load_explicit(&work.stop, memory_order_acquire)) {
		unsigned first = atomic_load_explicit(&work.first, memory_order_relaxed);
		unsigned count = atomic_load_explicit(&work.count, memory_order_acquire);
		bool off = atomic_load_explicit(&work.may_be_off, memory_order_relaxed);

		atomic_store_explicit(&rests, count == 0, memory_order_release);
		for (unsigned i = 0; count && i < ROUND; i++)
			execute(site[first + i % count], off, &seen);
		atomic_store_explicit(&rounds, rounds + 1, memory_order_release);
	}
	return NULL;
}

static void let_run(unsigned first, unsigned count)
{
	atomic_store(&work.first, first);
	atomic_store(&work.count, count);
}

/* Let it get on the site again: right after a trap it is off for a moment. */
static void await_round(void)
{
	uint64_t before = atomic_load_explicit(&rounds, memory_order_relaxed);

	while (atomic_load_explicit(&rounds, memory_order_relaxed) == before)
		__builtin_ia32_pause();
}

/* The counts are whole when it rests. */
static struct counts take_counts(void)
{
	struct counts counts;

	atomic_store(&work.count, 0);
	atomic_store(&rests, false);
	while (!atomic_load_explicit(&rests, memory_order_acquire))
		__builtin_ia32_pause();
	counts = seen;
	seen = (struct counts){ 0 };
	return counts;
}

/* --- The code --------------------------------------------------------------------------------- */

/* A site in each line, of split 1 to 4 by turns, or 0 to 4 of calls. */
static uint8_t *place_of_site(unsigned i, unsigned split)
{
	return text + PAGE + (size_t)i * LINE + LINE / 2 - split;
}

static void put_straddlers(void)
{
	sites = SITES;
	for (unsigned i = 0; i < sites; i++) {
		site[i] = place_of_site(i, 1 + i % 4);
		memcpy(site[i], code[0], LEN);
		site[i][LEN] = 0xc3;
	}
}

static void put_function(uint8_t *at, const uint8_t *load)
{
	memcpy(at, load, LEN);
	at[LEN] = 0xc3;
}

static bool put_calls(uint8_t *targets[2])
{
	sites = SPLITS;
	for (unsigned k = 0; k < 2; k++) {
		targets[k] = text + k * LINE;
		put_function(targets[k], code[k]);
	}
	for (unsigned i = 0; i < sites; i++) {
		int32_t rel;

		site[i] = place_of_site(i, i);
		rel = (int32_t)(targets[0] - (site[i] + LEN));
		site[i][0] = 0xe8;
		memcpy(site[i] + 1, &rel, sizeof(rel));
		site[i][LEN] = 0xc3;
		if (pc_call_init(&call[i], site[i]) < 0)
			return false;
	}
	return true;
}

/* --- What it costs ---------------------------------------------------------------------------- */

struct held {
	long pages; /* resident */
	long mappings;
};

static struct held held_now(void)
{
	struct held held = { 0 };
	FILE *file = fopen("/proc/self/statm", "re");
	int c;

	if (!file || fscanf(file, "%*d %ld", &held.pages) != 1)
		held.pages = -1;
	if (file)
		fclose(file);
	file = fopen("/proc/self/maps", "re");
	while (file && (c = getc(file)) != EOF)
		held.mappings += c == '\n';
	if (file)
		fclose(file);
	return held;
}

/* How likely are this many tears or more, if they come at the rate of the bound? */
static double chance_of(uint64_t tears, double expected)
{
	double term = exp(-expected), below = 0;

	for (uint64_t k = 0; k < tears; k++) {
		below += term;
		term *= expected / (double)(k + 1);
	}
	return 1 - below;
}

struct part {
	const char *name;
	uint64_t toggles;
	bool syncs; /* as safe as the policy */
	bool (*toggle)(uint64_t toggles);
};

/* The kernel promises membarrier's syncs: no tear is allowed for there. */
static double bound_of(const struct part *part)
{
	struct pc_status status;

	pc_get_status(&status);
	return part->syncs ? fmax(status.page_p, status.line_p) : 0;
}

/* True: all is well. */
static bool report_part(const struct part *part, const struct counts *c, uint64_t ticks,
			const struct held *before)
{
	double expected = bound_of(part) * (double)part->toggles;
	struct held after = held_now();
	bool exact = c->ran[0] + c->ran[1] + c->ran[2] + c->torn == c->executions;
	bool torn = c->torn && chance_of(c->torn, expected) < CHANCE;
	bool leaks = after.mappings > before->mappings || after.pages > before->pages + 64;

	printf("%s: %llu toggles, %llu executions = %llu + %llu + %llu off + %llu torn "
	       "(%.3g allowed for), %.0f ticks per toggle, resident pages %ld to %ld, "
	       "mappings %ld to %ld\n",
	       part->name, (unsigned long long)part->toggles, (unsigned long long)c->executions,
	       (unsigned long long)c->ran[0], (unsigned long long)c->ran[1],
	       (unsigned long long)c->ran[2], (unsigned long long)c->torn, expected,
	       (double)ticks / (double)part->toggles, before->pages, after.pages, before->mappings,
	       after.mappings);
	if (c->ran[0] == 0 || c->ran[1] == 0)
		puts("  the executor did not see both codes: this proves nothing");
	fflush(stdout);
	return exact && !torn && !leaks && c->ran[0] && c->ran[1];
}

/* --- The parts -------------------------------------------------------------------------------- */

static bool complain(const char *what, int ret)
{
	if (ret < 0)
		fprintf(stderr, "endurance: %s: %s\n", what, strerror(-ret));
	return ret == 0;
}

#define MEETS 509 /* odd, so that every state has its turn */

/*
 * Off, on with the one target, off, on with the other; a while on each split. All of it may be over
 * before an executor that shares its CPU has one: now and then the patcher waits for it.
 */
static bool toggle_calls(uint64_t toggles)
{
	uint64_t each = toggles / SPLITS + 1, done = 0;

	for (unsigned s = 0; s < SPLITS; s++) {
		let_run(s, 1);
		for (uint64_t i = 0; i < each && done < toggles; i++, done++) {
			int ret;

			if (i % MEETS == 0)
				await_round();
			ret = i % 2 ? pc_activate_call(&call[s], text + (i / 2 % 2) * LINE)
				    : pc_deactivate_call(&call[s]);
			if (!complain("call", ret))
				return false;
		}
	}
	return true;
}

/* The executor is on some sixteen of them, another sixteen each time. */
static bool toggle_batches(uint64_t toggles)
{
	static struct pc_op ops[SITES];
	unsigned turn = 0;

	for (uint64_t done = 0; done < toggles; turn++) {
		size_t n = toggles - done < SITES ? toggles - done : SITES;

		for (unsigned i = 0; i < n; i++)
			ops[i] = (struct pc_op){ .addr = site[i],
						 .bytes = code[~turn & 1],
						 .len = LEN };
		let_run(turn / 2 * 16 % SITES, 16);
		await_round();
		if (!complain("batch", pc_patch_batch(ops, n)))
			return false;
		done += n;
	}
	return true;
}

static bool toggle_singles(uint64_t toggles)
{
	for (uint64_t i = 0; i < toggles; i++) {
		unsigned s = (unsigned)(i / 1024 % 4);

		let_run(s, 1);
		await_round();
		if (!complain("patch", pc_patch(site[s], code[~i & 1], LEN)))
			return false;
	}
	return true;
}

/* A little of it first, so that what is allocated once is there. */
static bool run_part(const struct part *part)
{
	struct counts counts;
	struct held before;
	uint64_t start;
	bool well;

	if (!part->toggles)
		return true;
	if (!part->toggle(2 * (uint64_t)SITES))
		return false;
	take_counts();
	before = held_now();
	start = __rdtsc();
	well = part->toggle(part->toggles);
	start = __rdtsc() - start;
	counts = take_counts();
	return report_part(part, &counts, start, &before) && well;
}

static int endure(const struct part *calls, const struct part *words, int cpus[2])
{
	uint8_t *targets[2];
	pthread_t thread;
	bool well = put_calls(targets);

	if (!well || pthread_create(&thread, NULL, executor, &cpus[1]) != 0)
		return 77;
	pin_to_cpu(cpus[0]);
	atomic_store(&work.may_be_off, true);
	well = run_part(calls);
	atomic_store(&work.may_be_off, false);
	put_straddlers();
	for (unsigned i = 0; i < 2; i++)
		well &= run_part(&words[i]);
	atomic_store(&work.stop, true);
	pthread_join(thread, NULL);
	return !well;
}

static uint64_t number(int argc, char **argv, int i, uint64_t otherwise)
{
	return argc > i ? strtoull(argv[i], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
	struct part calls = { "calls", number(argc, argv, 1, 100000), false, toggle_calls };
	struct part words[] = {
		{ "batches", number(argc, argv, 2, 102400), true, toggle_batches },
		{ "singles", number(argc, argv, 3, 2000), true, toggle_singles },
	};
	enum pc_policy policy =
		argc > 4 && strcmp(argv[4], "wait") == 0 ? PC_POLICY_WAIT : PC_POLICY_MEMBARRIER;
	int cpus[2];

	if (!find_cpus(cpus)) {
		puts("two CPUs are needed");
		return 77;
	}
	text = mmap(NULL, TOTAL, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	if (pc_init() < 0 || pc_set_policy(policy) < 0) {
		puts("the policy is refused");
		return 77;
	}
	if (text == MAP_FAILED || pc_text_open(text, TOTAL) < 0) {
		puts("no memory that is writable and executable");
		return 77;
	}
	memset(text, 0x06, TOTAL); /* no opcode in 64-bit mode */
	return endure(&calls, words, cpus);
}
