/* SPDX-License-Identifier: MIT */
#include "probes/inject/target.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>
#include <sys/uio.h>
#include <unistd.h>

#include "probes/elf/elf.h"

#define STACK_MAX (UINT64_C(4) << 20) /* that is looked through for signal handlers */
#define USER_CODE 0x33		      /* the selector of 64-bit code */

__attribute__((format(printf, 3, 4))) static int refuse(struct target *target, int error,
							const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(target->why, sizeof(target->why), format, args);
	va_end(args);
	return error;
}

static FILE *open_proc(pid_t pid, const char *name)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return fopen(path, "re");
}

/* --- Its status ------------------------------------------------------------------------------- */

struct status {
	char state;
	long tracer;
	uid_t uid[4];
	unsigned filters;
	bool seccomp;
	bool namespaced;
};

static bool read_status(pid_t pid, struct status *status)
{
	FILE *file = open_proc(pid, "status");
	char line[512];

	*status = (struct status){ 0 };
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		unsigned mode = 0;
		long outside, inside;

		sscanf(line, "State: %c", &status->state);
		sscanf(line, "TracerPid: %ld", &status->tracer);
		sscanf(line, "Uid: %u %u %u %u", &status->uid[0], &status->uid[1], &status->uid[2],
		       &status->uid[3]);
		sscanf(line, "Seccomp_filters: %u", &status->filters);
		if (sscanf(line, "Seccomp: %u", &mode) == 1)
			status->seccomp = mode != 0;
		if (sscanf(line, "NSpid: %ld %ld", &outside, &inside) == 2)
			status->namespaced = true;
	}
	fclose(file);
	return true;
}

static int check_status(struct target *target)
{
	struct status status, mine;

	if (!read_status(target->pid, &status) || !read_status(getpid(), &mine))
		return refuse(target, -ESRCH, "there is no such process");
	if (status.state == 'Z' || status.state == 'X')
		return refuse(target, -ESRCH, "it has ended");
	if (status.tracer)
		return refuse(target, -EBUSY, "process %ld traces it already", status.tracer);
	if (status.state == 'T')
		return refuse(target, -EBUSY, "it is stopped; continue it first (kill -CONT %d)",
			      (int)target->pid);
	for (int i = 1; i < 4; i++)
		if (status.uid[i] != status.uid[0])
			return refuse(target, -EPERM,
				      "it is a set-user-ID program, or one that gave up rights; a "
				      "library is not put into such a process");
	if (status.uid[0] != geteuid())
		return refuse(target, -EPERM, "it is a process of user %u; be that user",
			      status.uid[0]);
	/* A filter that this program is under itself, as in a container, lets all this pass. */
	if (status.seccomp && (!mine.seccomp || status.filters > mine.filters))
		return refuse(target, -EPERM,
			      "it runs under seccomp, which may end it for a system call that the "
			      "agent makes; start it by \"fastinst run\", or without seccomp");
	if (status.namespaced && !mine.namespaced)
		return refuse(target, -EXDEV,
			      "it is in another PID namespace (a container); run fastinst there");
	return 0;
}

int target_denied(struct target *target)
{
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = 0;

	if (file && fscanf(file, "%d", &scope) != 1)
		scope = 0;
	if (file)
		fclose(file);
	if (scope == 1)
		return refuse(target, -EPERM,
			      "kernel.yama.ptrace_scope is 1: a process may trace its children "
			      "only; start the program by \"fastinst run\", or set it to 0");
	if (scope > 1)
		return refuse(target, -EPERM,
			      "kernel.yama.ptrace_scope is %d: tracing is not allowed; start the "
			      "program by \"fastinst run\"",
			      scope);
	return refuse(target, -EPERM,
		      "the kernel does not let it be traced: it has more rights than its user, "
		      "or has made itself undumpable, or a sandbox forbids ptrace(2)");
}

/* Whether the file is the same one there. */
static int check_library(struct target *target, const char *library)
{
	char path[PATH_MAX];
	struct stat here, there;

	if (stat(library, &here) < 0)
		return refuse(target, -errno, "%s: %s", library, strerror(errno));
	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)target->pid, library);
	if (stat(path, &there) < 0 && errno == EACCES)
		return target_denied(target);
	if (stat(path, &there) < 0 || here.st_dev != there.st_dev || here.st_ino != there.st_ino)
		return refuse(target, -EXDEV,
			      "%s is not in its mount namespace (a container, a chroot); install "
			      "it there and run fastinst there",
			      library);
	return 0;
}

/* --- Its memory ------------------------------------------------------------------------------- */

bool target_read(const struct target *target, uint64_t at, void *to, size_t len)
{
	struct iovec local = { .iov_base = to, .iov_len = len };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)at, .iov_len = len };

	return process_vm_readv(target->pid, &local, 1, &remote, 1, 0) == (ssize_t)len;
}

bool target_write(const struct target *target, uint64_t at, const void *from, size_t len)
{
	struct iovec local = { .iov_base = (void *)(uintptr_t)from, .iov_len = len };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)at, .iov_len = len };

	return process_vm_writev(target->pid, &local, 1, &remote, 1, 0) == (ssize_t)len;
}

/* --- Its objects ------------------------------------------------------------------------------ */

/* A file that is mapped, here and there. */
struct file {
	const uint8_t *image;
	size_t size;
	struct elf elf;
};

/* As the process sees it; false: it was replaced meanwhile, or is no ELF file. */
static bool open_file(const struct target *target, const char *path, unsigned long inode,
		      struct file *file)
{
	char there[PATH_MAX];
	struct stat stat;
	void *map = MAP_FAILED;
	int fd;

	snprintf(there, sizeof(there), "/proc/%d/root%s", (int)target->pid, path);
	fd = open(there, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (!fstat(fd, &stat) && S_ISREG(stat.st_mode) && stat.st_size > 0 &&
	    stat.st_ino == inode) {
		file->size = (size_t)stat.st_size;
		map = mmap(NULL, file->size, PROT_READ, MAP_PRIVATE, fd, 0);
	}
	close(fd);
	if (map == MAP_FAILED)
		return false;
	file->image = map;
	if (elf_open(&file->elf, file->image, file->size))
		return true;
	munmap(map, file->size);
	return false;
}

/* The address of an exported function in the file, or 0. */
static uint64_t exported(const struct elf *elf, const char *name)
{
	struct elf_section table, strings;
	Elf64_Sym symbol;

	for (uint32_t i = 0; i < elf->number; i++) {
		if (!elf_section(elf, i, &table) || table.type != SHT_DYNSYM || !table.bytes ||
		    !elf_section(elf, table.link, &strings) || !strings.bytes)
			continue;
		for (uint64_t k = 0; k < table.len / sizeof(symbol); k++) {
			memcpy(&symbol, table.bytes + k * sizeof(symbol), sizeof(symbol));
			if (symbol.st_shndx != SHN_UNDEF &&
			    ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
			    symbol.st_name < strings.len &&
			    !strncmp((const char *)strings.bytes + symbol.st_name, name,
				     strings.len - symbol.st_name))
				return symbol.st_value;
		}
	}
	return 0;
}

/* The C library's: what is called, and what is looked for on stacks. */
static bool take_libc(struct target *target, const struct elf *elf, uint64_t base)
{
	static const uint8_t system_call[] = { 0x0f, 0x05 };
	static const uint8_t sigreturn[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	const struct {
		const char *name;
		uint64_t *at;
	} functions[] = {
		{ "pthread_create", &target->create },
		{ "pthread_detach", &target->detach },
		{ "dlopen", &target->dlopen },
		{ "dlsym", &target->dlsym },
		{ "dlerror", &target->dlerror },
		{ "munmap", &target->munmap },
		{ "__errno_location", &target->error_location },
	};
	struct elf_section text;
	const uint8_t *found;

	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		uint64_t value = exported(elf, functions[i].name);

		if (!value)
			return false;
		*functions[i].at = base + value;
	}
	for (uint32_t i = 0; i < elf->number; i++) {
		if (!elf_section(elf, i, &text) || !text.bytes || !(text.flags & SHF_EXECINSTR))
			continue;
		found = memmem(text.bytes, text.len, system_call, sizeof(system_call));
		if (found && !target->system_call)
			target->system_call = base + text.addr + (uint64_t)(found - text.bytes);
		for (const uint8_t *from = text.bytes, *end = from + text.len;
		     (found = memmem(from, (size_t)(end - from), sigreturn, sizeof(sigreturn))) &&
		     target->restorers < RESTORERS_MAX;
		     from = found + 1)
			target->restorer[target->restorers++] =
				base + text.addr + (uint64_t)(found - text.bytes);
	}
	return target->system_call && target->restorers;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Code of the C library, of the loader, and of what is built into them. */
static bool is_libc(const char *path)
{
	const char *name = last_part(path);

	return !strncmp(name, "libc.so", 7) || !strncmp(name, "libc-2.", 7) ||
	       !strncmp(name, "ld-", 3) || !strncmp(name, "ld.so", 5) ||
	       !strncmp(name, "libpthread", 10) || !strncmp(name, "libdl", 5) || *path == '[';
}

/* What is learned while the lines of maps are read. */
struct reading {
	char path[PATH_MAX]; /* of the object whose mappings these are */
	uint64_t base;
	bool quiet;
	bool libc;  /* it was found */
	bool other; /* another C library was */
};

static int new_object(struct target *target, struct reading *reading, const char *path,
		      uint64_t base, unsigned long inode)
{
	struct file file;
	int ret = 0;

	snprintf(reading->path, sizeof(reading->path), "%s", path);
	reading->base = base;
	reading->quiet = !is_libc(path);
	if (!strncmp(last_part(path), "ld-musl", 7) || !strncmp(last_part(path), "libc.musl", 9))
		reading->other = true;
	if (*path == '[' || !*path)
		return 0;
	if (!open_file(target, path, inode, &file)) {
		/* It may have an allocator of its own. */
		reading->quiet = false;
		if (!strcmp(last_part(path), "libc.so.6") ||
		    !strncmp(last_part(path), "libc.so.6 (", 11))
			ret = refuse(target, -ESTALE,
				     "its C library was replaced since it was started, or is not "
				     "one for x86-64; start the program again");
		return ret;
	}
	if (!strcmp(last_part(path), "libc.so.6")) {
		reading->libc = take_libc(target, &file.elf, base);
		if (!reading->libc)
			ret = refuse(target, -ENOTSUP,
				     "its C library is no glibc 2.34 or later, which has "
				     "pthread_create() and dlopen() in libc.so.6");
	} else if (exported(&file.elf, "malloc")) {
		reading->quiet = false;
	}
	munmap((void *)(uintptr_t)file.image, file.size);
	return ret;
}

static int add_piece(struct target *target, const struct piece *piece)
{
	struct piece *more;

	if (!(target->n & (target->n + 1))) {
		more = realloc(target->pieces, 2 * (target->n + 1) * sizeof(*more));
		if (!more)
			return refuse(target, -ENOMEM, "%s", strerror(ENOMEM));
		target->pieces = more;
	}
	target->pieces[target->n++] = *piece;
	return 0;
}

static int read_line(struct target *target, struct reading *reading, char *line)
{
	struct piece piece = { 0 };
	unsigned long inode;
	uint64_t offset;
	char flags[5];
	const char *path;
	int at = 0, ret = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %lu %n", &piece.start,
		   &piece.end, flags, &offset, &inode, &at) != 5)
		return 0;
	path = line + at;
	if (strcmp(path, reading->path) != 0 || !*path)
		ret = new_object(target, reading, path, piece.start - offset, inode);
	piece.writable = flags[1] == 'w';
	piece.executable = flags[2] == 'x';
	piece.quiet = piece.executable && reading->quiet;
	return ret ? ret : add_piece(target, &piece);
}

static int read_maps(struct target *target)
{
	struct reading reading = { 0 };
	FILE *file = open_proc(target->pid, "maps");
	char *line = NULL;
	size_t size = 0;
	bool any = false;
	int ret = 0;

	if (!file)
		return errno == ENOENT ? refuse(target, -ESRCH, "it has ended")
				       : target_denied(target);
	while (!ret && getline(&line, &size, file) > 0) {
		any = true;
		ret = read_line(target, &reading, line);
	}
	free(line);
	fclose(file);
	if (ret)
		return ret;
	if (!any)
		return refuse(target, -ESRCH,
			      "it has no memory: a kernel thread, or one that ends");
	if (reading.other)
		return refuse(target, -ENOTSUP, "its C library is musl; the agent is for glibc");
	if (!target->create)
		return refuse(target, -ENOTSUP,
			      "it has no libc.so.6: it is linked statically, and cannot load the "
			      "agent; link it with -lfastinst");
	return 0;
}

/* --- Whether its loader is at work ------------------------------------------------------------ */

static uint64_t auxiliary(pid_t pid, uint64_t type)
{
	FILE *file = open_proc(pid, "auxv");
	Elf64_auxv_t entry;
	uint64_t value = 0;

	while (file && fread(&entry, sizeof(entry), 1, file) == 1)
		if (entry.a_type == type)
			value = entry.a_un.a_val;
	if (file)
		fclose(file);
	return value;
}

/* Where struct r_debug is: the program's dynamic section says it, once the loader has begun. */
static uint64_t find_debug(const struct target *target)
{
	uint64_t at = auxiliary(target->pid, AT_PHDR), n = auxiliary(target->pid, AT_PHNUM);
	uint64_t base = 0, dynamic = 0;
	Elf64_Phdr phdr;
	Elf64_Dyn entry;

	for (uint64_t i = 0; i < n && i < 64; i++) {
		if (!target_read(target, at + i * sizeof(phdr), &phdr, sizeof(phdr)))
			return 0;
		if (phdr.p_type == PT_PHDR)
			base = at - phdr.p_vaddr;
		if (phdr.p_type == PT_DYNAMIC)
			dynamic = phdr.p_vaddr;
	}
	for (uint64_t i = 0; dynamic && i < 256; i++) {
		if (!target_read(target, base + dynamic + i * sizeof(entry), &entry, sizeof(entry)))
			return 0;
		if (entry.d_tag == DT_DEBUG)
			return entry.d_un.d_ptr;
		if (entry.d_tag == DT_NULL)
			break;
	}
	return 0;
}

static int find_loader(struct target *target)
{
	uint64_t debug = find_debug(target);

	if (!debug)
		return refuse(target, -EAGAIN, "its loader has not begun, or is not glibc's");
	target->loader_state = debug + offsetof(struct r_debug, r_state);
	return 0;
}

int target_look(struct target *target, pid_t pid, const char *library)
{
	int ret;

	*target = (struct target){ .pid = pid };
	ret = check_status(target);
	if (!ret)
		ret = check_library(target, library);
	if (!ret)
		ret = read_maps(target);
	if (!ret)
		ret = find_loader(target);
	return ret;
}

void target_free(struct target *target)
{
	free(target->pieces);
	target->pieces = NULL;
	target->n = 0;
}

/* --- Its threads ------------------------------------------------------------------------------ */

/*
 * System calls that programs wait in, and that malloc and the loader make none of. The first go on
 * as if nothing had been; those of the second kind say EINTR when a thread is stopped in them,
 * which inject.c sees to, but their time begins anew.
 */
static int kind_of(long number, uint64_t second)
{
	switch (number) {
	case SYS_futex:
		return (second & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET ? 0 : -1;
	case SYS_read:
	case SYS_write:
	case SYS_readv:
	case SYS_writev:
	case SYS_poll:
	case SYS_ppoll:
	case SYS_select:
	case SYS_pselect6:
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_wait4:
	case SYS_waitid:
	case SYS_pause:
	case SYS_rt_sigsuspend:
	case SYS_accept:
	case SYS_accept4:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_flock:
		return 0;
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_rt_sigtimedwait:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_msgrcv:
	case SYS_msgsnd:
		return 1;
	default:
		return -1;
	}
}

int target_sleeps(const struct target *target, pid_t thread)
{
	char name[64];
	FILE *file;
	unsigned long second;
	long number;
	int kind = -1;
	char line[256] = "";

	snprintf(name, sizeof(name), "task/%d/syscall", (int)thread);
	file = open_proc(target->pid, name);
	if (!file)
		return -1;
	if (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "running", 7))
			kind = 2;
		else if (sscanf(line, "%ld %*s %lx", &number, &second) == 2 && number >= 0)
			kind = kind_of(number, second);
	}
	fclose(file);
	return kind;
}

static const struct piece *piece_at(const struct target *target, uint64_t at)
{
	for (size_t i = 0; i < target->n; i++)
		if (at >= target->pieces[i].start && at < target->pieces[i].end)
			return &target->pieces[i];
	return NULL;
}

static bool is_quiet(const struct target *target, uint64_t at)
{
	const struct piece *piece = piece_at(target, at);

	return piece && piece->quiet;
}

static bool is_restorer(const struct target *target, uint64_t word)
{
	for (size_t i = 0; i < target->restorers; i++)
		if (target->restorer[i] == word)
			return true;
	return false;
}

/* In words behind the address that a signal handler returns to, as the kernel puts them there. */
#define FRAME_FLAGS    1
#define FRAME_LINK     2
#define FRAME_RIP      (6 + REG_RIP)
#define FRAME_SEGMENTS (6 + REG_CSGSFS)
#define FRAME_WORDS    (FRAME_SEGMENTS + 1)

/* Whether a context that was interrupted stands there; the same address is in what sigaction(2)
 * got. */
static bool is_frame(const uint64_t *words)
{
	return words[FRAME_FLAGS] <= 7 && !words[FRAME_LINK] &&
	       (words[FRAME_SEGMENTS] & 0xffff) == USER_CODE;
}

/* The stack, for signal handlers: one may have interrupted malloc. */
static const char *handlers(const struct target *target, uint64_t from)
{
	const struct piece *stack = piece_at(target, from);
	const char *why = NULL;
	uint64_t *words;
	size_t n;

	if (!stack || !stack->writable)
		return "its stack is not where one was";
	if (stack->end - from > STACK_MAX)
		return "its stack is too long to be looked through for signal handlers";
	n = (stack->end - from) / sizeof(*words);
	words = malloc(n * sizeof(*words) + 1);
	if (!words || !target_read(target, from, words, n * sizeof(*words)))
		why = "its stack cannot be read";
	for (size_t i = 0; !why && i + FRAME_WORDS <= n; i++)
		if (is_restorer(target, words[i]) && is_frame(words + i) &&
		    !is_quiet(target, words[i + FRAME_RIP]))
			why = "it is in a signal handler, which may have interrupted malloc";
	free(words);
	return why;
}

bool target_waits(const struct user_regs_struct *regs)
{
	return kind_of((long)regs->orig_rax, regs->rsi) >= 0;
}

const char *target_safe(const struct target *target, const struct user_regs_struct *regs)
{
	int state;

	if (regs->cs != USER_CODE)
		return "it runs 32-bit code";
	if (!target_read(target, target->loader_state, &state, sizeof(state)) || state)
		return "its loader is at work";
	if ((long)regs->orig_rax >= 0 && !target_waits(regs))
		return "it is in a system call that malloc or the loader may have made";
	if ((long)regs->orig_rax < 0 && !is_quiet(target, regs->rip))
		return "it is in the C library, in its loader, or in an allocator";
	return handlers(target, regs->rsp & ~UINT64_C(7));
}
