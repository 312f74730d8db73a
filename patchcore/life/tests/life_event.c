/* SPDX-License-Identifier: MIT */
/*
 * What may happen to a process with a change under way: to the patcher's thread, to what the
 * system allows, and by debuggers.
 */
#define _GNU_SOURCE /* memfd_create() */
#include "patchcore/life/tests/life.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "patchcore/tests/flights.h"
#include "patchcore/tests/text_library.h"

#define MOMENT_MS 4   /* that the patcher waits for another thread that may wait for it, ... */
#define SOON_MS	  500 /* ... and for one that does not */

#define OTHER 0x31323334u

/* --- The program and its threads
 * ------------------------------------------------------------------ */

static void replace(void)
{
	execl("/proc/self/exe", "life", "--passed", NULL);
	_exit(1);
}

/* By libc, which unwinds the stack, and by the kernel alone. */
static void end_thread(void)
{
	/* The address sanitizer would not notice such an end of a thread. */
	if (life_turn % 2 && !CHILD_ASAN)
		syscall(SYS_exit, 0);
	pthread_exit(NULL);
}

static void cancel(void)
{
	MUST(pthread_cancel(life_patcher) == 0);
}

static void jump(void)
{
	siglongjmp(life_out, 1);
}

/* --- Code that goes away
 * ----------------------------------------------------------------------------- */

static struct text_library library;
static uint8_t *gone; /* a straddler in it */

/* Its site is known. Every other time its page is open: then the library must be told. */
static void load(void)
{
	uint8_t bytes[CODE_LEN];

	library_copy(&library);
	library_open(&library);
	unlink(library.path);
	gone = (uint8_t *)((uintptr_t)library.fn | (FLIGHT_LINE - 1)) - 1;
	memcpy(bytes, gone, CODE_LEN);
	if ((life_turn % 2 && pc_text_open(gone, CODE_LEN) < 0) ||
	    pc_patch(gone, bytes, CODE_LEN) < 0)
		child_skip("no straddler in the library to be had");
}

static uint8_t *page_of_gone(void)
{
	return (uint8_t *)((uintptr_t)gone & ~(uintptr_t)(CODE_PAGE - 1));
}

static void unload(void)
{
	if (life_turn % 2)
		MUST(pc_forget(page_of_gone(), 2 * CODE_PAGE) == 0);
	MUST(dlclose(library.handle) == 0);
}

/* Code that comes to its place is not taken for what was there. */
static void map_again(void)
{
	uint8_t *page = page_of_gone(), bytes[CODE_LEN];

	if (code_prot(gone) >= 0)
		return;
	MUST(mmap(page, 2 * CODE_PAGE, RWX, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
	     page);
	flight_put(gone, CODE_OLD);
	MUST(mprotect(page, 2 * CODE_PAGE, RX) == 0);
	code_load(bytes, CODE_NEW);
	MUST(pc_patch(gone, bytes, CODE_LEN) == 0 && code_run(gone) == CODE_NEW);
	MUST(code_prot(gone) == RX);
}

/* --- What the system no longer allows
 * ------------------------------------------------------------------- */

#define FORBID(call, argument, mask)                                                               \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(call), 0, 4),                               \
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,                                                 \
			 (uint32_t)offsetof(struct seccomp_data, args) + 8 * (argument)),          \
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, (mask)),                                       \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (mask), 0, 1),                                 \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),                              \
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))

/* For all threads. */
static void forbid(struct sock_filter *code, size_t len)
{
	struct sock_fprog program = { .len = (unsigned short)len, .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
		child_skip("no seccomp filter to be had");
}

static void forbid_membarrier(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		FORBID(SYS_membarrier, 0, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	forbid(code, sizeof(code) / sizeof(*code));
}

/* Memory that is writable and executable, and memory that has a descriptor. */
static void forbid_writable_code(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		FORBID(SYS_mprotect, 2, PROT_WRITE | PROT_EXEC),
		FORBID(SYS_mmap, 2, PROT_WRITE | PROT_EXEC),
		FORBID(SYS_memfd_create, 0, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	forbid(code, sizeof(code) / sizeof(*code));
}

static struct rlimit limit_before;
static int limited;

static void limit(int resource, rlim_t to)
{
	struct rlimit now;

	MUST(getrlimit(resource, &limit_before) == 0);
	now = limit_before;
	now.rlim_cur = to;
	limited = resource;
	MUST(setrlimit(resource, &now) == 0);
}

static void unlimit(void)
{
	if (seen->met)
		MUST(setrlimit((__rlimit_resource_t)limited, &limit_before) == 0);
}

static void limit_files(void)
{
	limit(RLIMIT_NOFILE, 0);
}

static void limit_memory(void)
{
	limit(RLIMIT_AS, CODE_PAGE);
}

/* Else a write beyond it is a signal that ends the process. */
static void ignore_size(void)
{
	signal(SIGXFSZ, SIG_IGN);
}

static void limit_size(void)
{
	limit(RLIMIT_FSIZE, 0);
}

static void limit_signals(void)
{
	limit(RLIMIT_SIGPENDING, 0);
}

/* --- Debuggers, and being stopped
 * ---------------------------------------------------------------------- */

static int orders[2], replies[2];

/* An order: what is to be done, and to which thread. */
struct order {
	char what;
	pid_t tid, main;
};

static bool seize(pid_t tid)
{
	int status;

	return ptrace(PTRACE_SEIZE, tid, 0, 0) == 0 && ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0 &&
	       waitpid(tid, &status, __WALL) == tid;
}

/* All signals go through, until both threads have ended. */
static void look_on(void)
{
	int status;
	pid_t tid;

	while ((tid = waitpid(-1, &status, __WALL)) > 0)
		if (WIFSTOPPED(status))
			ptrace(PTRACE_CONT, tid, 0,
			       status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status));
}

static bool is_stopped(pid_t pid)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	if (file)
		fclose(file);
	return state == 'T';
}

static bool obey(const struct order *order)
{
	bool done = true;

	switch (order->what) {
	case 'a': /* attach and detach */
		done = seize(order->tid) && ptrace(PTRACE_DETACH, order->tid, 0, 0) == 0;
		break;
	case 't': /* trace from now on */
		done = seize(order->tid) && ptrace(PTRACE_CONT, order->tid, 0, 0) == 0 &&
		       seize(order->main) && ptrace(PTRACE_CONT, order->main, 0, 0) == 0;
		break;
	default: /* let it run when it has stopped */
		while (!is_stopped(order->main))
			usleep(100);
		usleep(500);
		kill(order->main, SIGCONT);
		return true;
	}
	MUST(write(replies[1], done ? "y" : "n", 1) == 1);
	if (order->what == 't')
		look_on();
	return done;
}

static void start_helper(void)
{
	struct order order;
	pid_t pid;

	MUST(pipe(orders) == 0 && pipe(replies) == 0);
	pid = fork();
	MUST(pid >= 0);
	if (pid > 0) {
		prctl(PR_SET_PTRACER, pid, 0, 0, 0);
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(orders[1]);
	while (read(orders[0], &order, sizeof(order)) == sizeof(order))
		obey(&order);
	_exit(0);
}

static void give_order(char what)
{
	struct order order = { what, life_patcher_tid, getpid() };

	MUST(write(orders[1], &order, sizeof(order)) == sizeof(order));
}

static void await_reply(void)
{
	char reply;

	while (read(replies[0], &reply, 1) != 1)
		MUST(errno == EINTR);
	if (reply != 'y')
		child_skip("it may not be traced");
}

static void attach_and_detach(void)
{
	give_order('a');
	await_reply();
}

static void attach(void)
{
	give_order('t');
	await_reply();
}

static void be_stopped(void)
{
	give_order('s');
	kill(getpid(), SIGSTOP);
}

/* --- Threads that come by --------------------------------------------------------------------- */

/* What the patcher owns stays as it is while the patcher stands. */
static void run_sites(void)
{
	for (unsigned i = 0; i < life.sites; i++) {
		bool owned = life_patcher_stands && life_is_owned(i);
		uint64_t before = life_bytes(i), after;

		life_run(i);
		after = life_bytes(i);
		MUST(!owned || !life_patcher_stands || after == before);
	}
	life_must_be_whole();
}

static bool was_late; /* so that the other patcher was the first */

/* No other thread writes the site while the patcher stands, which it does not for ever. */
static void patch_and_back(uint8_t *at, uint8_t bytes[CODE_LEN])
{
	uint8_t before[CODE_LEN];
	bool is_so;
	int ret;

	memcpy(before, at, CODE_LEN);
	ret = pc_patch(at, bytes, CODE_LEN);
	MUST(ret == 0 || ret == -EAGAIN);
	if (!life_patcher_stands) {
		was_late |= ret == 0;
		return;
	}
	is_so = memcmp(at, ret == 0 ? bytes : before, CODE_LEN) == 0;
	MUST(is_so || !life_patcher_stands);
	if (ret < 0)
		return;
	ret = pc_patch(at, before, CODE_LEN);
	MUST(ret == 0 || !life_patcher_stands);
	was_late |= !life_patcher_stands;
}

static void make_up(void)
{
	for (unsigned i = 0; was_late && i < life.sites; i++) {
		MUST(life_change(i, false) == 0);
		MUST(seen->ret < 0 || life_change(i, true) == 0);
	}
}

/* To another number where it loads one. What is no single instruction becomes what it was. */
static void patch_sites(void)
{
	uint8_t bytes[CODE_LEN];

	for (unsigned i = 0; i < life.sites; i++) {
		memcpy(bytes, life.site[i].at, CODE_LEN);
		if (bytes[0] != 0x90)
			code_load(bytes, OTHER);
		patch_and_back(life.site[i].at, bytes);
	}
}

const struct event other_events[] = {
	{ .name = "executor",
	  .what = "another thread runs the sites",
	  .beside = run_sites,
	  .wait_ms = MOMENT_MS },
	{ .name = "patcher",
	  .what = "another thread patches the sites, unless it is refused with `-EAGAIN`, and back",
	  .beside = patch_sites,
	  .after = make_up,
	  .wait_ms = MOMENT_MS },
	{ .name = "exec",
	  .what = "by the patcher, in the handler of a signal",
	  .to_it = replace,
	  .replaces = true,
	  .outcome = "gone" },
	{ .name = "exec beside",
	  .what = "by another thread",
	  .beside = replace,
	  .wait_ms = SOON_MS,
	  .replaces = true,
	  .outcome = "gone" },
	{ .name = "thread exit",
	  .what = "the patcher ends in the handler of a signal, by `pthread_exit` or the system "
		  "call",
	  .to_it = end_thread,
	  .ends = true,
	  .outcome = "left" },
	{ .name = "cancellation",
	  .what = "of the patcher by another thread, deferred as it is by default",
	  .beside = cancel,
	  .wait_ms = SOON_MS },
	{ .name = "longjmp",
	  .what = "the handler of a signal leaves the operation by `siglongjmp`; later the thread "
		  "ends",
	  .to_it = jump,
	  .ends = true,
	  .outcome = "left" },
	{ .name = "dlclose",
	  .what = "by another thread, of a library with a site, and every other time with an open "
		  "page, "
		  "after `pc_forget`",
	  .prepare = load,
	  .beside = unload,
	  .after = map_again,
	  .wait_ms = MOMENT_MS },
	{ .name = "seccomp, membarrier",
	  .what = "a filter forbids it for good, to all threads",
	  .beside = forbid_membarrier,
	  .forbids = true,
	  .wait_ms = SOON_MS },
	{ .name = "seccomp, memory",
	  .what = "a filter forbids memory that is writable and executable, and `memfd_create`",
	  .beside = forbid_writable_code,
	  .forbids = true,
	  .wait_ms = SOON_MS },
	{ .name = "rlimit, files",
	  .what = "`RLIMIT_NOFILE` 0, until the operation is over",
	  .beside = limit_files,
	  .after = unlimit,
	  .wait_ms = SOON_MS },
	{ .name = "rlimit, memory",
	  .what = "`RLIMIT_AS` below what is in use, until it is over",
	  .beside = limit_memory,
	  .after = unlimit,
	  .starves = true,
	  .wait_ms = SOON_MS },
	{ .name = "rlimit, file size",
	  .what = "`RLIMIT_FSIZE` 0, until it is over; SIGXFSZ is ignored",
	  .before = ignore_size,
	  .beside = limit_size,
	  .after = unlimit,
	  .wait_ms = SOON_MS },
	{ .name = "rlimit, signals",
	  .what = "`RLIMIT_SIGPENDING` 0, until it is over",
	  .beside = limit_signals,
	  .after = unlimit,
	  .wait_ms = SOON_MS },
	{ .name = "ptrace",
	  .what = "a debugger attaches to the patcher and detaches",
	  .before = start_helper,
	  .beside = attach_and_detach,
	  .wait_ms = SOON_MS },
	{ .name = "ptrace, stays",
	  .what = "a debugger attaches to the patcher and an executor, and passes all signals on",
	  .before = start_helper,
	  .beside = attach,
	  .wait_ms = SOON_MS },
	{ .name = "stop and continue",
	  .what = "SIGSTOP, and SIGCONT half a millisecond later",
	  .before = start_helper,
	  .beside = be_stopped,
	  .wait_ms = SOON_MS },
};

const unsigned other_event_count = sizeof(other_events) / sizeof(*other_events);
