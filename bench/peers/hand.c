/* SPDX-License-Identifier: MIT */
#include "bench/peers/hand.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define INT3 0xcc

static struct {
	pthread_mutex_t lock;
	bool open;
	struct sigaction before;
	/* A site once patched stays one: its trap may be delivered after the change is over. */
	_Atomic(uint8_t *) site[HAND_SITES];
} hand = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int membarrier(int command)
{
	return syscall(__NR_membarrier, command, 0, 0) < 0 ? -errno : 0;
}

/* Registered, it fails only where the kernel is short of memory for a moment. */
static void sync_all(void)
{
	while (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE) < 0)
		sched_yield();
}

/* --- Executors ------------------------------------------------------------------------ */

static bool is_site(const uint8_t *addr)
{
	for (unsigned i = 0; i < HAND_SITES; i++) {
		uint8_t *site = atomic_load_explicit(&hand.site[i], memory_order_acquire);

		if (!site)
			return false;
		if (site == addr)
			return true;
	}
	return false;
}

/* As if this handler were not there. */
static void pass_on(int signal, siginfo_t *info, void *context)
{
	const struct sigaction *before = &hand.before;

	if (before->sa_handler == SIG_IGN && info->si_code <= 0)
		return;
	if (before->sa_handler == SIG_DFL || before->sa_handler == SIG_IGN) {
		sigaction(signal, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
		raise(signal);
	} else if (before->sa_flags & SA_SIGINFO) {
		before->sa_sigaction(signal, info, context);
	} else {
		before->sa_handler(signal);
	}
}

static void on_trap(int signal, siginfo_t *info, void *context)
{
	greg_t *pc = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	uint8_t *site = (uint8_t *)*pc - 1;

	if (info->si_code <= 0 || !is_site(site)) {
		pass_on(signal, info, context);
		return;
	}
	if (__atomic_load_n(site, __ATOMIC_ACQUIRE) == INT3)
		sched_yield();
	*pc = (greg_t)(uintptr_t)site;
}

/* --- The patcher ---------------------------------------------------------------------- */

int hand_open(void)
{
	struct sigaction ours = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	int ret = 0;

	pthread_mutex_lock(&hand.lock);
	if (hand.open)
		ret = -EALREADY;
	else if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE) < 0)
		ret = -ENOTSUP;
	/* What is there is known before the first trap comes. */
	else if (sigaction(SIGTRAP, NULL, &hand.before) < 0 || sigaction(SIGTRAP, &ours, NULL) < 0)
		ret = -errno;
	hand.open |= ret == 0;
	pthread_mutex_unlock(&hand.lock);
	return ret;
}

void hand_close(void)
{
	pthread_mutex_lock(&hand.lock);
	if (hand.open)
		sigaction(SIGTRAP, &hand.before, NULL);
	for (unsigned i = 0; i < HAND_SITES; i++)
		atomic_store_explicit(&hand.site[i], NULL, memory_order_relaxed);
	hand.open = false;
	pthread_mutex_unlock(&hand.lock);
}

/* Before its INT3 is there: an executor that traps must find it. */
static int remember_site(uint8_t *site)
{
	for (unsigned i = 0; i < HAND_SITES; i++) {
		uint8_t *known = atomic_load_explicit(&hand.site[i], memory_order_relaxed);

		if (known == site)
			return 0;
		if (!known) {
			atomic_store_explicit(&hand.site[i], site, memory_order_release);
			return 0;
		}
	}
	return -ENOSPC;
}

static void put_first(uint8_t *site, uint8_t byte)
{
	__atomic_store_n(site, byte, __ATOMIC_RELEASE);
	sync_all();
}

static int patch_locked(uint8_t *site, const uint8_t *bytes, size_t len)
{
	int ret;

	if (!hand.open)
		return -ESHUTDOWN;
	if (*site == INT3)
		return -EAGAIN;
	ret = remember_site(site);
	if (ret < 0)
		return ret;
	put_first(site, INT3);
	memcpy(site + 1, bytes + 1, len - 1);
	sync_all();
	put_first(site, bytes[0]);
	return 0;
}

int hand_patch(void *addr, const void *bytes, size_t len)
{
	int ret;

	if (!addr || !bytes || len < 1 || len > HAND_MAX || *(const uint8_t *)bytes == INT3)
		return -EINVAL;
	pthread_mutex_lock(&hand.lock);
	ret = patch_locked(addr, bytes, len);
	pthread_mutex_unlock(&hand.lock);
	return ret;
}
