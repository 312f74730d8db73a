/* SPDX-License-Identifier: MIT */
/* A program of ordinary kinds of trouble, for "unharmed": works for two seconds and prints a sum.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define ROUNDS	60
#define THREADS 200
#define STACK	4096 /* bytes of a coroutine's */

static unsigned long sums[THREADS];

__attribute__((noinline)) static unsigned long mix(unsigned long sum, unsigned long i)
{
	return (sum * 31 + i) % 1000003;
}

__attribute__((noinline)) static unsigned long work(unsigned long sum)
{
	for (unsigned long i = 0; i < 2000; i++)
		sum = mix(sum, i);
	return sum;
}

/* It must not end early. */
static void sleep_ms(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	if (nanosleep(&time, NULL) < 0)
		printf("nanosleep: %s\n", strerror(errno));
}

static void *run_rounds(void *arg)
{
	unsigned long *sum = arg;

	for (int i = 0; i < ROUNDS; i++) {
		*sum = work(*sum);
		sleep_ms(50);
	}
	return NULL;
}

static void *wait_for_all_signals(void *arg)
{
	sigset_t all;
	int signal;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	while (sigwait(&all, &signal) == 0 && signal != SIGUSR1)
		printf("signal %d\n", signal);
	return arg;
}

static void keep_to_few_calls(void)
{
	static struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		exit(77);
}

static ucontext_t outside, inside;

static void run_inside(void)
{
	for (;;) {
		sums[0] = work(sums[0]);
		swapcontext(&inside, &outside);
	}
}

static void run_coroutine(void)
{
	static char stack[STACK];

	getcontext(&inside);
	inside.uc_stack.ss_sp = stack;
	inside.uc_stack.ss_size = sizeof(stack);
	makecontext(&inside, run_inside, 0);
	for (int i = 0; i < ROUNDS; i++) {
		swapcontext(&outside, &inside);
		sleep_ms(50);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int threads = atoi(what) ? THREADS : 2;
	pthread_t thread[THREADS], waiter;

	if (strcmp(what, "coroutines") == 0) {
		run_coroutine();
		printf("%lu\n", sums[0]);
		return 0;
	}
	if (strcmp(what, "seccomp") == 0)
		keep_to_few_calls();
	if (strcmp(what, "sigwait") == 0)
		pthread_create(&waiter, NULL, wait_for_all_signals, NULL);
	for (int i = 0; i < threads; i++)
		pthread_create(&thread[i], NULL, run_rounds, &sums[i]);
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	if (strcmp(what, "sigwait") == 0) {
		pthread_kill(waiter, SIGUSR1);
		pthread_join(waiter, NULL);
	}
	printf("%lu %lu\n", sums[0], sums[threads - 1]);
	return 0;
}
