/* SPDX-License-Identifier: MIT */
/*
 * A fork that waits for a lock whose holder comes to the library: neither waits for the other
 * without end. The lock stands for malloc's, which fork() takes after all handlers.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "patchcore/async.h"
#include "patchcore/mapping.h"
#include "patchcore/patchcore.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/conf_sample.h"
#include "patchcore/tests/start.h"

#define PATIENCE_MS 15000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *page;
static atomic_bool taken, forking;

static void take(void)
{
	atomic_store(&forking, true);
	pthread_mutex_lock(&lock);
}

static void drop(void)
{
	pthread_mutex_unlock(&lock);
}

/* Before the library's: then it comes after them in the order of a fork. */
static void watch(void)
{
	pthread_atfork(take, drop, drop);
}

__attribute__((section(".preinit_array"), used)) static void (*const early)(void) = watch;

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* What may be said of a site that is held is a fair answer, too. */
static void patch(int unused)
{
	uint8_t bytes[CODE_LEN];
	int64_t start;
	int ret;

	(void)unused;
	while (!atomic_load(&forking))
		;
	code_load(bytes, CODE_NEW);
	start = now_ms();
	ret = pc_patch(code_straddler(page), bytes, CODE_LEN);
	MUST(ret == 0 || ret == -EAGAIN);
	MUST(now_ms() - start < PATIENCE_MS);
}

static void *hold_and_patch(void *in_handler)
{
	pthread_mutex_lock(&lock);
	atomic_store(&taken, true);
	if (in_handler)
		raise(SIGUSR1);
	else
		patch(0);
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* The child works, at any point of that thread's patch. */
static void live(void)
{
	uint8_t bytes[CODE_LEN];

	alarm(PATIENCE_MS / 1000);
	MUST(code_run(code_straddler(page)) == CODE_OLD ||
	     code_run(code_straddler(page)) == CODE_NEW);
	MUST(pc_drain() == 0);
	code_load(bytes, CODE_NEW);
	MUST(pc_patch(code_straddler(page), bytes, CODE_LEN) == 0);
	MUST(code_run(code_straddler(page)) == CODE_NEW);
	MUST(pc_fini() == 0);
	_exit(0);
}

struct way {
	bool in_handler;
	int (*hold)(void *addr, size_t len); /* the pages */
};

static void fork_meanwhile(const void *arg)
{
	const struct way *way = arg;
	pthread_t thread;
	int status;
	pid_t pid;

	start_by_membarrier();
	page = code_map(1, RWX);
	code_put(code_straddler(page), CODE_OLD);
	MUST(mprotect(page, CODE_PAGE, RX) == 0 && way->hold(page, CODE_PAGE) == 0);
	signal(SIGUSR1, patch);
	atomic_store(&forking, false);
	MUST(pthread_create(&thread, NULL, hold_and_patch, way->in_handler ? &thread : NULL) == 0);
	while (!atomic_load(&taken))
		;
	pid = fork();
	if (pid == 0)
		live();
	MUST(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
	pthread_join(thread, NULL);
	MUST(pc_drain() == 0);
	MUST(code_run(code_straddler(page)) == CODE_NEW ||
	     code_run(code_straddler(page)) == CODE_OLD);
	MUST(pc_text_close(page, CODE_PAGE) == 0);
	MUST(pc_fini() == 0);
}

#define CASE(name, ...)                                                                            \
	static void name(void **state)                                                             \
	{                                                                                          \
		static const struct way way = { __VA_ARGS__ };                                     \
                                                                                                   \
		(void)state;                                                                       \
		child_must_pass(fork_meanwhile, &way);                                             \
	}

CASE(holder_patches, false, pc_text_open)
CASE(holder_patches_in_handler, true, pc_text_open)
CASE(holder_patches_alias, false, pc_text_alias)
CASE(holder_patches_alias_in_handler, true, pc_text_alias)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(holder_patches),
		cmocka_unit_test(holder_patches_in_handler),
		cmocka_unit_test(holder_patches_alias),
		cmocka_unit_test(holder_patches_alias_in_handler),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
