/* SPDX-License-Identifier: MIT */
/*
 * A day in the life of a program that is patched: see day.h.
 *
 * usage: day [OPTION]...
 *	-s SECONDS  of work, a third of it to warm up (3)
 *	-r SEED     what each worker does follows from it (1); when, does not
 *	-p POLICY   membarrier (default) or wait, with long waits
 *	-m MAPPING  protect (default), open or alias
 *	-w WORKERS  1 to 8 (4)
 *	-o ACTION   only that, and others named so
 *	-x ACTION   all but that, and others named so
 *	-b          broken on purpose: bare stores in the place of pc_patch()
 *	-l FILE     the library to load (patchcore/tests/day/.libs/day_library.so)
 *	-t SECONDS  without progress of a worker are a hang (20), if a process without the
 *		    library gets on
 *	-k          what hangs is left to a debugger
 *
 * Prints what was done, what was seen, and what is held at the end against after
 * the warm-up. Exit status: 0 all is well; 1 torn, hung, leaked, died, or an error of
 * a call that should have none; 64 usage; 77 cannot be run here.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "patchcore/async.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/conf_sample.h"
#include "patchcore/tests/day/day.h"

#define WAIT_TICKS   20000u
#define TEAR_RATE    2e-6 /* per change under policy wait: see storm.c */
#define CHANCE	     1e-8
#define ROUND	     200u
#define ERRORS_TOLD  20u
#define USAGE	     64
#define SLACK_PAGES  128 /* of resident memory */
#define SLACK_MAPS   8	 /* threads that met where they had not before */
#define TICK_US	     20000u
#define SLEEP_US     20000u
#define LATE	     60 /* seconds beyond what was asked for */
#define NANOSECONDS  1000000000
#define MICROSECONDS 1000

struct day_shared *day;
struct day_options day_options = {
	.seconds = 3,
	.seed = 1,
	.policy = PC_POLICY_MEMBARRIER,
	.workers = 4,
	.hang = 20,
	.library = "patchcore/tests/day/.libs/day_library.so",
};
struct day_worker day_workers[DAY_SLOTS];

static struct day_action *actions[DAY_ACTIONS];
static unsigned action_count, weight_sum;

/* --- For all files -------------------------------------------------------------------------- */

void day_add(struct day_seen *seen)
{
	const uint64_t *from = (const uint64_t *)seen;
	uint64_t *to = (uint64_t *)&day->seen;

	for (size_t i = 0; i < sizeof(*seen) / sizeof(*from); i++)
		if (from[i])
			__atomic_fetch_add(&to[i], from[i], __ATOMIC_RELAXED);
	*seen = (struct day_seen){ 0 };
}

void day_error(struct day_worker *w, const char *format, ...)
{
	char text[256];
	va_list args;
	int cancel;

	if (atomic_fetch_add(&day->errors, 1) >= ERRORS_TOLD)
		return;
	/* A stream that dprintf() has on its stack would stay in libc's list. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	dprintf(1, "WRONG: %s%s%s\n", w ? atomic_load(&w->slot->doing) : "", w ? ": " : "", text);
	pthread_setcancelstate(cancel, NULL);
}

void day_sleep(unsigned us)
{
	struct timespec some = { .tv_nsec = (long)us * MICROSECONDS };

	nanosleep(&some, NULL);
}

static double now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / NANOSECONDS;
}

/* --- Threads -------------------------------------------------------------------------------- */

static struct day_action *pick_action(struct day_worker *w)
{
	unsigned at = day_below(w, weight_sum);

	for (unsigned i = 0;; i++) {
		if (at < actions[i]->weight) {
			atomic_fetch_add_explicit(&day->done[i], 1, memory_order_relaxed);
			return actions[i];
		}
		at -= actions[i]->weight;
	}
}

static void note_progress(struct day_slot *slot)
{
	atomic_fetch_add_explicit(&slot->progress, 1, memory_order_relaxed);
}

static pthread_barrier_t all_there;

static void arrive(struct day_worker *w)
{
	atomic_store(&w->slot->tid, (int)syscall(SYS_gettid));
	day_life_ready(w);
	pthread_barrier_wait(&all_there);
}

static void *worker(void *arg)
{
	struct day_worker *w = arg;

	arrive(w);
	while (!day_stopped()) {
		struct day_action *action = pick_action(w);

		atomic_store(&w->slot->doing, action->name);
		day_step(w, "");
		action->fn(w);
		day_add(&w->seen);
		note_progress(w->slot);
		if (day_below(w, 4) == 0)
			atomic_store(&day->focus, day_below(w, day_site_count));
	}
	atomic_store(&w->slot->tid, 0);
	return NULL;
}

static void *executor(void *arg)
{
	struct day_worker *w = arg;

	arrive(w);
	atomic_store(&w->slot->doing, "execute");
	while (!day_stopped()) {
		day_run(day_pick_any(w), ROUND, &w->seen);
		day_libraries_run(&w->seen);
		day_add(&w->seen);
		note_progress(w->slot);
	}
	atomic_store(&w->slot->tid, 0);
	return NULL;
}

/* Each a few times. */
static bool all_done(void)
{
	for (unsigned i = 0; i < action_count; i++)
		if (actions[i]->weight && atomic_load(&day->done[i]) < 2)
			return false;
	return true;
}

/* The first are workers. At least so long, and at most until all has been done. */
static void work_for(const char *phase, double at_least, double at_most)
{
	unsigned threads = day_options.workers + DAY_EXECUTORS;
	double start = now();

	atomic_store(&day->main.doing, phase);
	atomic_store(&day->stop, false);
	pthread_barrier_init(&all_there, NULL, threads + 1);
	for (unsigned i = 0; i < threads; i++) {
		struct day_worker *w = &day_workers[i];
		bool works = i < day_options.workers;

		MUST(pthread_create(&w->thread, NULL, works ? worker : executor, w) == 0);
	}
	pthread_barrier_wait(&all_there);
	while (now() < start + at_least || (now() < start + at_most && !all_done())) {
		day_sleep(SLEEP_US);
		note_progress(&day->main);
	}
	atomic_store(&day->stop, true);
	for (unsigned i = 0; i < threads; i++) {
		atomic_store(&day->main.step, "join");
		pthread_join(day_workers[i].thread, NULL);
		note_progress(&day->main);
	}
	pthread_barrier_destroy(&all_there);
}

/* --- What is held ---------------------------------------------------------------------------- */

struct held {
	long pages; /* resident */
	long mappings;
	long files;
};

static long count_lines(const char *path)
{
	FILE *file = fopen(path, "re");
	long lines = 0;
	int c;

	while (file && (c = getc(file)) != EOF)
		lines += c == '\n';
	if (file)
		fclose(file);
	return lines;
}

static long count_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	long files = 0;

	while (dir && readdir(dir))
		files++;
	if (dir)
		closedir(dir);
	return files;
}

static struct held held_now(void)
{
	struct held held = { .mappings = count_lines("/proc/self/maps"), .files = count_files() };
	FILE *file = fopen("/proc/self/statm", "re");

	if (!file || fscanf(file, "%*d %ld", &held.pages) != 1)
		held.pages = -1;
	if (file)
		fclose(file);
	return held;
}

/* Nothing is at work and nothing in flight. */
static struct held held_at_rest(struct day_worker *w)
{
	atomic_store(&day->main.step, "pc_drain");
	DAY_MUST(w, pc_drain() == 0);
	atomic_store(&day->main.step, "check");
	if (!day_options.broken)
		day_code_check(w);
	malloc_trim(0);
	note_progress(&day->main);
	return held_now();
}

static void compare_held(struct day_worker *w, const struct held *before, const struct held *after)
{
	printf("held: resident pages %ld to %ld, mappings %ld to %ld, files %ld to %ld\n",
	       before->pages, after->pages, before->mappings, after->mappings, before->files,
	       after->files);
	fflush(stdout);
	DAY_MUST(w, after->pages <= before->pages + SLACK_PAGES);
	DAY_MUST(w, after->mappings <= before->mappings + SLACK_MAPS);
	DAY_MUST(w, after->files == before->files);
}

/* --- The process whose day it is -------------------------------------------------------------- */

static void begin_library(void)
{
	struct machine_conf conf = conf_here();

	conf.level[0].waits.first = conf.level[0].waits.second = WAIT_TICKS;
	conf_use(&conf);
	MUST(pc_init() == 0);
	if (pc_set_policy(day_options.policy) < 0)
		child_skip("the policy is not to be had here");
	if (!day_code_begin())
		child_skip("the mapping is not to be had here");
}

static void prepare(void)
{
	for (unsigned i = 0; i < DAY_SLOTS; i++)
		day_workers[i] = (struct day_worker){
			.index = i,
			.slot = &day->slot[i],
			.random = (day_options.seed + 1) * UINT64_C(0x9e3779b97f4a7c15) + i * 7919,
		};
	/* Memory of threads that are gone is found again. */
	mallopt(M_ARENA_MAX, 1);
	day_code_build();
	begin_library();
	day_life_begin();
}

static int live_day(void)
{
	static struct day_worker self;
	struct held before, after;

	setpgid(0, 0);
	if (!day_options.keep)
		alarm((unsigned)day_options.seconds * 2 + LATE);
	self.slot = &day->main;
	atomic_store(&day->main.doing, "begin");
	prepare();
	work_for("warm-up", day_options.seconds / 3, day_options.seconds);
	before = held_at_rest(&self);
	work_for("day", day_options.seconds * 2 / 3, 0);
	after = held_at_rest(&self);
	if (!day_options.broken)
		compare_held(&self, &before, &after);
	day_code_end(&self);
	atomic_store(&day->main.step, "pc_fini");
	DAY_MUST(&self, pc_fini() == 0);
	day_life_end();
	return 0;
}

/* --- The monitor ------------------------------------------------------------------------------ */

/* All of a file on one line. The kernel's stack needs root. */
static void tell_file(pid_t pid, int tid, const char *name)
{
	char path[64], text[1024];
	size_t length = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, tid, name);
	file = fopen(path, "re");
	if (file) {
		length = fread(text, 1, sizeof(text) - 1, file);
		fclose(file);
	}
	text[length] = '\0';
	for (char *end = text; (end = strchr(end, '\n'));)
		*end = ' ';
	printf(" %s: %s;", name, text);
}

static void tell_threads(pid_t pid)
{
	static const char *const files[] = { "comm", "wchan", "syscall", "stat", "stack" };
	char path[32];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		printf("  process %d thread %s", (int)pid, entry->d_name);
		for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++)
			tell_file(pid, atoi(entry->d_name), files[i]);
		puts("");
	}
	if (dir)
		closedir(dir);
}

/* Children are of its group, also those that share its memory. */
static void tell_group(pid_t pid)
{
	struct dirent *entry;
	DIR *dir = opendir("/proc");

	while (dir && (entry = readdir(dir))) {
		pid_t other = (pid_t)atoi(entry->d_name);

		if (other > 0 && getpgid(other) == pid)
			tell_threads(other);
	}
	if (dir)
		closedir(dir);
}

static void tell_slot(const char *what, unsigned i, const struct day_slot *slot)
{
	const char *doing = atomic_load(&slot->doing), *step = atomic_load(&slot->step);
	const char *child = atomic_load(&slot->child_step);

	printf("  %s %u, thread %d: %llu actions, now '%s', at '%s', its child at '%s'\n", what, i,
	       atomic_load(&slot->tid), (unsigned long long)atomic_load(&slot->progress),
	       doing ? doing : "", step ? step : "", child ? child : "");
}

static void tell_all(pid_t pid)
{
	tell_slot("main", 0, &day->main);
	for (unsigned i = 0; i < day_options.workers + DAY_EXECUTORS; i++)
		tell_slot(i < day_options.workers ? "worker" : "executor", i, &day->slot[i]);
	tell_group(pid);
	puts("sites with an INT3:");
	day_code_tell(pid);
	fflush(stdout);
}

/*
 * A process that has nothing of the library and does what a day waits for in the kernel: it forks,
 * and changes the rights of a page. Where the kernel holds up all forks (a uprobe that is
 * registered meanwhile on a starved machine has done so for half a minute), it gets on no more than
 * the day.
 */
static pid_t start_control(void)
{
	pid_t day_monitor = getpid(), pid = fork();
	uint8_t *page;

	if (pid != 0)
		return pid;
	page = mmap(NULL, CODE_PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	while (getppid() == day_monitor) {
		pid_t child = fork();

		if (child == 0)
			_exit(0);
		mprotect(page, CODE_PAGE, PROT_READ | PROT_WRITE);
		mprotect(page, CODE_PAGE, PROT_READ);
		waitpid(child, NULL, 0);
		atomic_fetch_add(&day->control, 1);
		day_sleep(TICK_US);
	}
	_exit(0);
}

/* Seconds during which the control got on: the rest is the machine's. */
static double fair_time(void)
{
	static double last, seen_at, fair;
	static uint64_t seen;
	uint64_t progress = atomic_load(&day->control);
	double t = now();

	if (progress != seen) {
		seen = progress;
		seen_at = t;
	}
	if (last > 0 && t - seen_at < 1)
		fair += t - last;
	last = t;
	return fair;
}

/* Has each made progress of late? */
static bool has_hung(void)
{
	static struct {
		uint64_t progress;
		double since;
	} last[DAY_SLOTS + 1];
	double fair = fair_time();

	for (unsigned i = 0; i <= DAY_SLOTS; i++) {
		const struct day_slot *slot = i < DAY_SLOTS ? &day->slot[i] : &day->main;
		uint64_t progress = atomic_load(&slot->progress);

		if (progress != last[i].progress ||
		    (i < DAY_SLOTS && atomic_load(&slot->tid) == 0)) {
			last[i].progress = progress;
			last[i].since = fair;
		} else if (fair - last[i].since > day_options.hang) {
			return true;
		}
	}
	return false;
}

static void end_all(pid_t pid)
{
	if (day_options.keep) {
		printf("kept: %d\n", (int)pid);
		fflush(stdout);
		pause();
	}
	kill(-pid, SIGKILL);
	kill(pid, SIGKILL);
}

/* The exit status. */
static int watch_day(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		day_sleep(TICK_US);
		if (!has_hung())
			continue;
		puts("HUNG:");
		tell_all(pid);
		end_all(pid);
		waitpid(pid, &status, 0);
		return 1;
	}
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	printf("DIED of signal %d (%s):\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
	tell_all(pid);
	kill(-pid, SIGKILL);
	return 1;
}

/* As many as come by chance at the rate that storms have seen; none but under wait. */
static uint64_t tears_allowed(void)
{
	double expected = TEAR_RATE * (double)day->seen.changes;
	double term = exp(-expected), more = 1 - term;
	uint64_t allowed = 0;

	if (day_options.policy != PC_POLICY_WAIT)
		return 0;
	while (more > CHANCE) {
		term *= expected / (double)++allowed;
		more -= term;
	}
	return allowed;
}

static void report(double seconds)
{
	static const char *const mappings[] = { "protect", "open", "alias" };
	const struct day_seen *seen = &day->seen;

	printf("%s, %s, seed %llu, %.1f s:",
	       day_options.policy == PC_POLICY_WAIT ? "wait" : "membarrier",
	       mappings[day_options.mapping], (unsigned long long)day_options.seed, seconds);
	for (unsigned i = 0; i < action_count; i++)
		printf(" %s %llu", actions[i]->name,
		       (unsigned long long)atomic_load(&day->done[i]));
	printf("\n%llu changes, %llu refused, %llu signals handled, %llu executions = "
	       "%llu old + %llu new + %llu off + %llu between + %llu torn (%llu allowed), "
	       "%llu errors\n",
	       (unsigned long long)seen->changes, (unsigned long long)seen->refused,
	       (unsigned long long)seen->handled, (unsigned long long)seen->executions,
	       (unsigned long long)seen->ran[0], (unsigned long long)seen->ran[1],
	       (unsigned long long)seen->ran[2], (unsigned long long)seen->between,
	       (unsigned long long)seen->torn, (unsigned long long)tears_allowed(),
	       (unsigned long long)atomic_load(&day->errors));
	fflush(stdout);
}

/* --- Options ---------------------------------------------------------------------------------- */

static void list_actions(struct day_action *from)
{
	for (; from->name; from++)
		actions[action_count++] = from;
}

static struct day_action *find_action(const char *name)
{
	for (unsigned i = 0; i < action_count; i++)
		if (strcmp(actions[i]->name, name) == 0)
			return actions[i];
	return NULL;
}

/* The first that is named with -o leaves out all others. */
static bool choose_action(const char *name, bool only)
{
	static bool chosen;
	struct day_action *action = find_action(name);

	for (unsigned i = 0; only && !chosen && i < action_count; i++)
		actions[i]->left_out = true;
	chosen |= only;
	if (action)
		action->left_out = !only;
	return action != NULL;
}

static bool choose_mapping(const char *name)
{
	if (strcmp(name, "protect") == 0)
		day_options.mapping = DAY_PROTECT;
	else if (strcmp(name, "open") == 0)
		day_options.mapping = DAY_OPEN;
	else if (strcmp(name, "alias") == 0)
		day_options.mapping = DAY_ALIAS;
	else
		return false;
	return true;
}

static bool choose_policy(const char *name)
{
	day_options.policy = strcmp(name, "wait") == 0 ? PC_POLICY_WAIT : PC_POLICY_MEMBARRIER;
	return strcmp(name, "wait") == 0 || strcmp(name, "membarrier") == 0;
}

/* What may go on while code is changed without a library. */
static bool choose_broken(void)
{
	day_options.broken = true;
	day_options.mapping = DAY_OPEN;
	return choose_action("patch", true) && choose_action("send", true) &&
	       choose_action("handler", true) && choose_action("fork", true);
}

static bool take_option(int option, const char *value)
{
	switch (option) {
	case 's':
		return (day_options.seconds = atof(value)) > 0;
	case 'r':
		day_options.seed = strtoull(value, NULL, 10);
		return true;
	case 'p':
		return choose_policy(value);
	case 'm':
		return choose_mapping(value);
	case 'w':
		day_options.workers = (unsigned)atoi(value);
		return day_options.workers > 0 && day_options.workers <= DAY_WORKERS;
	case 'o':
	case 'x':
		return choose_action(value, option == 'o');
	case 'b':
		return choose_broken();
	case 'l':
		day_options.library = value;
		return true;
	case 't':
		return (day_options.hang = (unsigned)atoi(value)) > 0;
	case 'k':
		return day_options.keep = true;
	default:
		return false;
	}
}

static bool read_options(int argc, char **argv)
{
	int option;

	list_actions(day_change_actions);
	list_actions(day_life_actions);
	while ((option = getopt(argc, argv, "s:r:p:m:w:o:x:bl:t:k")) != -1)
		if (!take_option(option, optarg))
			return false;
	for (unsigned i = 0; i < action_count; i++) {
		if (actions[i]->left_out)
			actions[i]->weight = 0;
		weight_sum += actions[i]->weight;
	}
	return optind == argc && weight_sum > 0;
}

int main(int argc, char **argv)
{
	double start = now();
	pid_t pid, control;
	int status;

	if (!read_options(argc, argv)) {
		fputs("usage: day [-s seconds] [-r seed] [-p policy] [-m mapping] [-w workers] "
		      "[-o action] [-x action] [-b] [-l library] [-t seconds] [-k]\n",
		      stderr);
		return USAGE;
	}
	day = mmap(NULL, sizeof(*day), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (day == MAP_FAILED)
		return 77;
	pid = fork();
	if (pid == 0)
		_exit(live_day());
	if (pid < 0)
		return 77;
	control = start_control();
	status = watch_day(pid);
	if (control > 0) {
		kill(control, SIGKILL);
		waitpid(control, NULL, 0);
	}
	report(now() - start);
	if (status == 0 && (day->seen.torn > tears_allowed() || atomic_load(&day->errors) ||
			    day->seen.ran[0] == 0 || day->seen.ran[1] == 0))
		status = 1;
	return status;
}
