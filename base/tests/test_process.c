/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/process.h"
#include "base/random.h"

#define SECONDS 10 /* for what answers at once */
#define SOON	3  /* seconds in which all that is to end has ended */

static const char *const echo[] = { "cat", NULL };

static struct process *start(const char *const argv[])
{
	char why[PROCESS_WHY] = "";
	struct process *p;

	assert_int_equal(process_start(&p, argv, NULL, why), 0);
	assert_string_equal(why, "");
	return p;
}

static struct process *script(const char *text)
{
	return start((const char *[]){ "sh", "-c", text, NULL });
}

static int ask(struct process *p, const char *request, char *why)
{
	struct process_reply reply = { 0 };
	int ret = process_ask(p, request, SECONDS, &reply, why);

	process_reply_free(&reply);
	return ret;
}

/* Gone, or dead and not yet waited for by the process that inherited it. */
static bool is_dead(pid_t pid)
{
	char path[64], state = 'X';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return true;
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 'X';
	fclose(file);
	return state == 'Z' || state == 'X';
}

static bool dies_soon(pid_t pid)
{
	double end = seconds_now() + SOON;

	while (!is_dead(pid) && seconds_now() < end)
		usleep(1000);
	return is_dead(pid);
}

/* --- Answers -------------------------------------------------------------------------------- */

static void test_numbers(void **arg)
{
	static const double expected[] = { 0, 1, 2.5, 123456789012345678.0, 0.000001 };
	struct process *p = start(echo);
	struct process_reply reply = { 0 };
	char why[PROCESS_WHY] = "";

	(void)arg;
	assert_int_equal(
		process_ask(p, "0 1\n2.5\n123456789012345678 0.000001\n.", SECONDS, &reply, why),
		0);
	assert_int_equal(reply.count, 5);
	for (size_t i = 0; i < 5; i++)
		assert_true(reply.value[i] == expected[i]);
	/* The next begins anew, and an answer may be empty. */
	assert_int_equal(process_ask(p, "7\n.", SECONDS, &reply, why), 0);
	assert_int_equal(reply.count, 1);
	assert_true(reply.value[0] == 7);
	assert_int_equal(process_ask(p, ".", SECONDS, &reply, why), 0);
	assert_int_equal(reply.count, 0);
	process_reply_free(&reply);
	process_end(p);
}

static void test_many_numbers(void **arg)
{
	struct process *p =
		script("read x; i=0; while [ $i -lt 5000 ]; do echo $i $i.5; i=$((i + 1)); "
		       "done; echo .; read x");
	struct process_reply reply = { 0 };
	char why[PROCESS_WHY] = "";

	(void)arg;
	assert_int_equal(process_ask(p, "go", SECONDS, &reply, why), 0);
	assert_int_equal(reply.count, 10000);
	for (size_t i = 0; i < 5000; i++) {
		assert_true(reply.value[2 * i] == (double)i);
		assert_true(reply.value[2 * i + 1] == (double)i + 0.5);
	}
	process_reply_free(&reply);
	process_end(p);
}

static void test_an_error_is_no_end(void **arg)
{
	struct process *p = start(echo);
	char why[PROCESS_WHY] = "";

	(void)arg;
	assert_int_equal(ask(p, "error not \a today", why), -EREMOTEIO);
	assert_string_equal(why, "cat: not ? today");
	assert_int_equal(ask(p, ".", why), 0);
	process_end(p);
}

static void refuse(const char *answer)
{
	struct process *p = start(echo);
	char why[PROCESS_WHY] = "", again[PROCESS_WHY] = "";
	pid_t pid = process_pid(p);

	if (ask(p, answer, why) != -EPROTO)
		fail_msg("taken for an answer: '%s'", answer);
	assert_non_null(strstr(why, "cat gave an answer that is none"));
	for (const char *c = why; *c; c++)
		assert_in_range(*c, ' ', '~');
	assert_true(is_dead(pid));
	assert_int_equal(ask(p, ".", again), -EPROTO);
	assert_string_equal(why, again);
	process_end(p);
}

static void test_garbage(void **arg)
{
	static const char *const answers[] = {
		"",	   "x",	  "1 2x",  "1  2", " 1",     "1 ",
		"-1",	   "+1",  "1e5",   "nan",  "inf",    "1.",
		".5",	   "1,5", "..",	   ". ",   "error",  "Error x",
		"1\t2",	   "1\r", "0x1f",  "\x01", "\xff 1", "1234567890123456789",
		"1.2.3",   "1 .", "1 . 2", "1 -2", "1\n\n2", "0.1234567890123456789",
		"1;2 %s%n"
	};
	char text[64];

	(void)arg;
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
		snprintf(text, sizeof(text), "%s\n.", answers[i]);
		refuse(text);
	}
}

static void test_endless_line(void **arg)
{
	char text[3 * PROCESS_LINE];

	(void)arg;
	memset(text, '1', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	refuse(text);
}

static void test_zero_byte(void **arg)
{
	struct process *p = script("read x; printf '1\\0002\\n.\\n'; read x");
	char why[PROCESS_WHY] = "";

	(void)arg;
	assert_int_equal(ask(p, "go", why), -EPROTO);
	process_end(p);
}

static void test_speaks_without_being_asked(void **arg)
{
	struct process *p = start(echo);
	char why[PROCESS_WHY] = "";

	(void)arg;
	assert_int_equal(ask(p, "1\n.\n2\n.", why), 0);
	assert_int_equal(ask(p, ".", why), -EPROTO);
	process_end(p);
}

/* --- Garbage by the dozen, against a grammar that was written another way --------------------- */

#define NUMBER "[0-9]{1,18}([.][0-9]{1,18})?"

static int judge(const regex_t *numbers, char *text)
{
	char *line, *rest = text;

	while ((line = strsep(&rest, "\n"))) {
		if (!strcmp(line, "."))
			return 0;
		if (!strncmp(line, "error ", 6))
			return -EREMOTEIO;
		if (regexec(numbers, line, 0, NULL, 0))
			return -EPROTO;
	}
	return -EPROTO;
}

static void make_answer(char *text, size_t size, uint64_t *state)
{
	static const char *const pieces[] = { "1",  "27", "0.5", " ",  " ", "\n",     "\n",
					      "\n", ".",  "-",	 "1e", "x", "error ", "99999999" };
	size_t count = random_next(state) % 8, length = 0;

	text[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		const char *piece = pieces[random_next(state) % 14];

		length += (size_t)snprintf(text + length, size - length, "%s", piece);
	}
	snprintf(text + length, size - length, "\n.");
}

static void test_fuzz(void **arg)
{
	unsigned seen[3] = { 0 };
	uint64_t state = 20;
	regex_t numbers;

	(void)arg;
	assert_int_equal(regcomp(&numbers, "^" NUMBER "( " NUMBER ")*$", REG_EXTENDED), 0);
	for (int i = 0; i < 300; i++) {
		struct process *p = start(echo);
		char text[128], copy[128], why[PROCESS_WHY] = "";
		int expected, ret;

		make_answer(text, sizeof(text), &state);
		memcpy(copy, text, sizeof(copy));
		expected = judge(&numbers, copy);
		ret = ask(p, text, why);
		if (ret != expected)
			fail_msg("%d instead of %d for '%s': %s", ret, expected, text, why);
		seen[ret == 0 ? 0 : ret == -EPROTO ? 1 : 2]++;
		process_end(p);
	}
	regfree(&numbers);
	for (int i = 0; i < 3; i++)
		assert_in_range(seen[i], 10, 300);
}

/* --- Ends ----------------------------------------------------------------------------------- */

static void test_dies_with_words(void **arg)
{
	struct process *p = script("read x; echo first >&2; echo 'no more  ink' >&2; exit 3");
	char why[PROCESS_WHY] = "", again[PROCESS_WHY] = "";

	(void)arg;
	assert_int_equal(ask(p, "go", why), -EPIPE);
	assert_string_equal(why, "sh ended with status 3: no more  ink");
	assert_int_equal(ask(p, "go", again), -EPIPE);
	assert_string_equal(again, why);
	process_end(p);
}

static void test_dies_within_an_answer(void **arg)
{
	struct process *p = script("read x; echo 1; printf 2; kill -9 $$");
	char why[PROCESS_WHY] = "";

	(void)arg;
	assert_int_equal(ask(p, "go", why), -EPIPE);
	assert_string_equal(why, "sh was ended by signal 9");
	process_end(p);
}

/* The write fails, and no SIGPIPE ends this program. */
static void test_died_before_it_was_asked(void **arg)
{
	struct process *p = script("exit 0");
	char why[PROCESS_WHY] = "";
	pid_t pid = process_pid(p);

	(void)arg;
	assert_true(dies_soon(pid));
	assert_int_equal(ask(p, "go", why), -EPIPE);
	assert_string_equal(why, "sh ended with status 0");
	process_end(p);
}

static void test_hangs(void **arg)
{
	struct process *p = script("sleep 1000 & echo $!; echo lost >&2; echo .; wait");
	struct process_reply reply = { 0 };
	char why[PROCESS_WHY] = "";
	double begin = seconds_now();
	pid_t child;

	(void)arg;
	assert_int_equal(process_ask(p, NULL, SECONDS, &reply, why), 0);
	assert_int_equal(reply.count, 1);
	child = (pid_t)reply.value[0];
	assert_false(is_dead(child));
	assert_int_equal(process_ask(p, "go", 0.2, &reply, why), -ETIMEDOUT);
	assert_string_equal(why, "sh gave no answer in 0.2 s: lost");
	assert_true(seconds_now() - begin < SOON);
	assert_true(dies_soon(child)); /* all of the group */
	process_reply_free(&reply);
	process_end(p);
}

static void test_stop(void **arg)
{
	volatile sig_atomic_t stop = 0;
	char why[PROCESS_WHY] = "";
	struct process *p;

	(void)arg;
	assert_int_equal(process_start(&p, echo, &stop, why), 0);
	assert_int_equal(ask(p, ".", why), 0);
	stop = 1;
	assert_int_equal(ask(p, "1", why), -EINTR);
	assert_string_equal(why, "interrupted");
	process_end(p);
}

static void test_no_such_program(void **arg)
{
	char why[PROCESS_WHY] = "";
	struct process *p = NULL;

	(void)arg;
	assert_int_equal(
		process_start(&p, (const char *[]){ "no-such-program-here", NULL }, NULL, why),
		-ENOENT);
	assert_string_equal(why, "cannot run no-such-program-here: No such file or directory");
	assert_null(p);
}

static void test_end_of_one_that_will_not(void **arg)
{
	struct process *p = script("trap '' TERM HUP PIPE; while :; do sleep 0.05; done");
	pid_t pid = process_pid(p);
	double begin = seconds_now();

	(void)arg;
	process_end(p);
	assert_true(is_dead(pid));
	assert_true(seconds_now() - begin < SOON);
	process_end(NULL);
}

static void *start_and_leave(void *arg)
{
	struct process **p = arg;

	*p = start((const char *[]){ "sleep", "1000", NULL });
	return NULL;
}

static void test_does_not_outlive_its_thread(void **arg)
{
	struct process *p;
	pthread_t thread;

	(void)arg;
	assert_int_equal(pthread_create(&thread, NULL, start_and_leave, &p), 0);
	pthread_join(thread, NULL);
	assert_true(dies_soon(process_pid(p)));
	process_end(p);
}

/* Nothing of ours is open in it: a descriptor without the flag, and the socket's other end. */
static void test_inherits_nothing(void **arg)
{
	int fd = fcntl(STDERR_FILENO, F_DUPFD, 100); /* unlike any that the shell opens */
	struct process *p =
		script("for f in /proc/$$/fd/*; do echo ${f##*/}; done; echo .; read x");
	struct process_reply reply = { 0 };
	char why[PROCESS_WHY] = "";

	(void)arg;
	assert_true(fd >= 100);
	assert_int_equal(process_ask(p, NULL, SECONDS, &reply, why), 0);
	for (size_t i = 0; i < reply.count; i++)
		assert_true(reply.value[i] != (double)fd);
	process_reply_free(&reply);
	process_end(p);
	close(fd);
}

/* --- Programs that end ---------------------------------------------------------------------- */

static int run_script(const char *text, double seconds, char *why)
{
	return process_run((const char *[]){ "sh", "-c", text, NULL }, seconds, NULL, why);
}

static void test_run(void **arg)
{
	char why[PROCESS_WHY] = "";

	(void)arg;
	assert_int_equal(run_script("echo much; echo more; exit 0", SECONDS, why), 0);
	assert_string_equal(why, "");
	assert_int_equal(
		run_script("echo a.c:1: error >&2; echo 1 error >&2; exit 1", SECONDS, why), -EIO);
	assert_string_equal(why, "sh: a.c:1: error");
	assert_int_equal(run_script("exit 1", SECONDS, why), -EIO);
	assert_string_equal(why, "sh: it failed without a word");
	assert_int_equal(run_script("sleep 1000", 0.1, why), -ETIMEDOUT);
	assert_non_null(strstr(why, "no answer in 0.1 s"));
	assert_int_equal(
		process_run((const char *[]){ "no-such-program-here", NULL }, 1, NULL, why),
		-ENOENT);
}

/* More than a socket holds: neither end may wait for the other for ever. */
static void test_run_says_much(void **arg)
{
	char why[PROCESS_WHY] = "";

	(void)arg;
	assert_int_equal(run_script("head -c 3000000 /dev/zero; exit 0", SECONDS, why), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_many_numbers),
		cmocka_unit_test(test_an_error_is_no_end),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_endless_line),
		cmocka_unit_test(test_zero_byte),
		cmocka_unit_test(test_speaks_without_being_asked),
		cmocka_unit_test(test_fuzz),
		cmocka_unit_test(test_dies_with_words),
		cmocka_unit_test(test_dies_within_an_answer),
		cmocka_unit_test(test_died_before_it_was_asked),
		cmocka_unit_test(test_hangs),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_no_such_program),
		cmocka_unit_test(test_end_of_one_that_will_not),
		cmocka_unit_test(test_does_not_outlive_its_thread),
		cmocka_unit_test(test_inherits_nothing),
		cmocka_unit_test(test_run),
		cmocka_unit_test(test_run_says_much),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
