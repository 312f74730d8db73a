/* SPDX-License-Identifier: MIT */
/*
 * A program that a library is put into, over and over. It notices each thing that attaching may do
 * to it: other results, other registers, a system call that fails or ends too early, a signal that
 * is lost. It says what is wrong, and exits with 1 then; else with 42, after its last line. SIGTERM
 * ends it.
 *
 *	victim all|MODE
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static atomic_bool over;
static atomic_int wrong;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void complain(const char *what)
{
	if (atomic_load(&over))
		return;
	printf("WRONG: %s (errno %d)\n", what, errno);
	atomic_store(&wrong, 1);
	atomic_store(&over, true);
}

static bool goes_on(void)
{
	return !atomic_load_explicit(&over, memory_order_relaxed);
}

/* All registers hold something, and so does the red zone; errno too. */
__attribute__((noinline)) static unsigned long in_registers(unsigned long n)
{
	unsigned long lost = 0;

	asm volatile("	movq %%rsp, %%xmm15\n"
		     "	mov $1, %%rax\n"
		     "	mov $2, %%rbx\n"
		     "	mov $3, %%rdx\n"
		     "	mov $4, %%rsi\n"
		     "	mov $5, %%rdi\n"
		     "	mov $6, %%r8\n"
		     "	mov $7, %%r9\n"
		     "	mov $8, %%r10\n"
		     "	mov $9, %%r11\n"
		     "	mov $10, %%r12\n"
		     "	mov $11, %%r13\n"
		     "	mov $12, %%r14\n"
		     "	mov $13, %%r15\n"
		     "	movq %%r15, %%xmm0\n"
		     "	movq %%r14, %%xmm7\n"
		     "	mov %%rax, -8(%%rsp)\n"
		     "	mov %%rbx, -64(%%rsp)\n"
		     "	mov %%rdx, -128(%%rsp)\n"
		     "1:	sub $1, %%rcx\n"
		     "	jnz 1b\n"
		     "	lea -1(%%rax), %%rcx\n"
		     "	sub $2, %%rbx\n	or %%rbx, %%rcx\n"
		     "	sub $3, %%rdx\n	or %%rdx, %%rcx\n"
		     "	sub $4, %%rsi\n	or %%rsi, %%rcx\n"
		     "	sub $5, %%rdi\n	or %%rdi, %%rcx\n"
		     "	sub $6, %%r8\n	or %%r8, %%rcx\n"
		     "	sub $7, %%r9\n	or %%r9, %%rcx\n"
		     "	sub $8, %%r10\n	or %%r10, %%rcx\n"
		     "	sub $9, %%r11\n	or %%r11, %%rcx\n"
		     "	sub $10, %%r12\n	or %%r12, %%rcx\n"
		     "	sub $11, %%r13\n	or %%r13, %%rcx\n"
		     "	sub $12, %%r14\n	or %%r14, %%rcx\n"
		     "	sub $13, %%r15\n	or %%r15, %%rcx\n"
		     "	movq %%xmm0, %%rax\n	sub $13, %%rax\n	or %%rax, %%rcx\n"
		     "	movq %%xmm7, %%rax\n	sub $12, %%rax\n	or %%rax, %%rcx\n"
		     "	mov -8(%%rsp), %%rax\n	sub $1, %%rax\n	or %%rax, %%rcx\n"
		     "	mov -64(%%rsp), %%rax\n	sub $2, %%rax\n	or %%rax, %%rcx\n"
		     "	mov -128(%%rsp), %%rax\n	sub $3, %%rax\n	or %%rax, %%rcx\n"
		     "	movq %%xmm15, %%rax\n	sub %%rsp, %%rax\n	or %%rax, %%rcx\n"
		     : "+c"(n)
		     :
		     : "rax", "rbx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
		       "r14", "r15", "xmm0", "xmm7", "xmm15", "cc", "memory");
	lost = n;
	return lost;
}

static void *registers(void *data)
{
	while (goes_on()) {
		errno = 4711;
		if (in_registers(20000))
			complain("a register, a vector or the red zone changed");
		if (errno != 4711)
			complain("errno changed");
	}
	return data;
}

static void *allocate(void *data)
{
	void *held[64] = { 0 };
	unsigned seed = 1;

	while (goes_on()) {
		unsigned i = (seed = seed * 1103515245 + 12345) >> 16 & 63;

		free(held[i]);
		held[i] = malloc(16 + (seed >> 8 & 0xfff));
		if (!held[i])
			complain("malloc");
		memset(held[i], (int)i, 16);
	}
	for (int i = 0; i < 64; i++)
		free(held[i]);
	return data;
}

static void *sleeps(void *data)
{
	while (goes_on()) {
		double began = now();
		const struct timespec pause = { .tv_nsec = 20000000 };

		if (nanosleep(&pause, NULL))
			complain("nanosleep() failed");
		if (now() - began < 0.0199)
			complain("nanosleep() ended early");
	}
	return data;
}

static int channel[2];

static void *reads(void *data)
{
	unsigned char expected = 0, got;

	while (goes_on()) {
		if (read(channel[0], &got, 1) != 1)
			complain("read() failed");
		else if (got != expected++)
			complain("read() lost a byte");
	}
	return data;
}

static void *writes(void *data)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	unsigned char next = 0;

	while (goes_on()) {
		if (write(channel[1], &next, 1) != 1)
			complain("write() failed");
		next++;
		nanosleep(&pause, NULL);
	}
	/* So that the reader ends. */
	if (write(channel[1], &next, 1) != 1)
		complain("write() failed");
	return data;
}

static void *polls(void *data)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event;

	while (goes_on()) {
		double began = now();

		if (epoll_wait(epoll, &event, 1, 20))
			complain("epoll_wait() failed");
		if (now() - began < 0.0189)
			complain("epoll_wait() ended early");
	}
	close(epoll);
	return data;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static unsigned long turns;

static void *takes_turns(void *data)
{
	unsigned long me = (unsigned long)(uintptr_t)data;

	pthread_mutex_lock(&lock);
	while (goes_on()) {
		turns++;
		pthread_cond_signal(&turn);
		while (turns % 2 != me && !atomic_load(&over))
			pthread_cond_wait(&turn, &lock);
	}
	pthread_cond_broadcast(&turn);
	pthread_mutex_unlock(&lock);
	return data;
}

static atomic_ulong sent, received;

static void on_signal(int number)
{
	(void)number;
	atomic_fetch_add(&received, 1);
}

/* Each is waited for, so none may be lost; malloc is interrupted as well. */
static void *signals(void *data)
{
	sigset_t user;

	sigemptyset(&user);
	sigaddset(&user, SIGUSR1);
	pthread_sigmask(SIG_UNBLOCK, &user, NULL);
	while (goes_on()) {
		unsigned long before = atomic_load(&received);
		double until = now() + 20;

		atomic_fetch_add(&sent, 1);
		kill(getpid(), SIGUSR1);
		while (atomic_load(&received) == before && now() < until)
			free(malloc(100));
		if (atomic_load(&received) == before)
			complain("a signal was lost");
	}
	return data;
}

static void *forks(void *data)
{
	const struct timespec pause = { .tv_nsec = 2000000 };

	while (goes_on()) {
		int status = 0;
		pid_t child = fork();

		if (!child)
			_exit(7);
		if (child < 0 || waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7)
			complain("a child ended otherwise");
		nanosleep(&pause, NULL);
	}
	return data;
}

static const struct part {
	const char *mode;
	void *(*run)(void *data);
	uintptr_t data;
} parts[] = {
	{ "registers", registers, 0 }, { "malloc", allocate, 0 },   { "sleep", sleeps, 0 },
	{ "read", reads, 0 },	       { "read", writes, 0 },	    { "epoll", polls, 0 },
	{ "futex", takes_turns, 0 },   { "futex", takes_turns, 1 }, { "signals", signals, 0 },
	{ "forks", forks, 0 },
};

static void end(int number)
{
	(void)number;
	atomic_store(&over, true);
}

static void *run_part(void *data)
{
	const struct part *part = data;
	return part->run((void *)part->data);
}

/* The first part of a mode is run by the main thread, so that it may be the only one. */
int main(int argc, char **argv)
{
	const struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	const struct sigaction last = { .sa_handler = end };
	sigset_t user;
	pthread_t threads[16];
	bool all = argc == 2 && !strcmp(argv[1], "all");
	int first = -1, n = 0;

	if (argc != 2 || pipe(channel) < 0)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGTERM, &last, NULL);
	/* One thread takes them: others' sleep would end. */
	sigemptyset(&user);
	sigaddset(&user, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &user, NULL);
	for (int i = 0; i < (int)(sizeof(parts) / sizeof(*parts)); i++) {
		if (!all && strcmp(argv[1], parts[i].mode) != 0)
			continue;
		if (first < 0)
			first = i;
		else
			pthread_create(&threads[n++], NULL, run_part, (void *)&parts[i]);
	}
	if (first < 0)
		return 2;
	puts("ready");
	run_part((void *)&parts[first]);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	puts("end");
	return atomic_load(&wrong) ? 1 : 42;
}
