/* SPDX-License-Identifier: MIT */
/* What else goes on in a storm. */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "patchcore/tests/child.h"
#include "patchcore/tests/storm/storm.h"

#define NOISES_MAX 80u
#define LISTENERS  16u
#define TRIES	   100000u /* of a child that meets a site in flight */
#define CHILD_LIFE 20u	   /* seconds, then it hangs */

static pthread_t noise[NOISES_MAX];
static unsigned noises;

/* The threads that get signals. */
static pthread_mutex_t listeners_lock = PTHREAD_MUTEX_INITIALIZER; /* protects the next two */
static pthread_t listener[LISTENERS];
static unsigned listeners;

static bool stopped(void)
{
	return atomic_load_explicit(&storm_now.stop, memory_order_relaxed);
}

static enum storm_shape shape_now(void)
{
	return storm_now.storm->way->shape;
}

static struct storm_place *place_now(void)
{
	return &storm_arena.place[atomic_load_explicit(&storm_now.place, memory_order_relaxed)];
}

static unsigned codes(void)
{
	return shape_now() == STORM_CALLS ? 3 : 2;
}

/* --- Signals -------------------------------------------------------------------------------- */

void storm_thread_begin(void)
{
	pthread_mutex_lock(&listeners_lock);
	MUST(listeners < LISTENERS);
	listener[listeners++] = pthread_self();
	pthread_mutex_unlock(&listeners_lock);
}

void storm_thread_end(void)
{
	pthread_mutex_lock(&listeners_lock);
	for (unsigned i = 0; i < listeners; i++)
		if (pthread_equal(listener[i], pthread_self()))
			listener[i--] = listener[--listeners];
	pthread_mutex_unlock(&listeners_lock);
}

static void on_signal(int signal)
{
	struct storm_result seen = { .signals = 1 };

	(void)signal;
	storm_execute(place_now(), shape_now(), 1, &seen);
	storm_add(&seen);
}

static void *send_signals(void *unused)
{
	const struct timespec millisecond = { .tv_nsec = 1000000 };

	while (!stopped()) {
		pthread_mutex_lock(&listeners_lock);
		for (unsigned i = 0; i < listeners; i++)
			pthread_kill(listener[i], SIGUSR1);
		pthread_mutex_unlock(&listeners_lock);
		nanosleep(&millisecond, NULL);
	}
	return unused;
}

/* --- Load ----------------------------------------------------------------------------------- */

static void *burn(void *unused)
{
	while (!stopped())
		for (volatile unsigned i = 0; i < 10000; i++)
			;
	return unused;
}

/* --- Children ------------------------------------------------------------------------------- */

/* Its own place, and that which was run and patched when it was born. */
static void change_as_child(unsigned column, unsigned code)
{
	const struct storm_way *way = storm_now.storm->way;
	struct storm_site *sites[] = { &storm_arena.place[0].site[column],
				       &place_now()->site[column] };
	int ret = -EAGAIN;

	for (unsigned i = 0; i < TRIES && ret == -EAGAIN; i++) {
		ret = way->change(sites, 2, code);
		if (ret == -EAGAIN)
			sched_yield();
	}
	MUST(ret == 0);
	for (unsigned i = 0; i < 2 && way->lasts; i++)
		MUST(storm_holds(sites[i], way->shape, code));
}

static void live(void)
{
	struct storm_result seen = { 0 };

	alarm(CHILD_LIFE);
	/* What the parent was changing there is finished in the child. */
	storm_execute(place_now(), shape_now(), 10, &seen);
	for (unsigned code = 0; code < codes(); code++)
		for (unsigned i = 0; i < storm_columns(shape_now()); i++) {
			change_as_child(i, code);
			storm_execute(place_now(), shape_now(), 10, &seen);
			storm_execute(&storm_arena.place[0], shape_now(), 10, &seen);
		}
	MUST(storm_torn(&seen) == 0);
	_exit(0);
}

static void *fork_children(void *unused)
{
	while (!stopped()) {
		struct storm_result seen = { .forks = 1 };
		int status = -1;
		pid_t pid = fork();

		MUST(pid >= 0);
		if (pid == 0)
			live();
		MUST(waitpid(pid, &status, 0) == pid);
		if (status)
			dprintf(2, "a child of the storm ended with status %#x\n", status);
		MUST(status == 0);
		MUST(storm_place_is_original(&storm_arena.place[0]));
		storm_add(&seen);
	}
	return unused;
}

/* --- Objects and threads that come and go --------------------------------------------------- */

static void *load_objects(void *unused)
{
	static const char *const names[] = { "libBrokenLocale.so.1", "libanl.so.1", "librt.so.1" };

	while (!stopped()) {
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
			struct storm_result seen = { .loads = 1 };
			void *object = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);

			if (!object)
				continue;
			dlclose(object);
			storm_add(&seen);
		}
	}
	return unused;
}

static void *live_shortly(void *arg)
{
	uint32_t random = (uint32_t)(uintptr_t)arg;
	struct storm_result seen = { .threads = 1 };

	storm_thread_begin();
	storm_execute(place_now(), shape_now(), 20, &seen);
	storm_change(storm_random(&random) % storm_columns(shape_now()),
		     storm_random(&random) % codes(), &seen);
	storm_execute(place_now(), shape_now(), 20, &seen);
	storm_thread_end();
	storm_add(&seen);
	return NULL;
}

static void *make_threads(void *unused)
{
	uintptr_t count = 1;

	while (!stopped()) {
		pthread_t thread;

		MUST(pthread_create(&thread, NULL, live_shortly, (void *)count++) == 0);
		pthread_join(thread, NULL);
	}
	return unused;
}

/* -------------------------------------------------------------------------------------------- */

static void add_noise(unsigned which, void *(*noise_fn)(void *), unsigned threads)
{
	if (!(storm_now.storm->noise & which))
		return;
	for (unsigned i = 0; i < threads && noises < NOISES_MAX; i++)
		MUST(pthread_create(&noise[noises++], NULL, noise_fn, NULL) == 0);
}

void storm_noise_begin(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	MUST(sigaction(SIGUSR1, &action, NULL) == 0);
	add_noise(STORM_LOAD, burn, 2 * (unsigned)sysconf(_SC_NPROCESSORS_ONLN));
	add_noise(STORM_SIGNALS, send_signals, 1);
	add_noise(STORM_FORKS, fork_children, 1);
	add_noise(STORM_DLOPEN, load_objects, 1);
	add_noise(STORM_THREADS, make_threads, 1);
}

void storm_noise_end(void)
{
	while (noises)
		pthread_join(noise[--noises], NULL);
}
