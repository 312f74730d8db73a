/* SPDX-License-Identifier: MIT */
/*
 * Counting instructions by callgrind. This program is also what is counted: it runs itself.
 */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/method/count.h"
#include "bench/method/result.h"
#include "patchcore/tests/child.h"
#include "stress/base/clock.h"

#define SELF "/proc/self/exe"

static char folder[] = "/tmp/count-XXXXXX";

/* --- What is counted ------------------------------------------------------------------------ */

/* Two instructions each. */
static void spin(unsigned long times)
{
	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(times) : : "cc");
}

/* A grandchild that outlives its parent, and has the log open if it was left to it. */
static int leave_a_child(void)
{
	if (fork() == 0) {
		sleep(30);
		_exit(0);
	}
	return 0;
}

static int be_counted(const char *what, const char *how)
{
	if (strcmp(what, "spin") == 0)
		spin(strtoul(how, NULL, 10));
	else if (strcmp(what, "exit") == 0)
		return atoi(how);
	else if (strcmp(what, "crash") == 0)
		raise(SIGSEGV);
	else if (strcmp(what, "hang") == 0)
		sleep(30);
	else if (strcmp(what, "lie") == 0)
		for (int fd = 1; fd <= 2; fd++)
			dprintf(fd, "==%d== Collected : 7\n", (int)getpid());
	else if (strcmp(what, "leave") == 0)
		return leave_a_child();
	return 0;
}

/* --- Counting it ---------------------------------------------------------------------------- */

static int count(const char *what, const char *how, double seconds, uint64_t *n, char *why)
{
	char *const argv[] = { (char *)(uintptr_t)SELF, (char *)(uintptr_t)what,
			       (char *)(uintptr_t)how, NULL };

	return count_instructions_within(argv, seconds, n, why);
}

static uint64_t counted(const char *what, const char *how)
{
	char why[BENCH_WHY];
	uint64_t n = 0;
	int ret = count(what, how, COUNT_SECONDS, &n, why);

	if (ret < 0)
		fail_msg("%s %s: %d, %s", what, how, ret, why);
	return n;
}

static unsigned files_in(const char *path)
{
	DIR *dir = opendir(path);
	unsigned files = 0;

	assert_non_null(dir);
	while (readdir(dir))
		files++;
	closedir(dir);
	return files;
}

/* Nothing with the address sanitizer runs under valgrind: both want the same addresses. */
static int have_valgrind(void **state)
{
	(void)state;
	if (CHILD_ASAN)
		return -1;
	return system("valgrind --version >/dev/null 2>&1") == 0 ? 0 : -1;
}

#define NEEDS_VALGRIND()                                                                           \
	do {                                                                                       \
		if (have_valgrind(NULL) < 0)                                                       \
			skip();                                                                    \
	} while (0)

static void what_runs_longer_has_just_that_much_more(void **state)
{
	uint64_t some, more;

	(void)state;
	NEEDS_VALGRIND();
	some = counted("spin", "100000");
	more = counted("spin", "300000");
	assert_true(some > 200000);
	assert_in_range(more - some, 399000, 401000);
}

static void the_same_twice_is_the_same(void **state)
{
	char *const argv[] = { (char *)(uintptr_t) "true", NULL };
	uint64_t first = 0, second = 0;
	char why[BENCH_WHY];

	(void)state;
	NEEDS_VALGRIND();
	assert_int_equal(count_instructions(argv, &first, why), 0);
	assert_int_equal(count_instructions(argv, &second, why), 0);
	assert_true(first > 1000);
	assert_in_range(second, first - first / 100, first + first / 100);
}

/* What the program prints goes nowhere, so it is not taken for the count. */
static void the_program_is_not_believed(void **state)
{
	(void)state;
	NEEDS_VALGRIND();
	assert_true(counted("lie", "") > 1000);
}

static void a_failure_says_why(void **state)
{
	char *const nobody[] = { (char *)(uintptr_t) "/nonexistent/program", NULL };
	char *const nothing[] = { NULL };
	uint64_t n = 42;
	char why[BENCH_WHY];

	(void)state;
	assert_int_equal(count_instructions(nothing, &n, why), -EINVAL);
	NEEDS_VALGRIND();
	assert_int_equal(count("exit", "3", 60, &n, why), -ECHILD);
	assert_non_null(strstr(why, "exit status 3"));
	assert_int_equal(count("crash", "", 60, &n, why), -ECHILD);
	assert_non_null(strstr(why, "signal 11"));
	assert_int_equal(count_instructions(nobody, &n, why), -ECHILD);
	assert_non_null(strstr(why, "/nonexistent/program"));
	assert_int_equal(n, 42);
}

static void without_valgrind_it_says_so(void **state)
{
	char *path = getenv("PATH");
	char kept[4096], why[BENCH_WHY];
	uint64_t n = 42;
	int ret;

	(void)state;
	snprintf(kept, sizeof(kept), "%s", path ? path : "/usr/bin:/bin");
	setenv("PATH", folder, 1);
	ret = count("exit", "0", 60, &n, why);
	setenv("PATH", kept, 1);
	assert_int_equal(ret, -ENOENT);
	assert_non_null(strstr(why, "no valgrind"));
	assert_int_equal(n, 42);
}

/* A valgrind that runs, and has nothing to tell. */
static void a_log_without_a_count_is_no_count(void **state)
{
	char *path = getenv("PATH");
	char kept[4096], fake[64], why[BENCH_WHY];
	uint64_t n = 42;
	FILE *script;
	int ret;

	(void)state;
	snprintf(kept, sizeof(kept), "%s", path ? path : "/usr/bin:/bin");
	snprintf(fake, sizeof(fake), "%s/valgrind", folder);
	script = fopen(fake, "w");
	assert_non_null(script);
	/* The count of some other process does not count, nor what is printed elsewhere. */
	fputs("#!/bin/sh\n[ \"$LC_ALL\" = C ] || exit 9\n[ -z \"$DEBUGINFOD_URLS\" ] || exit 8\n"
	      "echo '==1== Collected : 5' >&3\necho 'some words' >&3\n"
	      "echo \"==$$== Collected : 5\"\necho \"==$$== Collected : 5\" >&2\n",
	      script);
	fclose(script);
	chmod(fake, 0755);
	setenv("DEBUGINFOD_URLS", "http://localhost:1", 1);
	setenv("PATH", folder, 1);
	ret = count("exit", "0", 60, &n, why);
	setenv("PATH", kept, 1);
	unlink(fake);
	assert_int_equal(ret, -EPROTO);
	assert_non_null(strstr(why, "some words"));
	assert_int_equal(n, 42);
}

static void what_hangs_is_ended(void **state)
{
	double begin = seconds_now();
	char why[BENCH_WHY];
	uint64_t n = 42;

	(void)state;
	NEEDS_VALGRIND();
	assert_int_equal(count("hang", "", 0.5, &n, why), -ETIMEDOUT);
	assert_true(seconds_now() - begin < 10);
	assert_non_null(strstr(why, "0.5 s"));
	assert_int_equal(n, 42);
}

/* Else the log would not end before it does. */
static void what_it_started_is_not_waited_for(void **state)
{
	double begin = seconds_now();

	(void)state;
	NEEDS_VALGRIND();
	assert_true(counted("leave", "") > 1000);
	assert_true(seconds_now() - begin < 20);
}

static void on_alarm(int number)
{
	(void)number;
}

static void a_signal_interrupts(void **state)
{
	const struct itimerval soon = { .it_value = { .tv_usec = 400000 } };
	struct sigaction action = { .sa_handler = on_alarm }, old;
	char why[BENCH_WHY];
	uint64_t n;
	int ret;

	(void)state;
	NEEDS_VALGRIND();
	sigaction(SIGALRM, &action, &old);
	setitimer(ITIMER_REAL, &soon, NULL);
	ret = count("hang", "", 20, &n, why);
	sigaction(SIGALRM, &old, NULL);
	assert_int_equal(ret, -EINTR);
}

/* Of none of the above: neither here nor among the temporary ones, also not when it crashes. */
static void no_file_is_left(void **state)
{
	char here[4096], why[BENCH_WHY];
	uint64_t n;

	(void)state;
	NEEDS_VALGRIND();
	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(chdir(folder), 0);
	setenv("TMPDIR", folder, 1);
	counted("exit", "0");
	count("crash", "", 60, &n, why);
	count("hang", "", 0.5, &n, why);
	unsetenv("TMPDIR");
	assert_int_equal(files_in(folder), 2);
	assert_int_equal(chdir(here), 0);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_runs_longer_has_just_that_much_more),
		cmocka_unit_test(the_same_twice_is_the_same),
		cmocka_unit_test(the_program_is_not_believed),
		cmocka_unit_test(a_failure_says_why),
		cmocka_unit_test(without_valgrind_it_says_so),
		cmocka_unit_test(a_log_without_a_count_is_no_count),
		cmocka_unit_test(what_hangs_is_ended),
		cmocka_unit_test(what_it_started_is_not_waited_for),
		cmocka_unit_test(a_signal_interrupts),
		cmocka_unit_test(no_file_is_left),
	};

	if (argc > 2)
		return be_counted(argv[1], argv[2]);
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
