/* SPDX-License-Identifier: MIT */
/* A litmus test in a child process, each thread on its CPU. */
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include "conform/litmus.h"

struct litmus_shared {
	struct leash leash;
	struct litmus_result result;
	const struct litmus *litmus;
	const unsigned *cpu;
	uint64_t instances, seed;
	/* Of the child alone. */
	struct litmus_bench *bench;
	_Atomic(int) error;
	pthread_barrier_t ready;
};

struct litmus_seat {
	struct litmus_shared *shared;
	unsigned thread;
};

static bool wants_more(void *arg)
{
	struct litmus_shared *s = arg;

	atomic_store_explicit(&s->leash.life, s->result.instances, memory_order_relaxed);
	return s->result.instances < s->instances &&
	       !atomic_load_explicit(&s->leash.stop, memory_order_relaxed);
}

static void *play_seat(void *arg)
{
	const struct litmus_seat *seat = arg;
	struct litmus_shared *s = seat->shared;
	int ret = isolate_pin(s->cpu[seat->thread]);

	if (ret < 0)
		atomic_store(&s->error, ret);
	pthread_barrier_wait(&s->ready);
	if (atomic_load(&s->error) == 0)
		litmus_play(s->bench, seat->thread, wants_more, s);
	return NULL;
}

static int run_threads(struct litmus_shared *s)
{
	const struct litmus *l = s->litmus;
	struct litmus_seat seat[LITMUS_THREADS];
	pthread_t thread[LITMUS_THREADS];
	bool crowded = false;
	int ret;

	for (unsigned i = 0; i < l->threads; i++)
		for (unsigned k = 0; k < i; k++)
			crowded |= s->cpu[i] == s->cpu[k];
	ret = litmus_open(&s->bench, l, l->threads, crowded, s->seed, &s->result);

	if (ret == 0)
		ret = -pthread_barrier_init(&s->ready, NULL, l->threads);
	for (unsigned i = 0; i < l->threads && ret == 0; i++) {
		seat[i] = (struct litmus_seat){ s, i };
		/* One that was started waits for the others; the end of the child ends it. */
		if (i > 0)
			ret = -pthread_create(&thread[i], NULL, play_seat, &seat[i]);
	}
	if (ret < 0)
		return ret;
	play_seat(&seat[0]);
	for (unsigned i = 1; i < l->threads; i++)
		pthread_join(thread[i], NULL);
	return atomic_load(&s->error);
}

static void run_inside(void *arg)
{
	struct litmus_shared *s = arg;

	isolate_finish(&s->leash, run_threads(s), &s->result.error, &s->result.outcome);
}

int litmus_run(const struct litmus *l, const unsigned cpu[LITMUS_THREADS], uint64_t instances,
	       uint64_t seed, const struct run_options *options, struct litmus_result *result)
{
	struct litmus_shared *s =
		mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct isolated what = { .inside = run_inside, .arg = s, .parts = 1, .options = options };
	struct ending ending;
	int ret;

	if (s == MAP_FAILED)
		return -errno;
	s->litmus = l;
	s->cpu = cpu;
	s->instances = instances;
	s->seed = seed;
	what.leash = &s->leash;
	ret = isolate(&what, &ending);
	*result = s->result;
	munmap(s, sizeof(*s));
	if (ret < 0)
		return ret;
	result->seconds = ending.seconds;
	if (!ending.finished) {
		result->outcome = ending.outcome;
		result->signal = ending.signal;
	}
	return 0;
}
