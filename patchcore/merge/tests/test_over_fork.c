/* SPDX-License-Identifier: MIT */
/*
 * A batch of changes of several instructions is inside the library until its looks are over,
 * however many there are: a fork waits for it, and so does a thread that closes the pages.
 */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "patchcore/mapping.h"
#include "patchcore/merge/merge.h"
#include "patchcore/merge/tests/over.h"
#include "patchcore/site/fork.h"

#define SITES	 300u
#define DISTANCE 0x100u /* from one to the next */
#define PAGES	 (SITES * DISTANCE / CODE_PAGE + 1)

static uint8_t *code, *sites[SITES];
static struct pc_over ops[SITES];

/* mov eax, 0; the three; ret */
static void prepare(size_t n)
{
	over_begin();
	code = code_map(PAGES, RWX);
	for (size_t i = 0; i < n; i++) {
		sites[i] = code + DISTANCE / 2 + i * DISTANCE;
		code_load(sites[i] - CODE_LEN, 0);
		over_put(sites[i]);
		ops[i] = (struct pc_over){ { sites[i], mov, LEN, 1 }, STARTS, 1 };
	}
}

static void open_code(void)
{
	MUST(mprotect(code, PAGES * CODE_PAGE, RX) == 0);
	MUST(pc_text_open(code, PAGES * CODE_PAGE) == 0);
}

static bool has_int3(size_t i)
{
	return *(const volatile uint8_t *)sites[i] == CODE_INT3;
}

/* --- A thread that answers no look until it is time, and the batch that waits for it ---------- */

static atomic_bool may_hear;

static void *be_deaf(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	MUST(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
	sem_post(&ready);
	while (!may_hear)
		;
	sigemptyset(&all);
	MUST(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
	return arg;
}

/* A busy machine may keep the others from the CPU for as long as a look goes on. */
#define LOOK_OVER 78
#define LOOKS	  30

static void *make(void *n)
{
	int ret = pc_patch_over_batch(ops, *(const size_t *)n, PC_CHECK_THREADS);

	if (ret == -ETIMEDOUT)
		_exit(LOOK_OVER);
	MUST(ret == 0);
	return n;
}

static pthread_t deaf, maker, releaser;

/* Returns when all have their INT3. */
static void start_batch(const size_t *n)
{
	MUST(pthread_create(&deaf, NULL, be_deaf, NULL) == 0 && sem_wait(&ready) == 0);
	MUST(pthread_create(&maker, NULL, make, (void *)(uintptr_t)n) == 0);
	while (!has_int3(*n - 1))
		usleep(100);
}

static void end_batch(size_t n)
{
	MUST(pthread_join(deaf, NULL) == 0 && pthread_join(releaser, NULL) == 0);
	for (size_t i = 0; i < n; i++)
		MUST(code_run(sites[i] - CODE_LEN) == GOT_NEW);
}

/* Long enough after the other has begun for it to be over, if it does not wait. */
static void *release(void *begun)
{
	while (begun ? !*(atomic_bool *)begun : !fork_gate)
		usleep(100);
	/* The look interrupts it, too. */
	for (int i = 0; i < 200; i++)
		usleep(1000);
	may_hear = true;
	return begun;
}

/* --- Many ------------------------------------------------------------------------------------- */

static void fork_waits(const void *n)
{
	size_t count = *(const size_t *)n;
	int status;
	pid_t pid;

	prepare(count);
	open_code();
	start_batch(n);
	MUST(pthread_create(&releaser, NULL, release, NULL) == 0);
	pid = fork();
	if (pid == 0) {
		for (size_t i = 0; i < count; i++)
			MUST(memcmp(sites[i], mov, LEN) == 0);
		MUST(!sites_count().held && code_run(sites[0] - CODE_LEN) == GOT_NEW);
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid && pthread_join(maker, NULL) == 0);
	MUST(status == 0);
	end_batch(count);
}

/* Else the pages were read-only by the time of the new code. */
static void close_waits(const void *n)
{
	static atomic_bool closing;
	bool waited;
	int ret;

	prepare(*(const size_t *)n);
	open_code();
	start_batch(n);
	MUST(pthread_create(&releaser, NULL, release, &closing) == 0);
	closing = true;
	ret = pc_text_close(code, PAGES * CODE_PAGE);
	waited = may_hear;
	MUST(pthread_join(maker, NULL) == 0);
	MUST(ret == 0 && waited);
	end_batch(*(const size_t *)n);
}

static void pass_in_time(child_fn *fn, const void *arg)
{
	int status = -1;

	for (unsigned i = 0; i < LOOKS; i++) {
		status = child_run(fn, arg);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != LOOK_OVER)
			break;
	}
	assert_int_equal(status, 0);
}

/* Also where a count of them has no room in a byte. */
static void test_many(void **state)
{
	static const size_t counts[] = { 2, 255, 256, SITES };

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		pass_in_time(fork_waits, &counts[i]);
		pass_in_time(close_waits, &counts[i]);
	}
}

/* --- Threads that sleep inside of some -------------------------------------------------------- */

#define FEW	 8u
#define SLEEPERS 2u

static void sleep_in_handler(int signal)
{
	sem_post(&ready);
	stay_in_handler(signal);
}

static void *sleep_inside(void *at)
{
	uint8_t *site_at = at, *way = site_at + FEW * DISTANCE;

	over_put_kill(way, site_at);
	code_run(way);
	return at;
}

/* The child finds whole code also where a thread was inside for longer than a fork waits. */
static void fork_comes_between(const void *arg)
{
	static const size_t few = FEW;
	pthread_t sleepers[SLEEPERS];
	int status;
	pid_t pid;

	(void)arg;
	prepare(few);
	signal(SIGUSR1, sleep_in_handler);
	for (size_t i = 0; i < SLEEPERS; i++) {
		memcpy(sites[i], over_calls, LEN);
		MUST(pthread_create(&sleepers[i], NULL, sleep_inside, sites[i]) == 0);
		MUST(sem_wait(&ready) == 0);
	}
	open_code();
	start_batch(&few);
	MUST(pthread_create(&releaser, NULL, release, NULL) == 0);
	pid = fork();
	if (pid == 0) {
		for (size_t i = 0; i < few; i++)
			MUST(memcmp(sites[i], i < SLEEPERS ? over_calls : mov, LEN) == 0);
		MUST(!sites_count().held && code_run(sites[few - 1] - CODE_LEN) == GOT_NEW);
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
	leave = true;
	for (size_t i = 0; i < SLEEPERS; i++)
		MUST(pthread_join(sleepers[i], NULL) == 0);
	MUST(pthread_join(maker, NULL) == 0);
	end_batch(few);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many),
		child_unit_test(fork_comes_between),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
