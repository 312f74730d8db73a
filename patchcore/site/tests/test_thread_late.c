/* SPDX-License-Identifier: MIT */
/*
 * A thread that comes to the library for the first time while another waits for all. Its stores
 * until then, its record among them, are visible once the barrier is over. So the records must be
 * counted after the barrier, and not before.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "patchcore/site/thread.h"
#include "patchcore/tests/child.h"

static pthread_t late;
static atomic_bool armed, is_inside, is_asked, has_returned;
static uint64_t waiting;

/* The linker hands this call to us: see local.mk. */
int __wrap_membarrier_sync(void);

/* Inside until the other has returned in spite of it, or else sleeps, which is how it waits. */
static void *come_late(void *unused)
{
	struct thread *self = thread_self();

	thread_enter_as(self);
	is_inside = true;
	while (!is_asked || (!has_returned && thread_runs(waiting)))
		;
	MUST(!has_returned);
	thread_leave(self);
	return unused;
}

/* Stands for what waited in a buffer of the other's CPU until the barrier. */
int __wrap_membarrier_sync(void)
{
	if (!atomic_exchange(&armed, false))
		return 0;
	MUST(pthread_create(&late, NULL, come_late, NULL) == 0);
	while (!is_inside)
		;
	is_asked = true;
	return 0;
}

static void awaited(const void *arg)
{
	(void)arg;
	waiting = thread_id();
	armed = true;
	MUST(thread_await_all());
	has_returned = true;
	MUST(pthread_join(late, NULL) == 0);
}

static void seen(const void *arg)
{
	(void)arg;
	waiting = thread_id();
	MUST(!thread_any_inside());
	armed = true;
	MUST(thread_any_inside());
	MUST(pthread_join(late, NULL) == 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(awaited),
		child_unit_test(seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
