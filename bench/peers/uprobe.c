/* SPDX-License-Identifier: MIT */
/*
 * A uprobe of the kernel on a function of this program, as perf and libbpf set one: switched on
 * by perf_event_open(), off by close(). The function begins with a five-byte NOP, which recent
 * kernels turn into a call where they once trapped.
 *
 * The event counts the executor's calls and does nothing else: what the kernel does without
 * a program of the user's behind it.
 */
#include <errno.h>
#include <link.h>
#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench/method/hot.h"
#include "bench/peers/outside.h"
#include "patchcore/machine/wait.h"

#define TYPE_FILE "/sys/bus/event_source/devices/uprobe/type"
#define SELF	  "/proc/self/exe"

static struct {
	struct hot *hot;
	const struct bench_run *run;
	char *file; /* that the function is in */
	struct perf_event_attr attr;
	_Atomic(pid_t) executor;
} state;

void uprobe_probed(void);
void uprobe_plain(void);

/* Each on a line of its own: a page of code that holds a probe is a private copy. */
__asm__(".pushsection .text.uprobe, \"ax\", @progbits\n\t"
	".p2align 6\n\t"
	".type uprobe_probed, @function\n"
	"uprobe_probed:\n\t"
	".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n\t"
	"ret\n\t"
	".size uprobe_probed, . - uprobe_probed\n\t"
	".p2align 6\n\t"
	".type uprobe_plain, @function\n"
	"uprobe_plain:\n\t"
	"ret\n\t"
	".size uprobe_plain, . - uprobe_plain\n\t"
	".p2align 6\n\t"
	".popsection");

/* The object that holds the function, and where in its file that is. */
static int look_in(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		uintptr_t at = (uintptr_t)uprobe_probed - info->dlpi_addr - h->p_vaddr;

		if (h->p_type == PT_LOAD && at < h->p_filesz) {
			state.attr.probe_offset = at + h->p_offset;
			state.file = strdup(info->dlpi_name[0] ? info->dlpi_name : SELF);
			return state.file ? 1 : -ENOMEM;
		}
	}
	return 0;
}

static int refused(int ret, char *why)
{
	const char *hint = ret == -EACCES || ret == -EPERM ? " (it takes CAP_PERFMON)" : "";

	snprintf(why, BENCH_WHY, "the kernel sets no uprobe: %s%s", strerror(-ret), hint);
	return ret;
}

/* An event belongs to one thread: the executor's, or if that is 0 the caller's. */
static int switch_on(pid_t task)
{
	return (int)syscall(SYS_perf_event_open, &state.attr, task, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void execute_traced(const struct hot_work *work, unsigned executor,
			   struct hot_counts *counts)
{
	(void)work;
	(void)executor;
	(void)counts;
	if (!atomic_load_explicit(&state.executor, memory_order_relaxed))
		atomic_store_explicit(&state.executor, (pid_t)syscall(SYS_gettid),
				      memory_order_release);
	for (unsigned i = 0; i < HOT_ROUND; i++)
		uprobe_probed();
}

static const struct hot_work work = { execute_traced, NULL };

/*
 * One, and only while it is needed: a peer that stops all threads of this process would stop it,
 * too, and be charged for it.
 */
static int begin_executor(void)
{
	struct seating seating = state.run->seating;
	int ret;

	if (seating.executors > 1)
		seating.executors = 1;
	state.hot = NULL;
	atomic_store_explicit(&state.executor, 0, memory_order_relaxed);
	ret = hot_start(&state.hot, state.run->topology, &seating);
	if (ret == 0 && hot_executors(state.hot)) {
		hot_aim(state.hot, &work, 1);
		hot_sleep(state.hot);
	}
	return ret;
}

int uprobe_open(struct peer *peer, const struct bench_run *run, char *why)
{
	FILE *file = fopen(TYPE_FILE, "re");
	int ret = file ? 0 : refused(-errno, why), fd;

	state.run = run;
	state.hot = NULL;
	if (file && fscanf(file, "%u", &state.attr.type) != 1)
		ret = refused(-EINVAL, why);
	if (file)
		fclose(file);
	if (ret == 0) {
		ret = dl_iterate_phdr(look_in, NULL);
		if (ret == 0)
			ret = refused(-ENOENT, why);
	}
	if (ret > 0) {
		state.attr.size = sizeof(state.attr);
		state.attr.uprobe_path = (uintptr_t)state.file;
		ret = begin_executor();
	}
	if (ret == 0) {
		fd = switch_on(atomic_load_explicit(&state.executor, memory_order_acquire));
		if (fd < 0)
			ret = refused(-errno, why);
		else
			close(fd);
	}
	hot_stop(state.hot);
	if (ret < 0)
		uprobe_close(peer);
	else
		peer->state = &state;
	return ret;
}

void uprobe_close(struct peer *peer)
{
	free(state.file);
	memset(&state, 0, sizeof(state));
	peer->state = NULL;
}

int uprobe_toggle(struct peer *peer, unsigned pairs, bool hot, struct samples *s, char *why)
{
	int ret = begin_executor();

	(void)peer;
	if (ret == 0 && hot)
		hot_aim(state.hot, &work, 1);
	for (unsigned i = 0; i < pairs && ret == 0; i++) {
		uint64_t begin;
		int fd;

		hot_cool(state.hot);
		begin = ticks_now();
		fd = switch_on(atomic_load_explicit(&state.executor, memory_order_acquire));
		begin = ticks_now() - begin;
		if (fd < 0) {
			ret = refused(-errno, why);
			break;
		}
		samples_add(&s[0], (double)begin);
		hot_cool(state.hot);
		begin = ticks_now();
		close(fd);
		samples_add(&s[1], (double)(ticks_now() - begin));
		if (state.run->stop && *state.run->stop)
			ret = -EINTR;
	}
	hot_stop(state.hot);
	return ret;
}

static double passes(void (*function)(void), uint64_t calls)
{
	uint64_t begin = ticks_now();

	for (uint64_t i = 0; i < calls; i++)
		function();
	return (double)(ticks_now() - begin) / (double)calls;
}

int uprobe_cost(struct peer *peer, uint64_t calls, struct peer_cost *cost, char *why)
{
	int fd;

	(void)peer;
	calls += !calls;
	cost->empty = passes(uprobe_plain, calls);
	cost->off = passes(uprobe_probed, calls);
	fd = switch_on(0);
	if (fd < 0)
		return refused(-errno, why);
	cost->on = passes(uprobe_probed, calls);
	close(fd);
	return 0;
}
