/* SPDX-License-Identifier: MIT */
#include "probes/profile/epochs/epochs.h"

#include <pthread.h>
#include <time.h>

struct options asked;
struct book books[FI_PROBES_MAX];
uint32_t reopened[FI_PROBES_MAX];
uint8_t book_rests[FI_PROBES_MAX];
uint32_t books_known;
struct account account;
struct pace pace;
static pthread_mutex_t lock;

void books_lock_start(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

int books_lock(void)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec++;
	return -pthread_mutex_clocklock(&lock, CLOCK_MONOTONIC, &until);
}

int books_wait(void)
{
	return -pthread_mutex_lock(&lock);
}

void books_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/* --- What the profile costs, by its own measure ------------------------------------------------
 */

double cost_toggling(void)
{
	return (double)load_relaxed(&watch_common.off_ticks) + account.turning_on;
}

void cost_turned_on(double since)
{
	account.turning_on +=
		(clock_seconds(CLOCK_THREAD_CPUTIME_ID) - since) * watch_common.per_second;
}

double cost_spent(void)
{
	return account.start + clock_seconds(watch_common.own) * watch_common.per_second +
	       (double)load_relaxed(&watch_common.spent) +
	       (double)(ring_run() - account.run_at_start) * ring_price();
}

void cost_settle(void)
{
	double now = cost_spent();

	account.spent = now > account.spent ? now : account.spent;
	account.used = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) * watch_common.per_second -
		       account.used_at_start;
}
