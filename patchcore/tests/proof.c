/* SPDX-License-Identifier: MIT */
/*
 * The proof of a machine.conf: a program like any other, with nothing but the
 * installed library and the config in force, toggles straddlers of all four
 * splits while an executor runs them, and counts what the executor got.
 *
 * usage: proof TOGGLES [POLICY]	POLICY is wait (default) or membarrier
 *
 * Prints one line per split and one in all. Exit status: 0 the tears are no more
 * than the config's own bound allows, 1 they are more, 77 cannot be run here.
 *
 * The site is "mov eax, imm32" against "mov ecx, imm32". All five bytes differ,
 * and the executor sets eax and ecx before, so every mix of the two shows.
 */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <patchcore/patchcore.h>

#define LINE   64
#define PAGE   4096
#define ROUND  200 /* executions between two looks of the executor at what to run */
#define LEN    5
#define PLACES 8 /* four splits, across a line and across a page */

/*
 * Tears may exceed their expected number by chance. If chance would do so once in a million runs
 * only, the bound does not hold here.
 */
#define CHANCE 1e-6

static const uint8_t code_a[LEN] = { 0xb8, 0x11, 0x11, 0x11, 0x11 };
static const uint8_t code_b[LEN] = { 0xb9, 0x22, 0x22, 0x22, 0x22 };

static _Atomic(void *) site; /* NULL: end */
static _Atomic(uint64_t) rounds;
static _Atomic(uint64_t) seen[3]; /* A, B, neither */
static int cpus[2] = { -1, -1 };

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

/* Two CPUs that this process may use. */
static int find_cpus(void)
{
	cpu_set_t set;
	int found = 0;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 0;
	for (int i = 0; i < CPU_SETSIZE && found < 2; i++)
		if (CPU_ISSET(i, &set))
			cpus[found++] = i;
	return found;
}

/*
 * Run the site so often, as tightly as it goes: the rarer an executor is on the
 * site, the fewer tears it can see. ecx + 4 eax tells which code ran: of no mix,
 * also not of one code's opcode and the other's number, is it that of either.
 */
static void run_site(void *at, uint64_t times, uint64_t count[3])
{
	uint64_t first = 0, other = 0;

	__asm__ volatile("lea -128(%%rsp), %%rsp\n" /* leave the red zone to the compiler */
			 "mov %[times], %%rdx\n"
			 "1:	xor %%eax, %%eax\n"
			 "	xor %%ecx, %%ecx\n"
			 "	call *%[at]\n"
			 "	lea (%%rcx, %%rax, 4), %%ecx\n"
			 "	cmp $0x22222222, %%ecx\n"
			 "	je 2f\n"
			 "	cmp $0x44444444, %%ecx\n"
			 "	jne 3f\n"
			 "	inc %[first]\n"
			 "2:	dec %%rdx\n"
			 "	jnz 1b\n"
			 "	jmp 4f\n"
			 "3:	inc %[other]\n"
			 "	jmp 2b\n"
			 "4:	lea 128(%%rsp), %%rsp\n"
			 : [first] "+r"(first), [other] "+r"(other)
			 : [at] "r"(at), [times] "r"(times)
			 : "rax", "rcx", "rdx", "memory", "cc");
	count[0] += first;
	count[1] += times - first - other;
	count[2] += other;
}

static void *executor(void *unused)
{
	void *at;

	pin(cpus[1]);
	while ((at = atomic_load(&site))) {
		uint64_t count[3] = { 0 };

		run_site(at, ROUND, count);
		for (int i = 0; i < 3; i++)
			atomic_fetch_add(&seen[i], count[i]);
		atomic_fetch_add(&rounds, 1);
	}
	return unused;
}

/*
 * Let the executor get hot on the site again; it may have lost its CPU
 * meanwhile. Then a little longer, by chance: right after a round it is off the
 * site for a moment, and a patch then would prove nothing.
 */
static void let_run(void)
{
	static uint32_t random = 1;
	uint64_t before = atomic_load(&rounds);

	while (atomic_load(&rounds) - before < 1)
		__builtin_ia32_pause();
	random = random * 1664525 + 1013904223;
	for (volatile uint32_t i = random >> 23; i > 0; i--)
		;
}

/* Returns the tears, or -1 after a complaint. */
static long toggle(uint8_t *at, uint64_t toggles)
{
	uint64_t before = atomic_load(&seen[2]);

	for (uint64_t i = 0; i < toggles; i++) {
		int ret = pc_patch(at, i % 2 ? code_a : code_b, LEN);

		if (ret < 0) {
			fprintf(stderr, "proof: pc_patch: %s\n", strerror(-ret));
			return -1;
		}
		let_run();
	}
	return (long)(atomic_load(&seen[2]) - before);
}

/* How likely are this many tears or more, if they come at the rate of the bound? */
static double chance_of(long tears, double expected)
{
	double term = exp(-expected), below = 0;

	for (long k = 0; k < tears; k++) {
		below += term;
		term *= expected / (double)(k + 1);
	}
	return 1 - below;
}

static int judge(long tears, uint64_t toggles, const struct pc_status *status)
{
	/* The kernel promises membarrier's syncs: no tear is allowed for there. */
	double p = fmax(status->page_p, status->line_p);
	double expected = p * (double)toggles;
	double chance = tears ? chance_of(tears, expected) : 1;

	printf("in all: %ld tears in %llu toggles; the bound of %.3g allows for %.3g\n", tears,
	       (unsigned long long)toggles, p, expected);
	return chance < CHANCE;
}

static int prove(uint64_t toggles, uint8_t *text)
{
	struct pc_status status;
	pthread_t thread;
	long tears = 0;

	pc_get_status(&status);
	printf("policy %s, waits %llu + %llu ticks, config %s\n",
	       status.in_use == PC_POLICY_WAIT ? "wait" : "membarrier",
	       (unsigned long long)status.first_wait, (unsigned long long)status.second_wait,
	       status.conf_path[0] ? status.conf_path : "none");
	pin(cpus[0]);
	for (int place = 0; place < PLACES; place++) {
		int split = place / 2 + 1;
		int boundary = place % 2 ? PAGE : LINE * (split + 1);
		uint8_t *at = text + boundary - split;
		long torn;

		memcpy(at, code_a, LEN);
		at[LEN] = 0xc3; /* ret */
		atomic_store(&site, at);
		if (place == 0 && pthread_create(&thread, NULL, executor, NULL) != 0)
			return 77;
		let_run();
		let_run();
		torn = toggle(at, toggles / PLACES);
		if (torn < 0)
			return 77;
		printf("split %d, %s crossing: %ld tears in %llu toggles\n", split,
		       place % 2 ? "page" : "line", torn, (unsigned long long)toggles / PLACES);
		tears += torn;
	}
	atomic_store(&site, NULL);
	pthread_join(thread, NULL);
	return judge(tears, toggles / PLACES * PLACES, &status);
}

int main(int argc, char **argv)
{
	enum pc_policy policy = argc > 2 && strcmp(argv[2], "membarrier") == 0
					? PC_POLICY_MEMBARRIER
					: PC_POLICY_WAIT;
	uint64_t toggles = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	struct pc_status status;
	uint8_t *text = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (toggles < PLACES) {
		fprintf(stderr, "usage: proof TOGGLES [wait|membarrier]\n");
		return 64;
	}
	if (find_cpus() < 2) {
		puts("two CPUs are needed");
		return 77;
	}
	if (pc_init() < 0 || pc_set_policy(policy) < 0) {
		pc_get_status(&status);
		printf("the policy is refused: %s\n", status.reason);
		return 77;
	}
	if (text == MAP_FAILED || pc_text_open(text, 8192) < 0) {
		puts("no memory that is writable and executable");
		return 77;
	}
	return prove(toggles, text);
}
