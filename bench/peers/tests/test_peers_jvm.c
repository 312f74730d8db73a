/* SPDX-License-Identifier: MIT */
/*
 * The call sites of the Java virtual machine, if there is one. A machine takes seconds to start
 * and to warm up, so one peer stays open from the first test to the last. Below
 * TMAX_STRESS_SCALE=1 there is one kind of site.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>

#include "bench/cases/toggle/toggle.c"
#include "bench/tests/peer_checks.h"

#define MOST	  8 /* processes or threads that are looked at */
#define MANY	  2000
#define ASLEEP_NS 20000000 /* what a thread needs to start, and to go to sleep */

/* --- Processes and threads ------------------------------------------------------------------ */

static bool read_text(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, room - 1);

	if (fd >= 0)
		close(fd);
	text[got > 0 ? got : 0] = '\0';
	return got > 0;
}

static bool is_child(const char *pid)
{
	char path[64], text[512];
	const char *end;
	int parent = 0;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	if (!read_text(path, text, sizeof(text)))
		return false;
	end = strrchr(text, ')');
	return end && sscanf(end, ") %*c %d", &parent) == 1 && parent == (int)getpid();
}

static unsigned children(int pid[MOST])
{
	DIR *dir = opendir("/proc");
	unsigned count = 0;
	struct dirent *e;

	assert_non_null(dir);
	while ((e = readdir(dir)))
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && is_child(e->d_name)) {
			assert_true(count < MOST);
			pid[count++] = atoi(e->d_name);
		}
	closedir(dir);
	return count;
}

/* Patcher and executors each have one CPU. */
static void check_pinned(const char *task)
{
	cpu_set_t set;

	if (sched_getaffinity(atoi(task), sizeof(set), &set) == 0)
		assert_int_equal(CPU_COUNT(&set), 1);
}

static uint64_t task_ns(int pid, const char *task, const char *name)
{
	char path[96], text[128];
	unsigned long long ns = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%.20s/comm", pid, task);
	if (!read_text(path, text, sizeof(text)) || strncmp(text, name, strlen(name)))
		return 0;
	check_pinned(task);
	snprintf(path, sizeof(path), "/proc/%d/task/%.20s/schedstat", pid, task);
	assert_true(read_text(path, text, sizeof(text)));
	assert_int_equal(sscanf(text, "%llu", &ns), 1);
	return ns;
}

/* Time that all threads of that name have run. */
static uint64_t run_ns(int pid, const char *name)
{
	char path[64];
	uint64_t sum = 0;
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	assert_non_null(dir);
	while ((e = readdir(dir)))
		sum += task_ns(pid, e->d_name, name);
	closedir(dir);
	return sum;
}

/* The one of two whose patcher worked while so many changes were asked for. */
static int who_answers(struct peer *peer, bool hot, unsigned pairs)
{
	struct samples s[2] = { { 0 } };
	uint64_t before[2], after[2];
	char why[BENCH_WHY] = "";
	int pid[MOST];

	assert_int_equal(children(pid), 2);
	for (int i = 0; i < 2; i++)
		before[i] = run_ns(pid[i], "tmax-patcher");
	assert_int_equal(peer->toggle(peer, pairs, hot, s, why), 0);
	assert_int_equal(s[0].count, pairs);
	assert_int_equal(s[1].count, pairs);
	samples_free(&s[0]);
	samples_free(&s[1]);
	for (int i = 0; i < 2; i++)
		after[i] = run_ns(pid[i], "tmax-patcher") - before[i];
	return pid[after[1] > after[0]];
}

/* --- Tests ---------------------------------------------------------------------------------- */

/* Opened by the first test that asks. */
static struct peer *held(void)
{
	static struct peer *peer;

	if (!peer) {
		peer = peer_of("jvm-volatile-compiled");
		is_open(peer);
	}
	return peer->ret == 0 ? peer : NULL;
}

static bool is_short(void)
{
	const char *scale = getenv("TMAX_STRESS_SCALE");

	return scale && strtod(scale, NULL) < 1;
}

static void test_jvm_volatile(void **arg)
{
	(void)arg;
	if (!held())
		skip();
	check_all(peer_of("jvm-volatile"));
}

static void test_jvm_mutable(void **arg)
{
	(void)arg;
	if (!held() || is_short())
		skip();
	check_all(peer_of("jvm-mutable"));
}

/* Where the executor sleeps, it never ran; where it is hot, it did. */
static void test_not_hot(void **arg)
{
	struct peer *peer = peer_of("jvm-volatile");
	int still, hot;

	(void)arg;
	if (!held())
		skip();
	assert_true(is_open(peer));
	still = who_answers(peer, false, MANY);
	hot = who_answers(peer, true, 20);
	assert_int_not_equal(still, hot);
	assert_true(run_ns(still, "tmax-patcher") > 0);
	assert_true(run_ns(still, "tmax-executor") < ASLEEP_NS);
	assert_true(run_ns(hot, "tmax-executor") > 10 * (uint64_t)ASLEEP_NS);
	close_it(peer);
}

static void test_compiled(void **arg)
{
	struct peer *peer = held();
	struct samples s[2] = { { 0 } };
	char why[BENCH_WHY] = "";

	(void)arg;
	if (!peer)
		skip();
	check_toggle(peer, true);
	assert_int_equal(peer->toggle(peer, PAIRS, false, s, why), -ENOTSUP);
	check_reason(why);
	assert_int_equal(s[0].count, 0);
	assert_null(peer->flow);
	assert_null(peer->cost);
}

static unsigned listed(const struct toggle_list *list, const char *name, unsigned executors)
{
	unsigned count = 0;

	for (size_t i = 0; i < list->count; i++)
		count += list->spec[i].peer && !strcmp(list->spec[i].peer->name, name) &&
			 list->spec[i].executors == executors;
	return count;
}

/* What cannot be measured without an executor is no row, not one that is skipped. */
static void test_listed(void **arg)
{
	static struct toggle_list list;

	(void)arg;
	toggle_list_singles(&list);
	assert_int_equal(listed(&list, "jvm-volatile", 1), 1);
	assert_int_equal(listed(&list, "jvm-volatile", 0), 1);
	assert_int_equal(listed(&list, "jvm-mutable", 0), 1);
	assert_int_equal(listed(&list, "jvm-volatile-compiled", 1), 1);
	assert_int_equal(listed(&list, "jvm-volatile-compiled", 0), 0);
	assert_int_equal(listed(&list, "jvm-mutable-compiled", 1), 1);
	assert_int_equal(listed(&list, "jvm-mutable-compiled", 0), 0);
}

/* Two processes for all, until the last is closed. */
static void test_last_closes(void **arg)
{
	int pid[MOST];

	(void)arg;
	if (!held())
		skip();
	assert_int_equal(children(pid), 2);
	close_it(held());
	assert_int_equal(children(pid), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_listed),	    cmocka_unit_test(test_jvm_volatile),
		cmocka_unit_test(test_jvm_mutable), cmocka_unit_test(test_not_hot),
		cmocka_unit_test(test_compiled),    cmocka_unit_test(test_last_closes),
	};

	return cmocka_run_group_tests(tests, seat, unseat);
}
