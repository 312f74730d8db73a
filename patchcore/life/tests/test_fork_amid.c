/* SPDX-License-Identifier: MIT */
/*
 * A child that the handler of a signal makes by _Fork(), in the middle of a change of a page with
 * an alias, goes on with the change, and leaves the parent's code alone: made behind every eighth
 * instruction of the change. Right before the store no look helps, so a few may fail.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "patchcore/call.h"
#include "patchcore/pages/text.h"
#include "patchcore/patchcore.h"
#include "patchcore/tests/step.h"
#include "patchcore/tests/text_fork.h"

#define EACH	  8   /* instructions */
#define FEW	  80  /* instructions: of two stores, where a word is published that straddles */
#define CALL_AT	  256 /* in a page */
#define TARGET_AT 512

static struct {
	unsigned long at, changed, refused;
	bool over;
} * amid; /* shared with processes that are forked */

static uint8_t code[CODE_LEN];
static struct pc_call call;
static bool is_child;
static int result;

/* For the variant that is broken: no look at whether the thread has forked. */
static bool follow_all;
bool __real_text_follow_alias(const struct text_span *span);
bool __wrap_text_follow_alias(const struct text_span *span);

bool __wrap_text_follow_alias(const struct text_span *span)
{
	return follow_all || __real_text_follow_alias(span);
}

static void patch_inside_window(void)
{
	result = pc_patch(fn, code, CODE_LEN);
}

static void publish_inside_window(void)
{
	result = pc_patch_how(fn, code, CODE_LEN, &(struct pc_how){ .flags = PC_UNSEEN });
}

static void publish_straddler(void)
{
	result = pc_patch_how(code_straddler(base), code, CODE_LEN,
			      &(struct pc_how){ .flags = PC_UNSEEN });
}

static void turn_off(void)
{
	result = pc_deactivate_call(&call);
}

/* The parent ends here: the child runs on. */
static bool fork_there(void)
{
	uint8_t before[CODE_PAGE];
	int status;
	pid_t pid;

	if (is_child || step_now.count != amid->at)
		return !is_child;
	memcpy(before, base, CODE_PAGE);
	pid = (pid_t)syscall(SYS_fork);
	if (!pid) {
		is_child = true;
		alarm(20);
		return false;
	}
	MUST(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	if (memcmp(before, base, CODE_PAGE) != 0)
		amid->changed++;
	else if (WEXITSTATUS(status) == EACCES)
		amid->refused++;
	_exit(0);
}

static void change_and_fork(const void *change)
{
	int32_t to = TARGET_AT - CALL_AT - 5;

	step_install();
	start_with_threads();
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("no membarrier SYNC_CORE");
	MUST(mprotect(base, CODE_PAGE, RW) == 0);
	code_put(code_straddler(base), CODE_OLD);
	base[CALL_AT] = 0xe8;
	memcpy(base + CALL_AT + 1, &to, sizeof(to));
	base[CALL_AT + 5] = base[TARGET_AT] = 0xc3;
	MUST(mprotect(base, CODE_PAGE, RX) == 0);
	MUST(pc_text_alias(base, CODE_PAGE) == 0 && pc_call_init(&call, base + CALL_AT) == 0);
	MUST(pc_deactivate_call(&call) == 0 && pc_activate_call(&call, NULL) == 0);
	code_load(code, CODE_NEW);
	step_run((void (*)(void))change, fork_there);
	if (is_child)
		_exit(-result);
	amid->over = true;
}

static void fork_amid(void (*change)(void))
{
	if (CHILD_TSAN || CHILD_ASAN)
		skip();
	*amid = (typeof(*amid)){ 0 };
	while (!amid->over) {
		amid->at += EACH;
		child_must_pass(change_and_fork, (const void *)change);
	}
	print_message("of %lu instructions: refused behind %lu, parent changed behind %lu\n",
		      amid->at, EACH * amid->refused, EACH * amid->changed);
}

static void test_left_alone(void **state)
{
	fork_amid((void (*)(void)) * state);
	assert_true(amid->refused > 20);
	assert_in_range(EACH * amid->changed, 0, FEW);
}

static void test_not_looked_for_is_noticed(void **state)
{
	(void)state;
	follow_all = true;
	fork_amid(patch_inside_window);
	follow_all = false;
	assert_true(EACH * amid->changed > FEW);
}

static int share_amid(void **state)
{
	(void)state;
	amid = mmap(NULL, sizeof(*amid), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return amid == MAP_FAILED ? -1 : 0;
}

#define LEFT_ALONE(change)                                                                         \
	{                                                                                          \
#change, test_left_alone, NULL, NULL, (void *)(change)                             \
	}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		LEFT_ALONE(patch_inside_window),
		LEFT_ALONE(publish_inside_window),
		LEFT_ALONE(publish_straddler),
		LEFT_ALONE(turn_off),
		cmocka_unit_test(test_not_looked_for_is_noticed),
	};

	return cmocka_run_group_tests(tests, share_amid, NULL);
}
