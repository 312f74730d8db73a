/* SPDX-License-Identifier: MIT */
/*
 * Functions of libc with straddlers in them that are patched all the time, while
 * other threads use the library in every way: what a tracer does to it.
 *
 * usage: libc_sites [-m MILLISECONDS] [-w] [-x USE]... FUNCTION...
 *	-m  how long each function is patched at least (100)
 *	-w  policy wait instead of membarrier
 *	-x  without that use of the library: patch, batch, flights, text, merge, calls,
 *	    reports, fork or signals
 *	FUNCTION  as dlsym(3) knows it; "restorer" is where handlers of libc return to
 *
 * Each instruction at the beginning of the function that crosses 8 bytes is patched
 * with its own bytes, so that all that comes and goes is the INT3. Each function has
 * a process of its own: one line says how it went. Exit status: 0 all went well, 1
 * one died or hung, 77 cannot be run here.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include <cmocka.h>
#include <dlfcn.h>

#include "patchcore/async.h"
#include "patchcore/batch.h"
#include "patchcore/call.h"
#include "patchcore/check/decode.h"
#include "patchcore/mapping.h"
#include "patchcore/merge.h"
#include "patchcore/patchcore.h"
#include "patchcore/signals.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/conf_sample.h"

#define WINDOW	     8u
#define STRETCH	     64u /* bytes of a function that are looked at */
#define SITES	     8u
#define FLIGHTS	     8u
#define LINE	     64u
#define WAIT_TICKS   20000u
#define STANDS	     1000u /* PAUSEs that an INT3 stands, for others to run into */
#define CHILD_LIFE   60u   /* seconds */
#define FIRST_TRIES  8	   /* per site, half of them left to executors; -m makes it more */
#define NANOSECONDS  INT64_C(1000000000)
#define MILLISECONDS INT64_C(1000000)

/* --- The sites --------------------------------------------------------------------------- */

struct libc_site {
	uint8_t *at;
	size_t len;
	uint8_t bytes[DECODE_INSN_MAX];
};

static struct libc_site sites[SITES];
static size_t site_count;

/* sigaction() tells the handler only; the kernel is asked how it returns. */
static uint8_t *find_restorer(void)
{
	struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} kernel = { 0 };

	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR1, (void (*)(int))(uintptr_t)find_restorer);
	MUST(syscall(SYS_rt_sigaction, SIGUSR1, NULL, &kernel, sizeof(kernel.mask)) == 0);
	signal(SIGUSR1, SIG_IGN);
	return kernel.restorer;
}

/* NULL: it is no code. */
static uint8_t *find_function(const char *name)
{
	uint8_t *at = strcmp(name, "restorer") == 0 ? find_restorer() : dlsym(RTLD_DEFAULT, name);

	return at && code_prot(at) == RX ? at : NULL;
}

static void find_sites(uint8_t *at)
{
	struct layout layout;

	/* As far as it can be decoded. */
	decode_layout(&layout, at, STRETCH, STRETCH - DECODE_INSN_MAX, NULL);
	for (size_t i = 0; i < STRETCH && site_count < SITES; i++) {
		uint64_t bit = UINT64_C(1) << i;
		size_t len = layout.len[i];

		if (!(layout.starts & ~layout.after_jump & bit) || len > PC_PATCH_MAX ||
		    ((uintptr_t)(at + i) % WINDOW) + len <= WINDOW)
			continue;
		sites[site_count] = (struct libc_site){ .at = at + i, .len = len };
		memcpy(sites[site_count++].bytes, at + i, len);
	}
}

/* --- Uses of the library ----------------------------------------------------------------- */

static enum pc_policy policy = PC_POLICY_MEMBARRIER;
static atomic_bool stop;

static uint8_t *straddler_in(uint8_t *page, unsigned line)
{
	return page + LINE * (line + 1) - 2;
}

static uint8_t *map_sites(void)
{
	uint8_t *page = code_map(1, RWX);

	for (unsigned i = 0; i < FLIGHTS; i++)
		code_put(straddler_in(page, i), CODE_OLD);
	MUST(mprotect(page, CODE_PAGE, RX) == 0);
	return page;
}

static void must_patch(uint8_t *at, uint32_t number)
{
	uint8_t bytes[CODE_LEN];

	code_load(bytes, number);
	MUST(pc_patch(at, bytes, CODE_LEN) == 0);
	MUST(code_run(at) == number);
}

static void use_patch(uint8_t *page)
{
	must_patch(straddler_in(page, 0), CODE_NEW);
	must_patch(straddler_in(page, 0), CODE_OLD);
}

static void use_batch(uint8_t *page)
{
	static const uint32_t numbers[] = { CODE_NEW, CODE_OLD };

	for (unsigned n = 0; n < 2; n++) {
		struct pc_op ops[FLIGHTS];
		uint8_t bytes[CODE_LEN];

		code_load(bytes, numbers[n]);
		for (unsigned i = 0; i < FLIGHTS; i++)
			ops[i] = (struct pc_op){ .addr = straddler_in(page, i),
						 .bytes = bytes,
						 .len = CODE_LEN };
		MUST(pc_patch_batch(ops, FLIGHTS) == 0);
		MUST(code_run(straddler_in(page, FLIGHTS - 1)) == numbers[n]);
	}
}

/* One is finished step by step, one by its executor, the rest by a drain. */
static void use_flights(uint8_t *page)
{
	static uint32_t number = CODE_NEW;
	uint8_t bytes[CODE_LEN];
	int ret;

	code_load(bytes, number);
	for (unsigned i = 0; i < FLIGHTS; i++)
		MUST(pc_start_patch(straddler_in(page, i), bytes, CODE_LEN) == 0);
	while ((ret = pc_finish_patch(straddler_in(page, 0))) != PC_FINISHED)
		MUST(ret > 0);
	MUST(code_run(straddler_in(page, 1)) == number);
	MUST(pc_drain() == 0);
	for (unsigned i = 0; i < FLIGHTS; i++)
		MUST(code_run(straddler_in(page, i)) == number);
	number = number == CODE_NEW ? CODE_OLD : CODE_NEW;
}

static void use_text(uint8_t *page)
{
	enum pc_text_way way;
	char reason[128];

	MUST(pc_text_way(page, CODE_PAGE, &way, reason, sizeof(reason)) == 0);
	MUST(pc_text_open(page, CODE_PAGE) == 0);
	must_patch(straddler_in(page, 0), CODE_NEW);
	MUST(pc_text_close(page, CODE_PAGE) == 0);
	MUST(pc_text_alias(page, CODE_PAGE) == 0);
	must_patch(straddler_in(page, 0), CODE_OLD);
	MUST(pc_text_close(page, CODE_PAGE) == 0);
}

/* NOPs in the place of the first load. */
static void use_merge(uint8_t *page)
{
	static const uint8_t nops[CODE_LEN] = { 0x90, 0x90, 0x90, 0x90, 0x90 };
	uint8_t *at = straddler_in(page, 0), bytes[CODE_LEN];
	int ret;

	code_load(bytes, CODE_NEW);
	MUST(pc_patch(at, nops, CODE_LEN) == 0);
	ret = pc_patch_merge(at, bytes, CODE_LEN, PC_CHECK_THREADS);
	/* A thread that is slow to answer is no fault. */
	MUST(ret == 0 || ret == -ETIMEDOUT || ret == -EAGAIN);
	if (ret == 0)
		MUST(code_run(at) == CODE_NEW);
}

static void use_calls(uint8_t *page)
{
	static const uint8_t off[CODE_LEN] = { 0x0f, 0x1f, 0x44, 0, 0 };
	uint8_t *at = straddler_in(page, 0);
	struct pc_call call;

	MUST(pc_patch(at, off, CODE_LEN) == 0);
	MUST(pc_call_init(&call, at) == 0);
	MUST(pc_activate_call(&call, straddler_in(page, 1)) == 0);
	MUST(code_run(at) == CODE_OLD);
	MUST(pc_deactivate_call(&call) == 0);
	MUST(pc_forget(page, CODE_PAGE) == 0);
}

static void use_reports(uint8_t *page)
{
	struct pc_signals signals;
	struct pc_status status;
	struct sigaction action;

	(void)page;
	MUST(pc_get_status(&status) == 0);
	/* A thread may stand in a handler of the library just then, as long as that takes. */
	MUST(pc_check_signals(&signals) == 0 || signals.owner == PC_TRAP_OURS);
	MUST(pc_set_chained_trap(NULL, &action) == 0);
	MUST(pc_set_policy(policy) == 0);
}

/* A child: what it has inherited works, and it can do without and begin again. */
static void live_as_child(uint8_t *page)
{
	alarm(CHILD_LIFE);
	use_patch(page);
	use_batch(page);
	MUST(pc_drain() == 0);
	MUST(pc_fini() == 0);
	MUST(pc_init() == 0 && pc_set_policy(policy) == 0);
	use_patch(page);
	MUST(pc_fini() == 0);
	_exit(0);
}

static void use_fork(uint8_t *page)
{
	int status = -1;
	pid_t pid = fork();

	MUST(pid >= 0);
	if (pid == 0)
		live_as_child(page);
	while (waitpid(pid, &status, 0) < 0)
		MUST(errno == EINTR);
	if (status)
		dprintf(2, "a child ended with status %#x\n", status);
	MUST(status == 0);
}

/* Handlers return by libc's restorer. */
static void use_signals(uint8_t *page)
{
	(void)page;
	for (int i = 0; i < 10; i++)
		raise(SIGUSR2);
}

static void ignore(int signal)
{
	(void)signal;
}

static struct use {
	const char *name;
	void (*fn)(uint8_t *page); /* NULL: not asked for */
} uses[] = {
	{ "patch", use_patch }, { "batch", use_batch },	    { "flights", use_flights },
	{ "text", use_text },	{ "merge", use_merge },	    { "calls", use_calls },
	{ "fork", use_fork },	{ "reports", use_reports }, { "signals", use_signals },
};

#define USES (sizeof(uses) / sizeof(uses[0]))

/* Since the patching began. */
static _Atomic(uint64_t) used[USES];
static atomic_bool patching;

static void *user(void *arg)
{
	size_t i = (size_t)(uintptr_t)arg;
	uint8_t *page = map_sites();

	while (uses[i].fn && !atomic_load(&stop)) {
		bool counts = atomic_load(&patching);

		uses[i].fn(page);
		if (counts)
			atomic_fetch_add(&used[i], 1);
	}
	return NULL;
}

/* --- The child of one function ------------------------------------------------------------ */

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NANOSECONDS + now.tv_nsec;
}

struct counts {
	uint64_t toggles;
	uint64_t seen; /* an INT3 that stood */
	uint64_t refused;
};

static void count_result(struct counts *counts, int ret)
{
	MUST(ret == 0 || ret == -EAGAIN);
	counts->toggles += ret == 0;
	counts->refused += ret == -EAGAIN;
}

/* At once, or left for executors that run into it. */
static void toggle_site(const struct libc_site *site, struct counts *counts, bool at_once)
{
	int ret;

	if (at_once) {
		count_result(counts, pc_patch(site->at, site->bytes, site->len));
		return;
	}
	ret = pc_start_patch(site->at, site->bytes, site->len);
	count_result(counts, ret);
	for (unsigned i = 0; ret == 0 && i < STANDS; i++)
		__builtin_ia32_pause();
	counts->seen += *(volatile uint8_t *)site->at == CODE_INT3;
	while (ret == 0 && (ret = pc_finish_patch(site->at)) != PC_FINISHED) {
		MUST(ret > 0);
		ret = 0;
	}
}

static bool all_used(void)
{
	for (size_t i = 0; i < USES; i++)
		if (uses[i].fn && atomic_load(&used[i]) < 1)
			return false;
	return true;
}

static struct {
	const char *name;
	int64_t ns;
} asked = { .ns = 100 * MILLISECONDS };

static void begin_library(void)
{
	struct machine_conf conf = conf_here();

	/* Read anew by each child that begins again. */
	conf.level[0].waits.first = conf.level[0].waits.second = WAIT_TICKS;
	conf_use(&conf);
	MUST(pc_init() == 0);
	if (pc_set_policy(policy) < 0)
		child_skip("the policy is not to be had here");
}

static void patch_function(const void *unused)
{
	uint8_t *at = find_function(asked.name);
	struct counts counts = { 0 };
	pthread_t thread[USES];
	int64_t end;

	(void)unused;
	if (at)
		find_sites(at);
	if (!site_count) {
		printf("%s: %s\n", asked.name, at ? "nothing crosses there" : "no function");
		fflush(stdout);
		return;
	}
	begin_library();
	signal(SIGUSR2, ignore);
	for (size_t i = 0; i < USES; i++)
		MUST(pthread_create(&thread[i], NULL, user, (void *)i) == 0);
	atomic_store(&patching, true);
	end = now_ns() + asked.ns;
	for (unsigned i = 0; i < FIRST_TRIES * site_count || now_ns() < end || !all_used(); i++) {
		bool open = i / 64 % 2;

		if (open)
			MUST(pc_text_open(sites[i % site_count].at, PC_PATCH_MAX) == 0);
		toggle_site(&sites[i % site_count], &counts, i / site_count % 2);
		if (open)
			MUST(pc_text_close(sites[i % site_count].at, PC_PATCH_MAX) == 0);
	}
	atomic_store(&stop, true);
	for (size_t i = 0; i < USES; i++)
		pthread_join(thread[i], NULL);
	MUST(pc_drain() == 0);
	for (size_t i = 0; i < site_count; i++)
		MUST(memcmp(sites[i].at, sites[i].bytes, sites[i].len) == 0);
	/* Else nothing was tried. */
	MUST(counts.seen > 0);
	MUST(pc_fini() == 0);
	printf("%s: %zu sites, %llu toggles, %llu INT3 seen\n", asked.name, site_count,
	       (unsigned long long)counts.toggles, (unsigned long long)counts.seen);
	fflush(stdout);
}

/* 0, 1, or CHILD_SKIPPED. */
static int try(const char *name)
{
	int status;

	asked.name = name;
	status = child_run(patch_function, NULL);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_SKIPPED)
		return CHILD_SKIPPED;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		printf("%s: HUNG\n", name);
	else if (WIFSIGNALED(status))
		printf("%s: DIED of signal %d (%s)\n", name, WTERMSIG(status),
		       strsignal(WTERMSIG(status)));
	else if (status != 0)
		printf("%s: FAILED\n", name);
	fflush(stdout);
	return status != 0;
}

static bool leave_out(const char *name)
{
	for (size_t i = 0; i < USES; i++)
		if (strcmp(uses[i].name, name) == 0) {
			uses[i].fn = NULL;
			return true;
		}
	return false;
}

static bool read_options(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "m:wx:")) != -1) {
		if (option == '?' || (option == 'x' && !leave_out(optarg)))
			return false;
		if (option == 'm')
			asked.ns = (int64_t)(atof(optarg) * (double)MILLISECONDS);
		else if (option == 'w')
			policy = PC_POLICY_WAIT;
	}
	return true;
}

int main(int argc, char **argv)
{
	int failed = 0;

	if (!read_options(argc, argv))
		return 64;
	for (; optind < argc; optind++) {
		int ret = try(argv[optind]);

		if (ret == CHILD_SKIPPED)
			return ret;
		failed |= ret;
	}
	return failed;
}
