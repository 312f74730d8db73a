/* SPDX-License-Identifier: MIT */
/* Static calls: targets near and far, before fi_init() and after it, and threads that run them. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <setjmp.h>

#include <cmocka.h>

#include "patchcore/tests/scale.h"
#include "probes/include/fastinst/branch.h"

static int one(int n)
{
	return n + 1;
}

static int two(int n)
{
	return n + 2;
}

FI_CALL_DEFINE(work, one);

typedef int work_fn(int n);

/* A function further away than a jump reaches. */
static work_fn *make_far(void)
{
	static const uint8_t code[] = { 0x8d, 0x47, 0x03, 0xc3 }; /* lea 3(%rdi), %eax; ret */
	uintptr_t wanted = ((uintptr_t)one ^ (UINT64_C(1) << 40)) & ~UINT64_C(4095);
	void *at = mmap((void *)wanted, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	work_fn *function;

	assert_true(at != MAP_FAILED);
	memcpy(at, code, sizeof(code));
	assert_int_equal(mprotect(at, 4096, PROT_READ | PROT_EXEC), 0);
	memcpy(&function, &at, sizeof(at));
	return function;
}

static struct fi_call_state state_now(void)
{
	struct fi_call_state state;

	assert_int_equal(fi_calls(&state, 1), 1);
	assert_string_equal(state.name, "work");
	return state;
}

static void before_the_library(void **state)
{
	(void)state;
	assert_int_equal(fi_call(work, 1), 2);
	assert_int_equal(fi_call_set(work, two), -ESHUTDOWN);
	assert_int_equal(fi_init(), 0);
	assert_int_equal(fi_call(work, 1), 2);
	assert_true(state_now().direct);
}

static void near_and_far(void **state)
{
	work_fn *far = make_far();

	(void)state;
	assert_int_equal(fi_call_set(work, two), 0);
	assert_int_equal(fi_call(work, 1), 3);
	assert_ptr_equal(state_now().target, two);
	assert_int_equal(fi_call_set(work, far), 0);
	assert_int_equal(fi_call(work, 1), 4);
	assert_false(state_now().direct);
	assert_int_equal(fi_call_set(work, one), 0);
	assert_int_equal(fi_call(work, 1), 2);
	assert_true(state_now().direct);
	assert_int_equal(fi_call_retarget((void *)&fi_call_work, NULL), -EINVAL);
	assert_int_equal(fi_call_retarget((void *)one, (void *)two), -ENOENT);
}

static _Atomic int done;
static _Atomic uint64_t calls, wrong;

static void *execute(void *data)
{
	int got;

	(void)data;
	while (!atomic_load_explicit(&done, memory_order_relaxed)) {
		got = fi_call(work, 10);
		atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
		if (got < 11 || got > 13)
			atomic_fetch_add_explicit(&wrong, 1, memory_order_relaxed);
	}
	return NULL;
}

static void under_a_running_thread(void **state)
{
	work_fn *const functions[] = { one, two, make_far() };
	int rounds = (int)(1000 * test_scale());
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, execute, NULL), 0);
	for (int i = 0; i < rounds; i++) {
		uint64_t before = atomic_load_explicit(&calls, memory_order_relaxed);

		assert_int_equal(fi_call_set(work, functions[i % 3]), 0);
		while (atomic_load_explicit(&calls, memory_order_relaxed) == before)
			sched_yield();
	}
	atomic_store_explicit(&done, 1, memory_order_relaxed);
	pthread_join(thread, NULL);
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(before_the_library),
		cmocka_unit_test(near_and_far),
		cmocka_unit_test(under_a_running_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
