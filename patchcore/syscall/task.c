/* SPDX-License-Identifier: MIT */
#include "patchcore/syscall/task.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <stddef.h>
#include <sys/utsname.h>

#include "patchcore/syscall/kernel_signal.h"
#include "patchcore/syscall/sys.h"

#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x4000u /* Linux 6.8 */
#endif

#define OWN_TASKS "/proc/self/task/"
#define TEXT_MAX  4096u
#define PIECE	  96u /* bytes; more than a line of ids in a status is long */

/* linux/sched.h, which is the kernel's own, and since when. */
#define IO_WORKER	    0x10u
#define IO_WORKER_RELEASE   5012u
#define USER_WORKER	    0x4000u
#define USER_WORKER_RELEASE 6004u

/* libc keeps the first two or three to itself. */
#define REAL_TIME  (~UINT64_C(0) << (TASK_REAL_TIME_MIN - 1))
#define REAL_TIMES (KERNEL_SIGNALS + 1 - TASK_REAL_TIME_MIN)

/* --- Text ----------------------------------------------------------------------------------- */

/* Keeps the compiler from turning a loop into a call of libc's strlen() or the like. */
NOPATCH_INLINE char byte_at(const char *text)
{
	return *(const volatile char *)text;
}

/* Behind the first place where text has what, or NULL. */
NOPATCH static const char *proc_find(const char *text, const char *what)
{
	for (; *text; text++) {
		size_t n = 0;

		while (what[n] && byte_at(text + n) == what[n])
			n++;
		if (!what[n])
			return text + n;
	}
	return NULL;
}

NOPATCH static const char *proc_last(const char *text, char c)
{
	const char *last = NULL;

	for (; byte_at(text); text++)
		if (*text == c)
			last = text;
	return last;
}

/* n fields further on; a blank ends each. NULL: there are not as many. */
NOPATCH static const char *proc_field(const char *text, unsigned n)
{
	while (n > 0 && byte_at(text))
		n -= *text++ == ' ';
	return n ? NULL : text;
}

NOPATCH static unsigned digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (unsigned)(c - 'a') + 10;
	return c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10 : 16;
}

/* The number that text begins with, blanks and 0x in front of it passed over. */
NOPATCH static uint64_t proc_number(const char *text, unsigned base)
{
	uint64_t number = 0;

	while (byte_at(text) == ' ' || *text == '\t')
		text++;
	if (text[0] == '0' && text[1] == 'x')
		text += 2;
	while (digit(*text) < base)
		number = number * base + digit(*text++);
	return number;
}

/* Append; returns the new end, where a NUL stands. */
NOPATCH static char *proc_put(char *end, const char *text)
{
	while ((*end = byte_at(text++)))
		end++;
	return end;
}

NOPATCH static char *proc_put_number(char *end, unsigned number)
{
	char digits[11];
	unsigned at = sizeof(digits) - 1;

	digits[at] = '\0';
	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	return proc_put(end, digits + at);
}

/* --- Files ---------------------------------------------------------------------------------- */

NOPATCH static long open_path(const char *path)
{
	return sys_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
}

NOPATCH static long open_of(const char *folder, pid_t tid, const char *name)
{
	char path[64];

	proc_put(proc_put_number(proc_put(path, folder), (unsigned)tid), name);
	return open_path(path);
}

/* From a place in the file on. The length, never 0, or a negative errno. Ends with a NUL. */
NOPATCH static long read_some(long fd, char *text, size_t size, size_t from)
{
	long len = sys_call(SYS_pread64, fd, text, size - 1, from);

	text[len > 0 ? len : 0] = '\0';
	return len ? len : -ESRCH;
}

NOPATCH static long read_file(const char *folder, pid_t tid, const char *name, char *text,
			      size_t size)
{
	long fd = open_of(folder, tid, name), len;

	text[0] = '\0';
	if (fd < 0)
		return fd;
	len = read_some(fd, text, size, 0);
	sys_call(SYS_close, fd);
	return len;
}

/* Behind the name of a line of a status, with at least half of size from there on; or NULL. */
NOPATCH static const char *find_line(long fd, const char *name, char *text, size_t size)
{
	const size_t half = (size - 1) / 2;
	const char *at;
	size_t from = 0;
	long len;

	/* Before a line there may be any number of groups. One in the second half is read again. */
	do {
		len = read_some(fd, text, size, from);
		at = proc_find(text, name);
		from += half;
	} while (len == (long)size - 1 && !(at && at <= text + half + 32));
	return at;
}

/* The last number of such a line. *count: of numbers there, may be 0. */
NOPATCH static uint64_t last_number(long fd, const char *name, char *text, size_t size,
				    unsigned *count)
{
	const char *at = find_line(fd, name, text, size);
	uint64_t last = 0;

	*count = 0;
	for (; at && *at && *at != '\n'; at++)
		if (digit(*at) < 10 && digit(at[-1]) >= 10) {
			last = proc_number(at, 10);
			++*count;
		}
	return last;
}

/* --- The list ------------------------------------------------------------------------------- */

/* Closes fd. */
NOPATCH static int list_tasks(long fd, char *buffer, size_t size, task_met_fn *met, void *arg)
{
	struct entry {
		uint64_t inode;
		int64_t offset;
		uint16_t length;
		uint8_t type;
		char name[];
	};
	bool more = true;
	long len;

	if (fd < 0)
		return (int)fd;
	do {
		len = sys_call(SYS_getdents64, fd, buffer, size);
		for (long at = 0; more && at < len;) {
			const struct entry *entry = (const void *)(buffer + at);
			pid_t tid = (pid_t)proc_number(entry->name, 10);

			more = tid <= 0 || met(tid, arg);
			at += entry->length;
		}
	} while (more && len > 0);
	sys_call(SYS_close, fd);
	return len < 0 ? (int)len : 0;
}

NOPATCH static long open_tasks(pid_t process)
{
	return process ? open_of("/proc/", process, "/task") : open_path(OWN_TASKS);
}

NOPATCH int task_list(pid_t process, task_met_fn *met, void *arg)
{
	char buffer[TEXT_MAX] __attribute__((aligned(8)));

	return list_tasks(open_tasks(process), buffer, sizeof(buffer), met, arg);
}

/* --- Namespaces ----------------------------------------------------------------------------- */

/* Has the calling task one id only, from the namespace of /proc on? *parent: its parent's there. */
NOPATCH static bool ids_are_ours(char *text, size_t size, pid_t *parent)
{
	long fd = open_path("/proc/thread-self/status");
	unsigned ids, parents;

	*parent = 0;
	if (fd < 0)
		return false;
	/* A kernel without namespaces has no such line. */
	last_number(fd, "\nNSpid:", text, size, &ids);
	if (ids > 1)
		*parent = (pid_t)last_number(fd, "\nPPid:", text, size, &parents);
	sys_call(SYS_close, fd);
	return ids <= 1;
}

NOPATCH uint64_t task_mount(void)
{
	struct statx proc;

	if (sys_call(SYS_statx, AT_FDCWD, "/proc", 0, STATX_MNT_ID_UNIQUE, &proc) < 0)
		return 0;
	return proc.stx_mask & STATX_MNT_ID_UNIQUE ? proc.stx_mnt_id : 0;
}

NOPATCH bool task_ids_are_ours(void)
{
	char text[TEXT_MAX / 2]; /* the kernel writes all of it anew for each piece */
	pid_t parent;

	return ids_are_ours(text, sizeof(text), &parent);
}

/* --- stat ----------------------------------------------------------------------------------- */

/*
 * As a kernel of that release writes it: 6012 is Linux 6.12. The flags have other meanings in old
 * ones.
 */
NOPATCH static int task_stat_parse(const char *text, unsigned release, struct task_stat *stat)
{
	/* Field 2, as proc(5) counts. It may hold anything, brackets and blanks too. */
	const char *name_end = proc_last(text, ')');
	const char *size = name_end ? proc_field(name_end, 21) : NULL;
	uint64_t flags;

	if (!size)
		return -ESRCH;
	flags = proc_number(proc_field(name_end, 7), 10);
	stat->is_kernel_thread = (release >= IO_WORKER_RELEASE && (flags & IO_WORKER)) ||
				 (release >= USER_WORKER_RELEASE && (flags & USER_WORKER));
	stat->started = proc_number(proc_field(name_end, 20), 10);
	stat->has_memory = proc_number(size, 10) != 0;
	return 0;
}

NOPATCH static unsigned kernel_release(void)
{
	static _Atomic(unsigned) known; /* relaxed: it is the same whenever it is looked up */
	unsigned release = load_relaxed(&known);
	struct utsname name;
	const char *minor;

	if (release || sys_call(SYS_uname, &name) < 0)
		return release;
	minor = proc_find(name.release, ".");
	release = (unsigned)proc_number(name.release, 10) * 1000;
	release += minor ? (unsigned)proc_number(minor, 10) : 0;
	store_relaxed(&known, release);
	return release;
}

NOPATCH int task_stat(pid_t tid, struct task_stat *stat)
{
	char text[TEXT_MAX];
	long len = read_file(OWN_TASKS, tid, "/stat", text, sizeof(text));

	return len < 0 ? (int)len : task_stat_parse(text, kernel_release(), stat);
}

/* By the id that /proc has for it. */
NOPATCH static char state_of(pid_t id)
{
	char text[256];
	const char *name_end;

	if (read_file("/proc/", id, "/stat", text, sizeof(text)) < 0)
		return 0;
	/* The name in brackets may hold anything; the state follows the last one. */
	name_end = proc_last(text, ')');
	return name_end && name_end[1] ? name_end[2] : 0;
}

struct wanted {
	pid_t tid;
	char state;
};

NOPATCH static bool meet_wanted(pid_t id, void *arg)
{
	long fd = open_of("/proc/", id, "/status");
	struct wanted *wanted = arg;
	char text[2 * PIECE + 1];
	unsigned ids;

	if (fd < 0)
		return true;
	/* The last number is the task's id in its own namespace. */
	if ((pid_t)last_number(fd, "\nNSpid:", text, sizeof(text), &ids) == wanted->tid)
		wanted->state = state_of(id);
	sys_call(SYS_close, fd);
	return !wanted->state;
}

NOPATCH char task_state(pid_t tid)
{
	char buffer[2 * PIECE + 1] __attribute__((aligned(8)));
	struct wanted wanted = { .tid = tid };
	pid_t parent;

	if (ids_are_ours(buffer, sizeof(buffer), &parent))
		return state_of(tid);
	/* Elsewhere that id may be a stranger's. Here, or where a child of vfork() comes from. */
	list_tasks(open_tasks(0), buffer, sizeof(buffer), meet_wanted, &wanted);
	if (!wanted.state && parent)
		list_tasks(open_tasks(parent), buffer, sizeof(buffer), meet_wanted, &wanted);
	return wanted.state;
}

/* A first thread stays until all others have ended, but it has no memory any more. */
NOPATCH bool task_has_ended(pid_t tid)
{
	char byte = 0;
	struct iovec there = { &byte, 1 };

	return sys_call(SYS_tgkill, sys_call(SYS_getpid), tid, 0) == -ESRCH ||
	       sys_call(SYS_process_vm_readv, tid, &there, 1, &there, 1, 0) == -ESRCH;
}

NOPATCH uint64_t task_clock(void)
{
	struct timespec now;

	sys_call(SYS_clock_gettime, CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 100 + (uint64_t)now.tv_nsec / 10000000;
}

/* --- status and syscall --------------------------------------------------------------------- */

NOPATCH int task_signals(pid_t tid, struct task_signals *signals)
{
	const char *own, *shared, *blocked, *switches, *more;
	char text[TEXT_MAX];
	long fd = open_of(OWN_TASKS, tid, "/status");

	*signals = (struct task_signals){ .pending = 0 };
	if (fd < 0)
		return (int)fd;
	own = find_line(fd, "\nSigPnd:", text, sizeof(text));
	shared = own ? proc_find(own, "\nShdPnd:") : NULL;
	blocked = shared ? proc_find(shared, "\nSigBlk:") : NULL;
	if (blocked) {
		signals->pending = proc_number(own, 16) | proc_number(shared, 16);
		signals->blocked = proc_number(blocked, 16);
	}
	switches = blocked ? proc_find(blocked, "\nvoluntary_ctxt_switches:") : NULL;
	/* Lists of CPUs come before. */
	if (blocked && !switches)
		switches = find_line(fd, "\nvoluntary_ctxt_switches:", text, sizeof(text));
	more = switches ? proc_find(switches, "\nnonvoluntary_ctxt_switches:") : NULL;
	signals->sleeps = more ? proc_number(switches, 10) : 0;
	signals->switches = signals->sleeps + (more ? proc_number(more, 10) : 0);
	sys_call(SYS_close, fd);
	/* One that has ended lacks these lines. */
	return more ? 0 : -ESRCH;
}

/* "running", or "-1 SP PC", or the number of the system call, its arguments, SP and PC. */
NOPATCH int task_call(pid_t tid, struct task_call *call)
{
	char text[256], *pc, *sp;
	long len = read_file(OWN_TASKS, tid, "/syscall", text, sizeof(text));
	uint64_t number;

	*call = (struct task_call){ .sleeps = false };
	if (len < 0)
		return (int)len;
	pc = (char *)proc_last(text, ' ');
	if (!pc)
		return 0;
	call->pc = proc_number(pc, 16);
	*pc = '\0';
	sp = (char *)proc_last(text, ' ');
	if (!sp)
		return 0;
	call->sp = proc_number(sp, 16);
	call->sleeps = true;
	number = digit(text[0]) < 10 ? proc_number(text, 10) : 0;
	call->waits = number == SYS_rt_sigtimedwait;
	/* Or it sleeps for a page when it has its mask back, and not yet its registers. */
	call->masks =
		number == SYS_rt_sigsuspend || number >= SYS_pselect6 || number == SYS_rt_sigreturn;
	if (!call->waits)
		return 0;
	/* The set is in memory of this process, where the sleeping thread has put it. */
	call->masks = sys_transfer(SYS_process_vm_readv, proc_number(proc_field(text, 1), 16),
				   &call->waited, sizeof(uint64_t)) != sizeof(uint64_t);
	return 0;
}

/* A set of more than half of them was made by leaving some out: none in it is meant. */
NOPATCH static uint64_t pick_meant_signals(uint64_t set)
{
	unsigned count = 0;

	set &= REAL_TIME;
	for (uint64_t rest = set; rest; rest &= rest - 1)
		count++;
	return count > REAL_TIMES / 2 ? 0 : set;
}

NOPATCH uint64_t task_uses(uint64_t blocked, uint64_t waited)
{
	return pick_meant_signals(blocked) | pick_meant_signals(waited);
}
