/* SPDX-License-Identifier: MIT */
/*
 * Loaded into a program by LD_PRELOAD: threads that turn its probes on and off at random until it
 * ends, one probe or many at once. The probe function calls nothing and changes nothing.
 *
 *	TOGGLER_THREADS	 how many, 3 unless said
 *	TOGGLER_SEED	 of the random numbers
 *	TOGGLER_PROGRAM	 name of the only program in which to do so; all unless said
 *	TOGGLER_FORKS	 do so in children that fork() makes, too
 *	TOGGLER_PAUSE	 microseconds after each change, none unless said
 *	TOGGLER_POLICY	 wait or membarrier: how straddlers are changed; as the library likes
 *	TOGGLER_LEAK	 bytes that each change loses: to see whether that is found
 *	TOGGLER_OUTPUT	 file: a line "PROBES TOGGLES ERRORS ERROR CALLS HELD" is added to it at
 *			 the end; HELD: bytes that the threads have taken and not given back
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fastinst.h>
#include <patchcore/patchcore.h>

#include "agent/counts/base.h"

#define THREADS_MAX 16
#define BATCH	    64

static pthread_t threads[THREADS_MAX];
static unsigned started;
static uint64_t seed;
static useconds_t pause_us;
static size_t leak;
static pid_t owner;
static uint32_t *probe; /* those that can be used */
static uint32_t probes;
static atomic_bool stop;
static atomic_ulong toggles, errors, calls;
static atomic_int last_error;

/* --- What its threads hold: glibc's own malloc() has a second name, by which it is reached
 * --------- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *block);

static __thread bool counted __attribute__((tls_model("initial-exec")));
static atomic_long held;

static void add_held(long bytes)
{
	if (counted)
		atomic_fetch_add_explicit(&held, bytes, memory_order_relaxed);
}

static void *count_taken(void *block)
{
	add_held((long)malloc_usable_size(block));
	return block;
}

static void give_back(void *block)
{
	add_held(-(long)malloc_usable_size(block));
}

void *malloc(size_t size)
{
	return count_taken(__libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
	return count_taken(__libc_calloc(n, size));
}

void *realloc(void *old, size_t size)
{
	long before = (long)malloc_usable_size(old);
	void *block = __libc_realloc(old, size);

	/* Where it fails, the old one stays. */
	if (block || !size)
		add_held((long)malloc_usable_size(block) - before);
	return block;
}

void *aligned_alloc(size_t align, size_t size)
{
	return count_taken(__libc_memalign(align, size));
}

void free(void *block)
{
	give_back(block);
	__libc_free(block);
}

void *mmap(void *wish, size_t len, int prot, int flags, int fd, off_t offset)
{
	void *at = (void *)syscall(SYS_mmap, wish, len, prot, flags, fd, offset);

	/* A fixed one takes the place of what was there. */
	if (at != MAP_FAILED && !(flags & MAP_FIXED))
		add_held((long)len);
	return at;
}

int munmap(void *at, size_t len)
{
	int ret = (int)syscall(SYS_munmap, at, len);

	if (!ret)
		add_held(-(long)len);
	return ret;
}

/* --- Toggles --------------------------------------------------------------------------------- */

static void on_call(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	(void)id;
	(void)site;
	(void)regs;
	(void)data;
	atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
}

static uint32_t draw_number(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

/* Half of the time one probe, else up to 64 of one stretch of ids. */
static void toggle_some(uint64_t *state)
{
	uint32_t ids[BATCH];
	uint32_t n = draw_number(state) % 2 ? 1 : 1 + draw_number(state) % BATCH;
	uint32_t first = draw_number(state) % probes;
	int ret = 0;

	for (uint32_t i = 0; i < n; i++)
		ids[i] = probe[(first + i) % probes];
	switch (draw_number(state) % 4) {
	case 0:
		ret = fi_activate_batch(ids, n, NULL);
		break;
	case 1:
		ret = fi_activate_batch(ids, n, on_call);
		break;
	default:
		ret = fi_deactivate_batch(ids, n);
	}
	if (ret < 0) {
		atomic_fetch_add_explicit(&errors, 1, memory_order_relaxed);
		atomic_store_explicit(&last_error, ret, memory_order_relaxed);
	}
	atomic_fetch_add_explicit(&toggles, n, memory_order_relaxed);
}

static void lose_memory(void)
{
	void *lost = malloc(leak);

	/* So that the compiler does not leave it out. */
	asm volatile("" : : "r"(lost));
}

static void *toggle_until_stopped(void *data)
{
	uint64_t state = seed * 16 + (uint64_t)(uintptr_t)data;

	fi_own_thread(1);
	counted = true;
	/* Once even where the program is over before this thread gets a CPU. */
	do {
		toggle_some(&state);
		if (leak)
			lose_memory();
		if (pause_us)
			usleep(pause_us);
	} while (!atomic_load_explicit(&stop, memory_order_relaxed) && !is_program_over());
	return NULL;
}

static unsigned long read_environment(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 10) : otherwise;
}

static int find_probes(void)
{
	uint32_t room = fi_probes();
	long n;

	probe = calloc(room ? room : 1, sizeof(*probe));
	if (!probe)
		return -ENOMEM;
	n = fi_find("*", probe, room);
	if (n < 0)
		return (int)n;
	probes = n < room ? (uint32_t)n : room;
	return 0;
}

static int choose_policy(void)
{
	const char *policy = getenv("TOGGLER_POLICY");

	if (!policy)
		return 0;
	if (!strcmp(policy, "wait"))
		return pc_set_policy(PC_POLICY_WAIT);
	if (!strcmp(policy, "membarrier"))
		return pc_set_policy(PC_POLICY_MEMBARRIER);
	return -EINVAL;
}

static void start_threads(void)
{
	unsigned long wanted = read_environment("TOGGLER_THREADS", 3);
	sigset_t all, before;

	owner = getpid();
	started = 0;
	/* The program's signals are for its own threads. */
	sigfillset(&all);
	sigdelset(&all, SIGTRAP);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (started < wanted && started < THREADS_MAX &&
	       !pthread_create(&threads[started], NULL, toggle_until_stopped,
			       (void *)(uintptr_t)started))
		started++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void start_in_child(void)
{
	seed += (uint64_t)getpid();
	atomic_store(&toggles, 0);
	atomic_store(&calls, 0);
	start_threads();
}

__attribute__((constructor)) static void start(void)
{
	const char *only = getenv("TOGGLER_PROGRAM");
	int ret;

	if (only && strcmp(only, program_invocation_short_name) != 0)
		return;
	ret = fi_take_entries(getenv("FASTINST_ENTRIES"));
	if (!ret)
		ret = fi_init();
	if (ret >= 0 && choose_policy() < 0) {
		dprintf(STDERR_FILENO, "toggler: there is no such policy here\n");
		return;
	}
	if (ret >= 0)
		ret = find_probes();
	if (ret < 0 || !probes) {
		dprintf(STDERR_FILENO, "toggler: %s\n", ret < 0 ? strerror(-ret) : "no probes");
		return;
	}
	seed = read_environment("TOGGLER_SEED", 1);
	pause_us = (useconds_t)read_environment("TOGGLER_PAUSE", 0);
	leak = read_environment("TOGGLER_LEAK", 0);
	if (read_environment("TOGGLER_FORKS", 0))
		pthread_atfork(NULL, NULL, start_in_child);
	start_threads();
}

static void tell_toggles(void)
{
	const char *path = getenv("TOGGLER_OUTPUT");
	int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;

	if (fd < 0)
		return;
	dprintf(fd, "%u %lu %lu %d %lu %ld\n", probes, atomic_load(&toggles), atomic_load(&errors),
		atomic_load(&last_error), atomic_load(&calls), atomic_load(&held));
	close(fd);
}

__attribute__((destructor)) static void end(void)
{
	if (!started || getpid() != owner)
		return;
	atomic_store_explicit(&stop, true, memory_order_relaxed);
	for (unsigned i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	tell_toggles();
}
