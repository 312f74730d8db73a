/* SPDX-License-Identifier: MIT */
/*
 * The operations of bench_growth, how there comes to be more of what each grows with, and their
 * table.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/cases/growth.h"
#include "patchcore/async.h"
#include "patchcore/merge.h"

#define STRIDE 64 /* of sites, each across a line */
#define SPLIT  3
#define LENGTH 5
#define MIB    ((size_t)1 << 20)
#define GIB    ((size_t)1 << 30)
#define STACK  ((size_t)262144)

#define OPERATION(name, what)                                                                      \
	static int name(struct ground *c, unsigned i)                                              \
	{                                                                                          \
		(void)c;                                                                           \
		(void)i;                                                                           \
		return what;                                                                       \
	}

/* --- Sites and pages -------------------------------------------------------------------------- */

/* mov eax, imm32 */
static const uint8_t codes[2][LENGTH] = { { 0xb8, 1, 2, 3, 4 }, { 0xb8, 5, 6, 7, 8 } };
static const uint8_t nops[LENGTH] = { 0x90, 0x90, 0x90, 0x90, 0x90 };
static const uint8_t nop[LENGTH] = { 0x0f, 0x1f, 0x44 };

static uint8_t *page_at(const struct ground *c, unsigned i)
{
	return c->code + i % PAGES * PAGE;
}

static uint8_t *site_at(const struct ground *c, unsigned i)
{
	return c->code + (i + 1) * (size_t)STRIDE - SPLIT;
}

/* A site on the last page, which the operations that grow leave alone. */
static uint8_t *lone_site(const struct ground *c)
{
	return page_at(c, PAGES - 1) + STRIDE - SPLIT;
}

OPERATION(open_all, i ? 0 : pc_text_open(c->code, (c->size + 1) * (size_t)STRIDE))
OPERATION(add_site, open_all(c, i) ?: pc_patch(site_at(c, i), codes[i % 2], LENGTH))

/* The kernel merges mappings of one protection. */
OPERATION(add_mapping, mprotect(page_at(c, 2 * i), PAGE, PROT_READ) < 0 ? -errno : 0)
OPERATION(add_alias, pc_text_alias(page_at(c, i), PAGE))

static int add_opened(struct ground *c, unsigned i)
{
	uint8_t *at = c->code + i * MIB;

	return pc_text_open(at, MIB) ?: pc_text_close(at, MIB);
}

OPERATION(add_started, open_all(c, i) ?: pc_start_patch(site_at(c, i), codes[i % 2], LENGTH))
OPERATION(do_nothing, 0)
OPERATION(change_site, pc_patch(site_at(c, 0), codes[i % 2], LENGTH))

/* In one word. */
OPERATION(change_closed, pc_patch(lone_site(c) + SPLIT, codes[i % 2], LENGTH))

OPERATION(open_and_close, pc_text_open(lone_site(c), LENGTH) ?: pc_text_close(lone_site(c), LENGTH))
OPERATION(patch_apart, pc_patch(lone_site(c), codes[i % 2], LENGTH))
OPERATION(forget_apart, pc_forget(lone_site(c), LENGTH))
OPERATION(forget_all, pc_forget(c->code, (c->size + 1) * (size_t)STRIDE))

/* As a JIT that maps its code once for all. */
static int use_new_page(struct ground *c, unsigned i)
{
	uint8_t *page = page_at(c, i), *at = page + STRIDE - SPLIT;

	return pc_text_open(page, PAGE) ?: pc_patch(at, codes[0], LENGTH)
	       ?: pc_text_close(page, PAGE) ?: pc_forget(page, PAGE);
}

/* Where nothing is mapped by the kernel's choice. */
OPERATION(open_unmapped, pc_text_open((void *)(1024 * GIB), GIB * c->size) == -EFAULT ? 0 : -EILSEQ)
OPERATION(drain_started, pc_drain())

/* --- Calls ------------------------------------------------------------------------------------ */

/* Once for all; so that pages are written to before what is kept is counted. */
static int put_calls(struct ground *c)
{
	const size_t bytes = (c->size + OPS * TIMES + 1) * (size_t)STRIDE;
	const int32_t rel = 4096;

	if (mprotect(c->code, bytes, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
		return -errno;
	for (unsigned i = 0; i < c->size + OPS * TIMES; i++) {
		*site_at(c, i) = 0xe8;
		memcpy(site_at(c, i) + 1, &rel, sizeof(rel));
	}
	return pc_text_open(c->code, bytes);
}

static int add_call(struct ground *c, unsigned i)
{
	int ret = i ? 0 : put_calls(c);

	ret = ret < 0 ? ret : pc_call_init(&c->call[i], site_at(c, i));
	return ret < 0 ? ret : pc_activate_call(&c->call[i], lone_site(c));
}

static int use_one_call(struct ground *c, unsigned i)
{
	int ret = i ? 0 : put_calls(c);

	ret = ret < 0 ? ret : pc_call_init(c->call, site_at(c, 0));
	ret = ret < 0 ? ret
		      : pc_activate_call(c->call, i % 2 ? lone_site(c) : lone_site(c) + STRIDE);
	return ret < 0 ? ret : pc_forget(site_at(c, 0), LENGTH);
}

/* --- The library, threads and processes ------------------------------------------------------- */

OPERATION(start_again, pc_fini() ?: pc_init())
OPERATION(accept_another, pc_set_accept_p(1e-12 * (i + 1)))

/* Beside the patcher, so that a thread that is asked something answers. */
static void *sleep_beside(void *arg)
{
	struct ground *c = arg;

	if (c->run->seating.executors)
		pin_this_thread(c->run->topology, c->run->seating.executor[0]);
	pc_patch(lone_site(c), codes[0], LENGTH);
	sem_post(&c->ready);
	for (;;)
		pause();
	return NULL;
}

static int add_thread(struct ground *c, unsigned i)
{
	pthread_attr_t attr;
	pthread_t thread;
	int ret;

	(void)i;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	ret = pthread_create(&thread, &attr, sleep_beside, c);
	pthread_attr_destroy(&attr);
	while (ret == 0 && sem_wait(&c->ready) < 0)
		continue;
	return -ret;
}

static void *patch_and_end(void *arg)
{
	pc_patch(lone_site(arg), codes[0], LENGTH);
	return NULL;
}

static int use_thread(struct ground *c, unsigned i)
{
	pthread_t thread;
	int ret = pthread_create(&thread, NULL, patch_and_end, c);

	(void)i;
	return ret ? -ret : -pthread_join(thread, NULL);
}

OPERATION(put_nops, pc_patch_starts(lone_site(c), nops, LENGTH, (1u << LENGTH) - 1))
OPERATION(merge_nops, pc_patch_merge(lone_site(c), nop, LENGTH, PC_CHECK_THREADS))

static int fork_once(struct ground *c, unsigned i)
{
	pid_t child = fork();

	(void)c;
	(void)i;
	if (child == 0)
		_exit(0);
	return child < 0 || waitpid(child, NULL, 0) < 0 ? -errno : 0;
}

/* --- Processes that patch at once ------------------------------------------------------------- */

#define WORK 30000 /* additions, some 10 us of them */

static _Atomic(unsigned) *patching; /* processes that have begun; shared by them */

/* The seats in turn: a patcher and its executor side by side. */
static void take_seat(const struct ground *c, unsigned i)
{
	const struct seating *seating = &c->run->seating;

	i %= seating->executors + 1;
	pin_this_thread(c->run->topology, i ? seating->executor[i - 1] : seating->patcher);
}

static void *run_site(void *arg)
{
	struct ground *c = arg;
	void (*site)(void) = (void (*)(void))(uintptr_t)site_at(c, 0);

	take_seat(c, c->process + 1);
	for (;;)
		site();
	return NULL;
}

static int start_executor(struct ground *c)
{
	pthread_t thread;

	return -pthread_create(&thread, NULL, run_site, c);
}

static int begin_patching(struct ground *c, enum pc_policy policy)
{
	static const uint8_t ret_code[] = { 0xc3 };
	int ret = pc_set_policy(policy) ?: open_all(c, 0);

	patching = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (ret == 0 && patching == MAP_FAILED)
		ret = -errno;
	return ret ?: pc_patch(site_at(c, 0) + LENGTH, ret_code, 1) ?: change_site(c, 0);
}

/* Until the parent ends. */
static void patch_for_good(struct ground *c)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	take_seat(c, c->process);
	if (start_executor(c) < 0)
		_exit(1);
	for (unsigned i = 0; change_site(c, i) == 0; i++)
		if (i == 1)
			(*patching)++;
	_exit(1);
}

/* The first process is this one; the last one comes back when all others are at it. */
static int add_process(struct ground *c, unsigned i, enum pc_policy policy)
{
	pid_t child;

	if (i == 0)
		return begin_patching(c, policy);
	c->process = i;
	child = fork();
	if (child == 0)
		patch_for_good(c);
	if (child < 0)
		return -errno;
	if (i + 1 < c->size)
		return 0;
	while (*patching < i)
		sched_yield();
	c->process = 0;
	return start_executor(c);
}

OPERATION(add_by_membarrier, add_process(c, i, PC_POLICY_MEMBARRIER))
OPERATION(add_by_wait, add_process(c, i, PC_POLICY_WAIT))

/* Another set of threads runs at each operation. */
OPERATION(sleep_some, nanosleep(&(struct timespec){ .tv_nsec = 3000000 + i }, NULL))

static int work_beside(struct ground *c, unsigned i)
{
	(void)c;
	for (volatile unsigned k = i; k < i + WORK; k++)
		;
	return 0;
}

/* clang-format off */
const struct axis growth_axes[] = {
	{ "change", "sites", { 100, 3000, 100000 }, add_site, NULL, change_site, OFTEN },
	{ "change, page not open", "mappings", { 100, 2000, 30000 }, add_mapping, NULL, change_closed, ALONE },
	{ "change, page not open, in a child", "MiB once opened", { 1, 32, 1000 }, add_opened, NULL, change_closed, FORKED },
	{ "open and close", "mappings", { 100, 2000, 30000 }, add_mapping, NULL, open_and_close, ALONE },
	{ "open and close", "threads", { 1, 30, 1000 }, add_thread, NULL, open_and_close, ALONE },
	{ "open what is not mapped", "GiB", { 1, 90, 8192 }, do_nothing, NULL, open_unmapped, ALONE },
	{ "alias", "aliases", { 16, 250, 4000 }, NULL, NULL, add_alias, ALONE },
	{ "forget", "sites", { 100, 3000, 100000 }, add_site, patch_apart, forget_apart, ALONE },
	{ "forget all, each", "sites", { 100, 3000, 100000 }, add_site, NULL, forget_all, ONCE },
	{ "drain, each", "started", { 10, 300, 10000 }, add_started, NULL, drain_started, ONCE },
	{ "open, change, close, forget", "new pages", { 100, 500, 20000 }, NULL, NULL, use_new_page, OFTEN },
	{ "call to one target", "calls", { 100, 1500, 20000 }, NULL, NULL, add_call, OFTEN },
	{ "call and forget, one place", "times", { 100, 1500, 20000 }, NULL, NULL, use_one_call, OFTEN },
	{ "pc_fini and pc_init", "times", { 8, 64, 512 }, NULL, NULL, start_again, ALONE },
	{ "pc_set_accept_p", "times", { 10, 300, 10000 }, NULL, NULL, accept_another, OFTEN },
	{ "merge", "threads", { 1, 30, 1000 }, add_thread, put_nops, merge_nops, ALONE },
	{ "thread that changes and ends", "threads", { 10, 300, 3000 }, NULL, NULL, use_thread, ALONE },
	{ "fork", "sites", { 100, 3000, 100000 }, add_site, NULL, fork_once, ALONE },
	{ "fork", "aliases", { 16, 250, 4000 }, add_alias, NULL, fork_once, ALONE },
	{ "fork", "forks", { 10, 100, 1000 }, NULL, NULL, fork_once, ALONE },
	{ "change by membarrier", "processes", { 2, 8, 32 }, add_by_membarrier, sleep_some, change_site, ALONE },
	{ "change by wait", "processes", { 2, 8, 32 }, add_by_wait, sleep_some, change_site, ALONE },
	{ "work beside membarriers", "processes", { 3, 9, 33 }, add_by_membarrier, sleep_some, work_beside, ALONE },
	{ "work beside waits", "processes", { 3, 9, 33 }, add_by_wait, sleep_some, work_beside, ALONE },
};
/* clang-format on */

const unsigned growth_axes_count = sizeof(growth_axes) / sizeof(growth_axes[0]);
