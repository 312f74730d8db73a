/* SPDX-License-Identifier: MIT */
#include "bench/peers/hand.h"

#include <errno.h>
#include <linux/membarrier.h>
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
	bool open;
	struct sigaction before;
	/* A site once patched stays one: its trap may be delivered after the change is over. */
	_Atomic(uint8_t *) site[HAND_SITES];
} hand;

/* Registered, it fails only where the kernel is short of memory for a moment. */
static void sync_all(void)
{
	while (syscall(__NR_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) < 0)
		sched_yield();
}

/* --- Executors ------------------------------------------------------------------------ */

/* A trap at no site of ours goes on as if this handler were not there. */
static void on_trap(int signal, siginfo_t *info, void *context)
{
	greg_t *pc = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	const struct sigaction *before = &hand.before;
	uint8_t *site = (uint8_t *)*pc - 1, *known = NULL;

	for (unsigned i = 0; i < HAND_SITES && known != site && info->si_code > 0; i++) {
		known = atomic_load_explicit(&hand.site[i], memory_order_acquire);
		if (!known)
			break;
	}
	if (known == site) {
		if (__atomic_load_n(site, __ATOMIC_ACQUIRE) == INT3)
			sched_yield();
		*pc = (greg_t)(uintptr_t)site;
	} else if (before->sa_handler == SIG_IGN && info->si_code <= 0) {
		return;
	} else if (before->sa_handler == SIG_DFL || before->sa_handler == SIG_IGN) {
		sigaction(signal, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
		raise(signal);
	} else if (before->sa_flags & SA_SIGINFO) {
		before->sa_sigaction(signal, info, context);
	} else {
		before->sa_handler(signal);
	}
}

/* --- The patcher ---------------------------------------------------------------------- */

int hand_open(void)
{
	struct sigaction ours = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	if (hand.open)
		return -EALREADY;
	if (syscall(__NR_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) < 0)
		return -ENOTSUP;
	/* What is there is known before the first trap comes. */
	if (sigaction(SIGTRAP, NULL, &hand.before) < 0 || sigaction(SIGTRAP, &ours, NULL) < 0)
		return -errno;
	hand.open = true;
	return 0;
}

void hand_close(void)
{
	if (hand.open)
		sigaction(SIGTRAP, &hand.before, NULL);
	for (unsigned i = 0; i < HAND_SITES; i++)
		atomic_store_explicit(&hand.site[i], NULL, memory_order_relaxed);
	hand.open = false;
}

int hand_patch(void *addr, const void *bytes, size_t len)
{
	const uint8_t *code = bytes;
	uint8_t *site = addr;
	unsigned i = 0;

	if (!addr || !bytes || len < 1 || len > HAND_MAX || *code == INT3)
		return -EINVAL;
	if (!hand.open)
		return -ESHUTDOWN;
	if (*site == INT3)
		return -EAGAIN;
	while (i < HAND_SITES && hand.site[i] && hand.site[i] != site)
		i++;
	if (i == HAND_SITES)
		return -ENOSPC;
	/* It is known before its INT3 is there: an executor that traps must find it. */
	atomic_store_explicit(&hand.site[i], site, memory_order_release);
	__atomic_store_n(site, INT3, __ATOMIC_RELEASE);
	sync_all();
	memcpy(site + 1, code + 1, len - 1);
	sync_all();
	__atomic_store_n(site, code[0], __ATOMIC_RELEASE);
	sync_all();
	return 0;
}
