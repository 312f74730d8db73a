/* SPDX-License-Identifier: MIT */
/*
 * A program with a thread that blocks all signals and calls functions all the while. Lines tell it
 * what to do: "blink", the thread calls none, and lets SIGTRAP in for 5 of 45 ms, as a thread does
 * that starts on a busy machine; "open", the thread lets SIGTRAP in; "take", a handler of its own
 * for SIGTRAP; "raise". At the end it says how many of its SIGTRAPs the handler got.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_bool blink_wanted, open_wanted, is_open, ends;
static atomic_int taken;

__attribute__((noinline)) int leaf(int x)
{
	return 3 * x + 1;
}

__attribute__((noinline)) int branch(int x)
{
	return x % 2 ? leaf(x) : leaf(x / 2) + 1;
}

static void on_trap(int signal)
{
	(void)signal;
	taken++;
}

static void blink_trap(void)
{
	sigset_t trap;

	sigemptyset(&trap);
	sigaddset(&trap, SIGTRAP);
	pthread_sigmask(SIG_UNBLOCK, &trap, NULL);
	usleep(5000);
	pthread_sigmask(SIG_BLOCK, &trap, NULL);
	usleep(40000);
}

static void *call_masked(void *unused)
{
	unsigned sum = 0;
	sigset_t set;

	sigfillset(&set);
	pthread_sigmask(SIG_SETMASK, &set, NULL);
	printf("thread %ld\n", (long)syscall(SYS_gettid));
	fflush(stdout);
	for (int i = 0; !ends; i++) {
		if (blink_wanted && !open_wanted) {
			blink_trap();
			continue;
		}
		sum += (unsigned)branch(i & 0xff);
		if (open_wanted && !is_open) {
			sigemptyset(&set);
			sigaddset(&set, SIGTRAP);
			pthread_sigmask(SIG_UNBLOCK, &set, NULL);
			is_open = true;
		}
		usleep(sum % 2 ? 1000 : 100);
	}
	return unused;
}

static void obey(const char *line)
{
	if (!strcmp(line, "blink\n")) {
		blink_wanted = true;
	} else if (!strcmp(line, "open\n")) {
		open_wanted = true;
		while (!is_open)
			usleep(1000);
	} else if (!strcmp(line, "take\n")) {
		signal(SIGTRAP, on_trap);
	} else {
		raise(SIGTRAP);
	}
	printf("done %s", line);
	fflush(stdout);
}

int main(void)
{
	pthread_t thread;
	char line[64];

	if (pthread_create(&thread, NULL, call_masked, NULL))
		return 1;
	while (fgets(line, sizeof(line), stdin))
		obey(line);
	ends = true;
	pthread_join(thread, NULL);
	printf("taken %d\n", taken);
	return 0;
}
