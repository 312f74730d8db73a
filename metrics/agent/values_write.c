/* SPDX-License-Identifier: MIT */
/*
 * A thread takes its slot at its first event, which may be in a signal handler: by system calls
 * alone, and without vector registers. A child of fork() is known by a page that the kernel clears
 * in children; it has none of its parent's files mapped.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "metrics/agent/values.h"
#include "patchcore/syscall/sys.h"

#define PATH_ROOM 128
#define NUMBERS	  1000 /* of files of one process */

static char folder[PATH_ROOM];
static uint32_t values_n;
static _Atomic int32_t *process; /* has the files; the kernel clears it in children */
static _Atomic(struct values_file *) current_file;
static _Atomic uint64_t missed;

static __thread struct {
	struct mdl_value *values;
	int32_t pid;
} own __attribute__((tls_model("initial-exec")));

/* --- Files ------------------------------------------------------------------------------------ */

static char *put_text(char *to, const char *text)
{
	while (*text)
		*to++ = *text++;
	return to;
}

static char *put_number(char *to, uint32_t number)
{
	char digits[10], *at = digits + sizeof(digits);

	do
		*--at = (char)('0' + number % 10);
	while (number /= 10);
	while (at < digits + sizeof(digits))
		*to++ = *at++;
	return to;
}

/* A program that is executed in place of another has its PID. */
static long open_file(int32_t pid)
{
	char path[PATH_ROOM + 32], *end;
	long fd = -EEXIST;

	for (uint32_t i = 0; i < NUMBERS && fd == -EEXIST; i++) {
		end = put_number(put_text(path, folder), (uint32_t)pid);
		*end++ = '.';
		*put_number(end, i) = '\0';
		fd = sys_call(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
			      0600);
	}
	return fd;
}

/* All of it: with a hole in the file, an event would end the program on a full disk. */
static long allocate_file(long fd, size_t size)
{
	const uint64_t mask = UINT64_C(1) << (SIGXFSZ - 1);
	const struct timespec now = { 0 };
	uint64_t before, pending = 0;
	long ret;

	sys_call(SYS_rt_sigprocmask, SIG_BLOCK, &mask, &before, sizeof(mask));
	sys_call(SYS_rt_sigpending, &pending, sizeof(pending));
	ret = sys_call(SYS_fallocate, fd, 0, 0, size);
	/* One that was pending before is the program's. */
	if (!(pending & mask))
		while (sys_call(SYS_rt_sigtimedwait, &mask, 0, &now, sizeof(mask)) == -EINTR)
			;
	sys_call(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, sizeof(before));
	return ret;
}

static struct values_file *make_file(int32_t pid)
{
	size_t size = values_file_size(values_n);
	long fd = open_file(pid), at;
	struct values_file *file;

	if (fd < 0)
		return NULL;
	at = allocate_file(fd, size);
	if (at >= 0)
		at = sys_call(SYS_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	sys_call(SYS_close, fd);
	if (at < 0)
		return NULL;
	sys_call(SYS_madvise, at, size, MADV_DONTFORK);
	file = (struct values_file *)at;
	file->pid = (uint32_t)pid;
	file->values = values_n;
	store_release(&file->magic, VALUES_MAGIC);
	return file;
}

/* The file that has room; threads that make one at the same time use one of them. */
static struct values_file *find_file(int32_t pid)
{
	struct values_file *file = load_acquire(&current_file), *before = file;

	if (file && load_relaxed(&file->taken) < VALUES_SLOTS)
		return file;
	file = make_file(pid);
	if (file)
		file->previous = (uintptr_t)before;
	if (file && !atomic_compare_exchange_strong(&current_file, &before, file)) {
		sys_call(SYS_munmap, file, values_file_size(values_n));
		file = before;
	}
	return file;
}

/* --- Slots ------------------------------------------------------------------------------------ */

static struct mdl_value *take_slot(int32_t pid)
{
	struct values_file *file = find_file(pid);
	struct values_slot *slot;
	uint32_t taken;

	if (!file)
		return NULL;
	taken = atomic_fetch_add(&file->taken, 1);
	if (taken >= VALUES_SLOTS)
		return take_slot(pid);
	slot = values_slot_at(file, values_n, taken);
	sys_call(SYS_prctl, PR_GET_NAME, slot->name);
	store_release(&slot->tid, (uint32_t)sys_call(SYS_gettid));
	return slot->value;
}

struct mdl_value *values_own(void)
{
	int32_t pid = load_relaxed(process);

	if (!pid || own.pid != pid) {
		if (!pid)
			store_relaxed(&current_file, NULL);
		pid = (int32_t)sys_call(SYS_getpid);
		store_relaxed(process, pid);
		own.values = take_slot(pid);
		own.pid = pid;
	}
	if (!own.values)
		atomic_fetch_add_explicit(&missed, 1, memory_order_relaxed);
	return own.values;
}

static bool runs_timer(const struct values_slot *slot)
{
	bool runs = false;

	for (uint32_t i = 0; i < values_n; i++)
		runs |= load_relaxed(&slot->value[i].depth) > 0;
	return runs;
}

static void end_slots(struct values_file *file)
{
	for (uint32_t i = 0; i < load_relaxed(&file->taken) && i < VALUES_SLOTS; i++) {
		struct values_slot *slot = values_slot_at(file, values_n, i);

		store_relaxed(&slot->was_alive,
			      runs_timer(slot) && !sys_call(SYS_tgkill, file->pid,
							    load_relaxed(&slot->tid), 0));
	}
}

void values_end(bool ends)
{
	/* In a child without values these are its parent's files. */
	struct values_file *file = load_relaxed(process) ? load_relaxed(&current_file) : NULL;
	int64_t wall = ends ? clock_ns() : 0;
	int64_t cpu = ends ? read_clock(CLOCK_PROCESS_CPUTIME_ID) : 0;

	for (; file; file = (struct values_file *)file->previous) {
		end_slots(file);
		store_relaxed(&file->ended_cpu, cpu);
		store_relaxed(&file->ended, wall);
	}
}

uint64_t values_missed(void)
{
	return load_relaxed(&missed);
}

int values_start(const char *where, uint32_t values)
{
	long page;
	size_t len = 0;

	while (where[len])
		len++;
	if (len + 2 > sizeof(folder))
		return -ENAMETOOLONG;
	page = sys_call(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);
	if (page < 0)
		return (int)page;
	if (sys_call(SYS_madvise, page, 4096, MADV_WIPEONFORK) < 0)
		return -ENOTSUP;
	*put_text(put_text(folder, where), "/") = '\0';
	values_n = values;
	process = (_Atomic int32_t *)page;
	return 0;
}
