/* SPDX-License-Identifier: MIT */
/* Sets of CPUs as text, and those that the threads of a process may run on. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "patchcore/machine/cpus.h"
#include "patchcore/tests/child.h"

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

static bool has(const struct cpus *cpus, unsigned cpu)
{
	return cpus->word[cpu / 64] >> cpu % 64 & 1;
}

static void test_parse(void **state)
{
	static const struct {
		const char *text, *printed;
		unsigned count;
	} lists[] = {
		{ "0", "0", 1 },
		{ "0-1", "0-1", 2 },
		{ "0,1", "0-1", 2 },
		{ "63-64", "63-64", 2 },
		{ "5,0-2,4", "0-2,4-5", 5 },
		{ "1-3,2-8", "1-8", 8 },
		{ "0-8191", "0-8191", 8192 },
		{ "8191", "8191", 1 },
		{ "0000", "0", 1 },
	};
	struct cpus cpus;
	char text[64];

	(void)state;
	for (size_t i = 0; i < LENGTH(lists); i++) {
		assert_int_equal(cpus_parse(&cpus, lists[i].text, strlen(lists[i].text)), 0);
		assert_int_equal(cpus_count(&cpus), lists[i].count);
		assert_int_equal(cpus_print(&cpus, text, sizeof(text)), strlen(lists[i].printed));
		assert_string_equal(text, lists[i].printed);
	}
	/* No further than it is long. */
	assert_int_equal(cpus_parse(&cpus, "1234", 2), 0);
	assert_true(has(&cpus, 12) && cpus_count(&cpus) == 1);
}

static void test_refused(void **state)
{
	static const char *const lists[] = { "",       " ",	 "-",	  "0-",	   "-0",
					     ",",      "0,",	 ",0",	  "0,,1",  "1-0",
					     "8192",   "0-8192", "+1",	  "0x1",   "0 ",
					     " 0",     "0\n",	 "0-1-2", "0:2",   "a",
					     "000000", "99999",	 "0;1",	  "65536", "4294967296" };
	struct cpus cpus;

	(void)state;
	for (size_t i = 0; i < LENGTH(lists); i++)
		assert_int_equal(cpus_parse(&cpus, lists[i], strlen(lists[i])), -EINVAL);
}

/* As snprintf() does it: cut off, ended, and the whole length told. */
static void test_print_cut(void **state)
{
	struct cpus cpus;
	char whole[64], text[64];
	size_t length;

	(void)state;
	assert_int_equal(cpus_parse(&cpus, "1,3-17,19,100-8000", 18), 0);
	length = cpus_print(&cpus, whole, sizeof(whole));
	assert_string_equal(whole, "1,3-17,19,100-8000");
	for (size_t size = 0; size < sizeof(text); size++) {
		memset(text, '?', sizeof(text));
		assert_int_equal(cpus_print(&cpus, text, size), length);
		if (size == 0) {
			assert_int_equal(text[0], '?');
			continue;
		}
		assert_int_equal(strlen(text), size > length ? length : size - 1);
		assert_memory_equal(text, whole, strlen(text));
	}
	cpus = (struct cpus){ 0 };
	assert_int_equal(cpus_print(&cpus, text, sizeof(text)), 0);
	assert_string_equal(text, "");
}

static void test_beyond(void **state)
{
	struct cpus all, some, beyond;
	char text[32];

	(void)state;
	cpus_parse(&all, "0-100", 5);
	cpus_parse(&some, "3,64-100", 8);
	assert_false(cpus_beyond(&some, &all, &beyond));
	assert_int_equal(cpus_count(&beyond), 0);
	assert_true(cpus_beyond(&all, &some, &beyond));
	assert_int_equal(cpus_count(&beyond), 63);
	cpus_print(&beyond, text, sizeof(text));
	assert_string_equal(text, "0-2,4-63");
}

/* --- Threads ------------------------------------------------------------------------ */

/* The first two that this process may use; skips if there is only one. */
static void two_cpus(unsigned cpu[2])
{
	struct cpus cpus;
	unsigned found = 0;

	MUST(cpus_allowed(&cpus) == 0);
	for (unsigned i = 0; i < CPUS_MAX && found < 2; i++)
		if (has(&cpus, i))
			cpu[found++] = i;
	if (found < 2)
		child_skip("one CPU");
}

static void stay_on(unsigned cpu)
{
	cpu_set_t *set = CPU_ALLOC(CPUS_MAX);

	CPU_ZERO_S(CPU_ALLOC_SIZE(CPUS_MAX), set);
	CPU_SET_S(cpu, CPU_ALLOC_SIZE(CPUS_MAX), set);
	MUST(sched_setaffinity(0, CPU_ALLOC_SIZE(CPUS_MAX), set) == 0);
	CPU_FREE(set);
}

static unsigned allowed_now(struct cpus *cpus)
{
	MUST(cpus_allowed(cpus) == 0);
	return cpus_count(cpus);
}

static struct {
	unsigned cpu;
	pthread_barrier_t bar;
} other;

static void *other_thread(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&other.bar);
	pthread_barrier_wait(&other.bar);
	stay_on(other.cpu);
	pthread_barrier_wait(&other.bar);
	pthread_barrier_wait(&other.bar);
	return NULL;
}

/* One thread that may run elsewhere is enough, whichever it is. */
static void all_threads(const void *arg)
{
	unsigned cpu[2], whole;
	struct cpus cpus;
	pthread_t thread;

	(void)arg;
	if (CHILD_TSAN)
		child_skip("the sanitizer has a thread of its own");
	two_cpus(cpu);
	whole = allowed_now(&cpus);
	other.cpu = cpu[1];
	MUST(pthread_barrier_init(&other.bar, NULL, 2) == 0);
	MUST(pthread_create(&thread, NULL, other_thread, NULL) == 0);
	pthread_barrier_wait(&other.bar);
	stay_on(cpu[0]);
	MUST(allowed_now(&cpus) == whole);
	pthread_barrier_wait(&other.bar);
	pthread_barrier_wait(&other.bar);
	MUST(allowed_now(&cpus) == 2 && has(&cpus, cpu[0]) && has(&cpus, cpu[1]));
	pthread_barrier_wait(&other.bar);
	pthread_join(thread, NULL);
	/* The kernel may take a moment more to forget it. */
	for (unsigned i = 0; i < 10000 && allowed_now(&cpus) != 1; i++)
		usleep(1000);
	MUST(allowed_now(&cpus) == 1 && has(&cpus, cpu[0]));
}

/* Without /proc it is the calling thread that counts. */
static void no_proc(const void *arg)
{
	unsigned cpu[2];
	struct cpus cpus;

	(void)arg;
	two_cpus(cpu);
	stay_on(cpu[1]);
	child_filter(SYS_openat, 2, 0, SECCOMP_RET_ERRNO | ENOENT);
	MUST(allowed_now(&cpus) == 1 && has(&cpus, cpu[1]));
	child_filter(SYS_sched_getaffinity, 0, 0, SECCOMP_RET_ERRNO | EPERM);
	MUST(cpus_allowed(&cpus) == -ENODATA);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),	  cmocka_unit_test(test_refused),
		cmocka_unit_test(test_print_cut), cmocka_unit_test(test_beyond),
		child_unit_test(all_threads),	  child_unit_test(no_proc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
