/* SPDX-License-Identifier: MIT */
/*
 * The probe function that writes events, the rings that it writes them to, and the dialogue with
 * "fastinst trace" about which arguments to record.
 *
 * A thread makes its ring at its first event, by system calls alone: that may be in a signal
 * handler. A child of fork() must not write to its parent's rings: it is known by a page that the
 * kernel clears in children, and its threads make their own rings.
 */
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "agent/counts/agent.h"
#include "agent/counts/base.h"
#include "agent/counts/control.h"
#include "agent/counts/ring.h"
#include "base/text.h"
#include "probes/include/fastinst.h"
#include "probes/include/fastinst/args.h"
#include "probes/include/fastinst/compare.h"

static_assert(RING_EVENT_MAX <= 8 * UINT8_MAX, "its length is told in one byte");

#define PATIENCE 60 /* seconds: debug information may be large */

static _Atomic(const char *) folder; /* of this session; never freed. NULL: none */
static bool no_reads;		     /* seccomp may forbid process_vm_readv(2) */
static _Atomic pid_t *ring_process;  /* has the rings; the kernel clears it in children */
static pthread_key_t key;

static __thread struct {
	struct event_ring *ring;
	const char *folder;
	pid_t pid;
} own __attribute__((tls_model("initial-exec")));

/* --- Rings ------------------------------------------------------------------------------------ */

/* The thread ends, or goes on in another session. */
static void leave_ring(void *ring)
{
	/* In a child that has had no event yet, this is the parent's ring, which is not mapped. */
	if (own.ring != ring || own.pid != atomic_load_explicit(ring_process, memory_order_relaxed))
		return;
	own.folder = NULL;
	atomic_store_explicit(&((struct event_ring *)ring)->ended, 1, memory_order_release);
	munmap(ring, sizeof(struct event_ring));
}

static struct event_ring *make_ring(const char *where, pid_t pid)
{
	pid_t tid = (pid_t)syscall(SYS_gettid);
	struct event_ring *ring = MAP_FAILED;
	struct write_signals signals;
	char path[PATH_MAX];
	int fd;

	/* A thread's number comes back as programs are executed in its place. */
	snprintf(path, sizeof(path), "%s/%d.%d.XXXXXX", where, (int)pid, (int)tid);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return NULL;
	/* All of it: with a hole in the file, an event would end the program on a full disk. */
	block_write_signals(&signals);
	if (!posix_fallocate(fd, 0, sizeof(*ring)))
		ring = mmap(NULL, sizeof(*ring), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	restore_write_signals(&signals);
	close(fd);
	if (ring == MAP_FAILED)
		return NULL;
	madvise(ring, sizeof(*ring), MADV_DONTFORK);
	ring->pid = pid;
	ring->tid = tid;
	atomic_store_explicit(&ring->magic, RING_MAGIC, memory_order_release);
	return ring;
}

/* NULL: no ring can be made, which is not tried again in this session. */
static struct event_ring *find_ring(void)
{
	const char *where = atomic_load_explicit(&folder, memory_order_acquire);
	pid_t pid = atomic_load_explicit(ring_process, memory_order_relaxed);

	if (!where)
		return NULL;
	if (pid && own.pid == pid && own.folder == where)
		return own.ring;
	/* A parent's ring was not inherited. */
	if (pid && own.pid == pid && own.folder && own.ring)
		leave_ring(own.ring);
	pid = getpid();
	atomic_store_explicit(ring_process, pid, memory_order_relaxed);
	own.pid = pid;
	own.folder = where;
	own.ring = make_ring(where, pid);
	pthread_setspecific(key, own.ring);
	return own.ring;
}

/* --- Events ----------------------------------------------------------------------------------- */

/* By a system call, so that memory that is not mapped is no fault. Returns how many bytes. */
static size_t read_memory(void *to, uint64_t from, size_t len)
{
	uint64_t page = 4096 - from % 4096;
	struct iovec local = { .iov_base = to, .iov_len = len };
	struct iovec remote[2] = {
		{ .iov_base = (void *)from, .iov_len = page < len ? page : len },
		{ .iov_base = (void *)(from + page), .iov_len = page < len ? len - page : 0 },
	};
	ssize_t got = -1;

	if (from && !no_reads)
		got = process_vm_readv(gettid(), &local, 1, remote, 2, 0);
	return got < 0 ? 0 : (size_t)got;
}

/* Writes a byte with the length, then the string. Returns how many bytes. */
static size_t take_string(uint8_t *to, uint64_t from)
{
	size_t len = read_memory(to + 1, from, RING_STRING);

	*to = len ? (uint8_t)strnlen((const char *)to + 1, len) : RING_UNREADABLE;
	return 1 + (len ? *to : 0);
}

/*
 * Arguments on the stack, above the return address. Up to the end of its page they are mapped, and
 * no system call is needed. To AddressSanitizer this is no array.
 */
__attribute__((no_sanitize("address", "thread"))) static size_t take_stack(uint64_t *to,
									   uint64_t rsp, size_t n)
{
	const volatile uint64_t *from = (const volatile uint64_t *)(rsp + 8);
	size_t here = (4096 - (rsp + 8) % 4096) % 4096 / 8;

	if (here > n)
		here = n;
	for (size_t i = 0; i < here; i++)
		to[i] = from[i];
	if (here == n)
		return n;
	return here + read_memory(to + here, (uint64_t)(from + here), 8 * (n - here)) / 8;
}

/* Writes how many words could be read, then these. Returns how many words were written. */
static size_t take_memory(uint64_t *to, const struct fi_regs *regs, uintptr_t how)
{
	size_t n = ring_memory(how);

	if (how & RING_HOW_RESULT)
		*to = read_memory(to + 1, regs->rax, 8 * n) / 8;
	else
		*to = take_stack(to + 1, regs->rsp, n);
	return 1 + *to;
}

/* What a probe function gets, and how RING_HOW_* says to read it. */
struct probe_values {
	uint32_t id;
	const struct fi_regs *regs;
	const double *vector;
	uintptr_t how;
};

/* Returns the number of values, as struct ring_event has it. */
static uint8_t take_values(const struct probe_values *from, uint64_t *value)
{
	const struct fi_regs *regs = from->regs;

	const uint64_t args[] = { regs->rdi, regs->rsi, regs->rdx, regs->rcx, regs->r8, regs->r9 };
	uintptr_t how = from->how;
	unsigned n = how & RING_HOW_VALUES, vectors = how >> RING_HOW_VECTORS & 0xf;

	for (unsigned i = 0; i < n; i++) {
		int64_t arg = 0;

		if (how & RING_HOW_MARKER)
			fi_marker_arg(from->id, regs, i, &arg);
		else if (how & RING_HOW_COMPARE)
			fi_compare_arg(from->id, regs, i, &arg);
		else if (how & RING_HOW_RESULT)
			arg = (int64_t)(i ? regs->rdx : regs->rax);
		else
			arg = (int64_t)args[i];
		value[i] = (uint64_t)arg;
	}
	memcpy(value + n, from->vector, 8 * vectors);
	return (uint8_t)(n | vectors << 4);
}

static void write_event(struct event_ring *ring, const struct probe_values *from)
{
	uint8_t bytes[RING_EVENT_MAX];
	struct ring_event *event = (struct ring_event *)bytes;
	uint64_t *value = (uint64_t *)(event + 1), *memory;
	unsigned strings = ring_strings(from->how), values;
	struct timespec now;
	size_t len, words = 0;

	clock_gettime(CLOCK_MONOTONIC, &now);
	event->time = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	event->id = from->id;
	event->table = (uint16_t)(from->how >> RING_HOW_TABLE);
	event->values = take_values(from, value);
	values = event->values & 0xf;
	memory = value + values + (event->values >> 4);
	if (ring_memory(from->how))
		words = take_memory(memory, from->regs, from->how);
	len = (size_t)((uint8_t *)(memory + words) - bytes);
	for (unsigned i = 0; i < RING_FIRST && i < values; i++)
		if (strings >> i & 1)
			len += take_string(bytes + len, value[i]);
	for (unsigned i = 0; i < RING_POINTED && i + 1 < words; i++)
		if (strings >> (RING_FIRST + i) & 1)
			len += take_string(bytes + len, memory[1 + i]);
	len = (len + 7) / 8 * 8;
	event->words = (uint8_t)(len / 8);
	ring_put(ring, bytes, len);
}

/* Runs in signal handlers, too, and keeps errno, which is the program's. */
static void on_event(uint32_t id, void *site, const struct fi_regs *regs, void *data, double xmm0,
		     double xmm1, double xmm2, double xmm3, double xmm4, double xmm5, double xmm6,
		     double xmm7)
{
	const double vector[] = { xmm0, xmm1, xmm2, xmm3, xmm4, xmm5, xmm6, xmm7 };
	const struct probe_values from = { id, regs, vector, (uintptr_t)data };
	int saved = errno;
	struct event_ring *ring = find_ring();

	(void)site;
	if (ring && !atomic_load_explicit(&ring->closed, memory_order_relaxed))
		write_event(ring, &from);
	errno = saved;
}

/* --- Asking the reader what to take ----------------------------------------------------------- */

static const char *probe_word(const struct fi_probe *probe)
{
	uint8_t code[2] = { 0 };
	const void *behind = (const uint8_t *)probe->address + 5;

	if (fi_compare_float(probe->id) > 0)
		return fi_compare_float(probe->id) == 4 ? "compare-float" : "compare-double";
	if (probe->kind != FI_EXIT)
		return kind_name(probe->kind);
	/* The object may be unloaded meanwhile: memory is read directly only where a filter forbids
	 * the system call. */
	if (!read_memory(code, (uintptr_t)behind, sizeof(code)) && no_reads)
		memcpy(code, behind, sizeof(code));
	if (code[0] == 0xf2 || code[0] == 0xf3)
		code[0] = code[1];
	/* Else a tail call's jump stands behind the exit, and there is no result yet. */
	return code[0] == 0xc3 || code[0] == 0xc2 ? kind_name(FI_EXIT) : "exit-jump";
}

static void write_probes(FILE *to, const uint32_t *ids, size_t n)
{
	const char *object = NULL;
	uintptr_t base = 0;
	struct fi_probe probe;

	for (size_t i = 0; i < n; i++) {
		struct link_map *map = NULL;
		Dl_info info;

		if (fi_get(ids[i], &probe) < 0)
			continue;
		if (probe.object != object &&
		    dladdr1(probe.address, &info, (void **)&map, RTLD_DL_LINKMAP) && map)
			base = map->l_addr;
		object = probe.object;
		fprintf(to, "%u\t%s\t%lx\t%s\t", probe.id, probe_word(&probe),
			(unsigned long)((uintptr_t)probe.address - base), probe.provider);
		text_put(to, probe.function);
		fputc('\t', to);
		text_put(to, probe.object);
		fputc('\n', to);
	}
}

static void set_how(uint32_t id, unsigned table, uintptr_t how)
{
	int args = fi_marker_args(id), operands = fi_compare_args(id);

	if (args > 0)
		how = RING_HOW_MARKER | (unsigned)(args < RING_VALUES ? args : RING_VALUES);
	if (operands > 0)
		how = RING_HOW_COMPARE | (unsigned)operands;
	fi_set_data(id, (void *)(how | (uintptr_t)table << RING_HOW_TABLE));
}

/* The answer is "table N", and lines ID HOW. */
static int ask_reader(FILE *stream, const uint32_t *ids, size_t n)
{
	struct write_signals signals;
	unsigned table, id;
	unsigned long how;
	int ret = -EIO;

	/* Writes to a command that was killed send SIGPIPE. */
	block_write_signals(&signals);
	write_probes(stream, ids, n);
	if (!fflush(stream) && !shutdown(fileno(stream), SHUT_WR))
		ret = fscanf(stream, "table %u\n", &table) == 1 ? 0 : -EPROTO;
	for (size_t i = 0; i < n && !ret; i++)
		set_how(ids[i], table, 0);
	while (!ret && fscanf(stream, "%u %lx\n", &id, &how) == 2)
		set_how(id, table, how & ~(UINT64_C(0xffff) << RING_HOW_TABLE));
	if (!ret && ferror(stream))
		ret = -EIO;
	fclose(stream);
	restore_write_signals(&signals);
	return ret;
}

int trace_on(const uint32_t *ids, size_t n)
{
	char path[SOCKET_PATH];
	FILE *stream;
	int ret;

	snprintf(path, sizeof(path), "%s/socket",
		 atomic_load_explicit(&folder, memory_order_relaxed));
	/* NULL: no command reads. */
	stream = n ? socket_connect(path, PATIENCE) : NULL;
	ret = stream ? ask_reader(stream, ids, n) : 0;

	return ret || !stream ? ret : fi_activate_batch(ids, n, fi_vectors(on_event));
}

/* --- Start ------------------------------------------------------------------------------------ */

int trace_start(const char *to)
{
	char *copy = NULL;

	if (to && !ring_process) {
		void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				  -1, 0);

		if (page == MAP_FAILED)
			return -errno;
		if (madvise(page, 4096, MADV_WIPEONFORK) < 0 ||
		    pthread_key_create(&key, leave_ring)) {
			munmap(page, 4096);
			return -ENOTSUP;
		}
		ring_process = page;
	}
	if (to)
		copy = strdup(to);
	no_reads = prctl(PR_GET_SECCOMP) != 0;
	atomic_store_explicit(&folder, copy, memory_order_release);
	return to && !copy ? -ENOMEM : 0;
}

void trace_unload(void)
{
	if (!ring_process)
		return;
	pthread_key_delete(key);
	munmap((void *)ring_process, 4096);
}

bool trace_wanted(void)
{
	return atomic_load_explicit(&folder, memory_order_relaxed) != NULL;
}
