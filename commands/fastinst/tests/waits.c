/* SPDX-License-Identifier: MIT */
/*
 * A program with a thread in each system call that signal(7) says is never restarted: again and
 * again, for two milliseconds, with calls of a function in between, until its standard input ends.
 * Then it says what each of them returned. Two calls have no time: they must not return.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define MS 2
#define N  (sizeof(waits) / sizeof(*waits))

/* As a C library makes them; each of them has another way to. */
#define CALL(number, ...) CALL_6(number, __VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define CALL_6(number, a, b, c, d, e, f, ...)                                                      \
	({                                                                                         \
		register long r10 __asm__("r10") = (long)(d), r8 __asm__("r8") = (long)(e);        \
		register long r9 __asm__("r9") = (long)(f);                                        \
		long ret;                                                                          \
		__asm__ volatile("movl %[nr], %%eax; syscall"                                      \
				 : "=&a"(ret)                                                      \
				 : [nr] "i"(number), "D"((long)(a)), "S"((long)(b)),               \
				   "d"((long)(c)), "r"(r10), "r"(r8), "r"(r9)                      \
				 : "rcx", "r11", "memory");                                        \
		ret;                                                                               \
	})

static atomic_bool ends;
static const struct timespec time_of = { .tv_nsec = MS * 1000000 };
static int epoll, semaphore, queue, pair[2], listener;
static uint32_t word;

__attribute__((noinline)) int leaf(int x)
{
	return 3 * x + 1;
}

static long wait_nanosleep(void)
{
	return CALL(SYS_nanosleep, &time_of);
}

static long wait_clock_nanosleep(void)
{
	return CALL(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time_of);
}

static long wait_poll(void)
{
	return CALL(SYS_poll, 0, 0, MS);
}

static long wait_ppoll(void)
{
	struct timespec time = time_of;

	return CALL(SYS_ppoll, 0, 0, &time);
}

static long wait_select(void)
{
	struct timeval time = { .tv_usec = MS * 1000 };

	return CALL(SYS_select, 0, 0, 0, 0, &time);
}

static long wait_pselect(void)
{
	struct timespec time = time_of;

	return CALL(SYS_pselect6, 0, 0, 0, 0, &time);
}

static long wait_epoll(void)
{
	struct epoll_event event;

	return CALL(SYS_epoll_wait, epoll, &event, 1, MS);
}

static long wait_epoll_pwait(void)
{
	struct epoll_event event;

	return CALL(SYS_epoll_pwait, epoll, &event, 1, MS);
}

static long wait_semaphore(void)
{
	struct sembuf down = { .sem_op = -1 };

	return CALL(SYS_semtimedop, semaphore, &down, 1, &time_of);
}

static long wait_signal(void)
{
	uint64_t set = UINT64_C(1) << (SIGUSR1 - 1);

	return CALL(SYS_rt_sigtimedwait, &set, 0, &time_of, sizeof(set));
}

/* FUTEX_WAIT */
static long wait_futex(void)
{
	return CALL(SYS_futex, &word, 0, 0, &time_of);
}

static long wait_recv(void)
{
	char byte;

	return CALL(SYS_recvfrom, pair[0], &byte, 1);
}

static long wait_recvmsg(void)
{
	struct msghdr message = { .msg_iov = NULL };

	return CALL(SYS_recvmsg, pair[0], &message);
}

static long wait_read(void)
{
	char byte;

	return CALL(SYS_read, pair[0], &byte, 1);
}

static long wait_accept(void)
{
	return CALL(SYS_accept, listener);
}

/* --- Without a time --- */

static long wait_message(void)
{
	char message[16];

	return CALL(SYS_msgrcv, queue, message, 1);
}

static long wait_pause(void)
{
	return CALL(SYS_pause, 0);
}

static long wait_suspended(void)
{
	uint64_t set = 0;

	return CALL(SYS_rt_sigsuspend, &set, sizeof(set));
}

static struct {
	const char *name;
	long (*wait)(void);
	long returns;
	bool never;
	atomic_long others; /* what else it returned, the last time */
	atomic_long odd;    /* and how often */
} waits[] = {
	{ "nanosleep", wait_nanosleep, 0 },
	{ "clock_nanosleep", wait_clock_nanosleep, 0 },
	{ "poll", wait_poll, 0 },
	{ "ppoll", wait_ppoll, 0 },
	{ "select", wait_select, 0 },
	{ "pselect", wait_pselect, 0 },
	{ "epoll_wait", wait_epoll, 0 },
	{ "epoll_pwait", wait_epoll_pwait, 0 },
	{ "semtimedop", wait_semaphore, -EAGAIN },
	{ "sigtimedwait", wait_signal, -EAGAIN },
	{ "futex", wait_futex, -ETIMEDOUT },
	{ "recv", wait_recv, -EAGAIN },
	{ "recvmsg", wait_recvmsg, -EAGAIN },
	{ "read", wait_read, -EAGAIN },
	{ "accept", wait_accept, -EAGAIN },
	{ "msgrcv", wait_message, 0, true },
	{ "pause", wait_pause, 0, true },
	{ "sigsuspend", wait_suspended, 0, true },
};

static void *keep_waiting(void *arg)
{
	uintptr_t i = (uintptr_t)arg;
	volatile int sum = 0;

	while (!ends) {
		long ret = waits[i].wait();

		if (!ends && (waits[i].never || ret != waits[i].returns)) {
			waits[i].others = ret;
			waits[i].odd++;
		}
		sum = sum + leaf(1);
		/* Some run for longer than it takes to look at them. */
		for (int j = 0; j < 20000 && i % 2; j++)
			sum = sum + j;
	}
	return NULL;
}

static bool open_all(void)
{
	const struct timeval time = { .tv_usec = MS * 1000 };

	epoll = epoll_create1(0);
	semaphore = semget(IPC_PRIVATE, 1, 0600);
	queue = msgget(IPC_PRIVATE, 0600);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	return epoll >= 0 && semaphore >= 0 && queue >= 0 &&
	       socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 &&
	       bind(listener, &(struct sockaddr){ .sa_family = AF_UNIX }, sizeof(sa_family_t)) ==
		       0 &&
	       listen(listener, 1) == 0 &&
	       setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)) == 0 &&
	       setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)) == 0;
}

int main(void)
{
	pthread_t threads[N];
	char line[8];

	if (!open_all())
		return 77;
	for (uintptr_t i = 0; i < N; i++)
		if (pthread_create(&threads[i], NULL, keep_waiting, (void *)i))
			return 77;
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		;
	ends = true;
	for (size_t i = 0; i < N; i++) {
		if (!waits[i].never)
			pthread_join(threads[i], NULL);
		printf("%s: %ld times %ld\n", waits[i].name, waits[i].odd, waits[i].others);
	}
	semctl(semaphore, 0, IPC_RMID);
	msgctl(queue, IPC_RMID, NULL);
	return 0;
}
