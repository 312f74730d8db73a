/* SPDX-License-Identifier: MIT */
/*
 * A thread that is to be cancelled is not while it is inside the library: every function is
 * called with a cancellation pending, and comes back.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "patchcore/async.h"
#include "patchcore/batch.h"
#include "patchcore/call.h"
#include "patchcore/mapping.h"
#include "patchcore/merge.h"
#include "patchcore/patchcore.h"
#include "patchcore/signals.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/conf_sample.h"

static uint8_t *page;

static int init(void)
{
	return pc_init();
}

static int policy(void)
{
	return pc_set_policy(PC_POLICY_MEMBARRIER);
}

static int patch(void)
{
	uint8_t bytes[CODE_LEN];

	code_load(bytes, CODE_NEW);
	return pc_patch(code_straddler(page), bytes, CODE_LEN);
}

static int start(void)
{
	uint8_t bytes[CODE_LEN];

	code_load(bytes, CODE_OLD);
	return pc_start_patch(code_straddler(page), bytes, CODE_LEN);
}

static int batch(void)
{
	uint8_t bytes[CODE_LEN];
	struct pc_op op = { .addr = code_straddler(page), .bytes = bytes, .len = CODE_LEN };

	code_load(bytes, CODE_OLD);
	return pc_patch_batch(&op, 1);
}

static int merge(void)
{
	uint8_t bytes[CODE_LEN];

	code_load(bytes, CODE_NEW);
	return pc_patch_merge(page + 64, bytes, CODE_LEN, PC_CHECK_THREADS);
}

static int call(void)
{
	static struct pc_call call;
	int ret = pc_call_init(&call, page + 128);

	if (ret == 0)
		ret = pc_activate_call(&call, page + 192);
	return ret == 0 ? pc_deactivate_call(&call) : ret;
}

static int open_and_close(void)
{
	int ret = pc_text_open(page, CODE_PAGE);

	return ret == 0 ? pc_text_close(page, CODE_PAGE) : ret;
}

static int alias_and_close(void)
{
	int ret = pc_text_alias(page, CODE_PAGE);

	if (ret == 0)
		ret = patch();
	return ret == 0 ? pc_text_close(page, CODE_PAGE) : ret;
}

static int way(void)
{
	enum pc_text_way found;
	char reason[128];

	return pc_text_way(page, CODE_PAGE, &found, reason, sizeof(reason));
}

static int signals(void)
{
	struct pc_signals report;

	return pc_check_signals(&report);
}

/* What is done around it; an alias has to be copied. */
static int fork_with_alias(void)
{
	int status, ret = pc_text_alias(page, CODE_PAGE);
	pid_t pid = ret == 0 ? fork() : -1;

	if (pid == 0)
		_exit(patch() != 0);
	/* waitpid(2) is a place where it may be cancelled. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	MUST(status == 0);
	return pc_text_close(page, CODE_PAGE);
}

static int forget(void)
{
	return pc_forget(page, CODE_PAGE);
}

static const struct {
	const char *name;
	int (*fn)(void);
} uses[] = {
	{ "init", init },
	{ "policy", policy },
	{ "patch", patch },
	{ "start", start },
	{ "drain", pc_drain },
	{ "batch", batch },
	{ "merge", merge },
	{ "call", call },
	{ "open", open_and_close },
	{ "alias", alias_and_close },
	{ "way", way },
	{ "signals", signals },
	{ "fork", fork_with_alias },
	{ "forget", forget },
	{ "fini", pc_fini },
};

static size_t at;

static void *use_one(void *unused)
{
	int ret;

	(void)unused;
	pthread_cancel(pthread_self());
	ret = uses[at].fn();
	if (ret == -ENOTSUP)
		child_skip("no membarrier SYNC_CORE");
	if (ret < 0)
		dprintf(2, "%s: %s\n", uses[at].name, strerror(-ret));
	MUST(ret >= 0);
	at++;
	pthread_testcancel();
	dprintf(2, "%s: cancellation is off\n", uses[at - 1].name);
	return NULL;
}

static void lay_out(void)
{
	static const uint8_t off[] = { 0x0f, 0x1f, 0x44, 0, 0 };

	page = code_map(1, RWX);
	code_put(code_straddler(page), CODE_OLD);
	memset(page + 64, 0x90, CODE_LEN);
	memcpy(page + 128, off, sizeof(off));
	code_put(page + 192, CODE_OLD);
	MUST(mprotect(page, CODE_PAGE, RX) == 0);
}

static void use_all(const void *arg)
{
	struct machine_conf conf = conf_here();

	(void)arg;
	if (CHILD_TSAN)
		child_skip("the thread sanitizer has cancellation points of its own");
	conf_use(&conf);
	lay_out();
	for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
		pthread_t thread;
		void *result;

		MUST(pthread_create(&thread, NULL, use_one, NULL) == 0);
		MUST(pthread_join(thread, &result) == 0);
		if (at == i)
			dprintf(2, "%s: cancelled inside\n", uses[i].name);
		MUST(at == i + 1 && result == PTHREAD_CANCELED);
	}
	MUST(code_prot(page) == RX);
}

static void test_cancel(void **state)
{
	(void)state;
	child_must_pass(use_all, NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_cancel) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
