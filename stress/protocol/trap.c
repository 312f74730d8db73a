/* SPDX-License-Identifier: MIT */
/*
 * What becomes of a thread that runs into a guard byte, and signals that make threads serialise. A
 * trap anywhere else is a tear that kills.
 */
#include "stress/protocol/trap.h"

#include <cpuid.h>
#include <dirent.h>
#include <errno.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/clock.h"
#include "stress/protocol/protocol.h"

#define INT3	       0xcc
#define SITES_MAX      3
#define HANDLED_WITHIN 5.0 /* seconds */

/* Of the one cell of this process. */
static const uint8_t *site_at[SITES_MAX], *run_again;
static unsigned sites, site_length;
static struct guard_byte {
	unsigned at;
	uint8_t byte;
	enum trap_action action;
} guards[2 * PROTOCOL_STEPS + 1];
static unsigned guard_count;
static _Atomic(uint64_t) traps;
static _Atomic(unsigned) handled, inside;

/* The site in which a thread is there, and how far; NULL: in none. */
static const uint8_t *find_site(const uint8_t *rip, unsigned *offset)
{
	for (unsigned i = 0; i < sites; i++)
		if (rip >= site_at[i] && rip < site_at[i] + site_length) {
			*offset = (unsigned)(rip - site_at[i]);
			return site_at[i];
		}
	return NULL;
}

/* The thread dies of it as soon as this handler returns. */
static void die_of(int signal_number)
{
	signal(signal_number, SIG_DFL);
	syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signal_number);
}

static void on_trap(int signal_number, siginfo_t *info, void *context)
{
	greg_t *rip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	/* Behind an INT3, and at any other byte. */
	const uint8_t *at = (const uint8_t *)(uintptr_t)*rip - (signal_number == SIGTRAP), *site;
	unsigned offset;

	(void)info;
	site = find_site(at, &offset);
	for (unsigned i = 0; site && i < guard_count; i++) {
		if (guards[i].at != offset ||
		    (guards[i].byte == INT3) != (signal_number == SIGTRAP))
			continue;
		atomic_fetch_add_explicit(&traps, 1, memory_order_relaxed);
		if (guards[i].action == TRAP_PASS)
			at = site + site_length;
		else
			at = run_again ? run_again : site;
		*rip = (greg_t)(uintptr_t)at;
		return;
	}
	die_of(signal_number);
}

static void on_signal(int signal_number, siginfo_t *info, void *context)
{
	const greg_t *rip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	unsigned offset = 0;

	(void)signal_number;
	(void)info;
	if (find_site((const uint8_t *)(uintptr_t)*rip, &offset) && offset)
		atomic_fetch_add(&inside, 1);
	atomic_fetch_add(&handled, 1);
}

int signal_threads(void)
{
	double until = seconds_now() + HANDLED_WITHIN;
	pid_t self = (pid_t)syscall(SYS_gettid);
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *task;
	unsigned sent = 0;

	if (!tasks)
		return -errno;
	atomic_store(&handled, 0);
	atomic_store(&inside, 0);
	while ((task = readdir(tasks))) {
		pid_t tid = atoi(task->d_name);

		if (tid > 0 && tid != self)
			sent += syscall(SYS_tgkill, getpid(), tid, SIGUSR2) == 0;
	}
	closedir(tasks);
	while (atomic_load(&handled) < sent)
		if (seconds_now() > until)
			return -ETIMEDOUT;
	return (int)atomic_load(&inside);
}

static bool has_flush(enum flush_kind kind)
{
	unsigned eax, ebx = 0, ecx, edx;

	__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx);
	return kind == FLUSH_CLFLUSH || ebx & (kind == FLUSH_CLFLUSHOPT ? 1u << 23 : 1u << 24);
}

/* Take down a guard, and prepare what a step needs. */
static int prepare_step(const struct protocol_step *step)
{
	int command = MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE;

	if (step->kind == STEP_FLUSH)
		return has_flush((enum flush_kind)step->form) ? 0 : -ENOTSUP;
	if (step->kind == STEP_GUARD)
		guards[guard_count++] =
			(struct guard_byte){ step->span.at, step->bytes[0], step->trap };
	if (step->kind != STEP_RESTORE && step->kind != STEP_MEMBARRIER)
		return 0;
	if (step->kind == STEP_MEMBARRIER && step->form == BARRIER_EXPEDITED)
		command = MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
	return syscall(SYS_membarrier, command, 0, 0) < 0 ? -ENOTSUP : 0;
}

int protocol_begin(const struct protocol_file *p, const uint8_t *const *at, unsigned count,
		   const uint8_t *again)
{
	static const int numbers[] = { SIGTRAP, SIGILL, SIGSEGV };
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	int ret = 0;

	if (count > SITES_MAX)
		return -EINVAL;
	sites = count;
	site_length = p->length;
	run_again = again;
	guard_count = 0;
	for (unsigned i = 0; i < count; i++)
		site_at[i] = at[i];
	for (unsigned way = 0; way < 2; way++)
		for (unsigned i = 0; i < p->steps[way] && ret == 0; i++)
			ret = prepare_step(&p->step[way][i]);
	/* That of a restore, and of protocol_settle(). */
	guards[guard_count++] = (struct guard_byte){ 0, INT3, TRAP_RESTART };
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]) && ret == 0; i++)
		ret = sigaction(numbers[i], &action, NULL) < 0 ? -errno : 0;
	action.sa_sigaction = on_signal;
	action.sa_flags |= SA_RESTART;
	return ret == 0 && sigaction(SIGUSR2, &action, NULL) < 0 ? -errno : ret;
}

uint64_t protocol_traps(void)
{
	return atomic_load(&traps);
}
