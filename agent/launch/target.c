/* SPDX-License-Identifier: MIT */
/* What /proc says of a process: may it be attached to, its memory, objects and functions. */
#include "agent/launch/target.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/text.h"
#include "probes/elf/elf.h"
#include "probes/elf/preload.h"

int say_why(const struct target *target, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(target->why, TARGET_WHY, format, args);
	va_end(args);
	return error;
}

FILE *target_file(pid_t pid, const char *name)
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
	unsigned seccomp; /* its mode; 0: none */
	bool namespaced;
	uint64_t pending; /* signals, of that thread alone */
};

static bool read_status(pid_t pid, pid_t thread, struct status *status)
{
	char name[64], line[512];
	FILE *file;

	snprintf(name, sizeof(name), "task/%d/status", (int)thread);
	file = target_file(pid, name);
	*status = (struct status){ 0 };
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		long outside, inside;

		sscanf(line, "State: %c", &status->state);
		sscanf(line, "TracerPid: %ld", &status->tracer);
		sscanf(line, "Uid: %u %u %u %u", &status->uid[0], &status->uid[1], &status->uid[2],
		       &status->uid[3]);
		sscanf(line, "Seccomp_filters: %u", &status->filters);
		sscanf(line, "SigPnd: %" SCNx64, &status->pending);
		sscanf(line, "Seccomp: %u", &status->seccomp);
		if (sscanf(line, "NSpid: %ld %ld", &outside, &inside) == 2)
			status->namespaced = true;
	}
	fclose(file);
	return true;
}

bool target_trapped(const struct target *target, pid_t thread)
{
	struct status status;

	return !read_status(target->pid, thread, &status) || status.pending >> (SIGTRAP - 1) & 1;
}

static int check_status(struct target *target)
{
	struct status status, mine;

	if (!read_status(target->pid, target->pid, &status) ||
	    !read_status(getpid(), getpid(), &mine))
		return say_why(target, -ESRCH, "there is no such process");
	if (status.state == 'Z' || status.state == 'X')
		return say_why(target, -ESRCH, "it has ended");
	if (status.tracer)
		return say_why(target, -EBUSY, "process %ld traces it already", status.tracer);
	if (status.state == 'T')
		return say_why(target, -EBUSY, "it is stopped; continue it first (kill -CONT %d)",
			       (int)target->pid);
	for (int i = 1; i < 4; i++)
		if (status.uid[i] != status.uid[0])
			return say_why(target, -EPERM,
				       "it is a set-user-ID program, or one that gave up rights; a "
				       "library is not put into such a process");
	if (status.uid[0] != geteuid())
		return say_why(target, -EPERM, "it is a process of user %u; be that user",
			       status.uid[0]);
	/* A filter that this program runs under as well, as in a container, allows all of this. */
	if (status.seccomp && (!mine.seccomp || status.filters > mine.filters))
		return say_why(target, -EPERM,
			       "it runs under seccomp, which may end it for a system call that the "
			       "agent makes; start it by \"fastinst run\", or without seccomp");
	if (status.namespaced && !mine.namespaced)
		return say_why(target, -EXDEV,
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
	if (scope > 0)
		return say_why(target, -EPERM,
			       "kernel.yama.ptrace_scope is %d: %s; start the program by "
			       "\"fastinst run\"%s",
			       scope,
			       scope == 1 ? "a process may trace its children only"
					  : "tracing is not allowed",
			       scope == 1 ? ", or set it to 0" : "");
	return say_why(target, -EPERM,
		       "the kernel does not let it be traced: it has more rights than its user, "
		       "or has made itself undumpable, or a sandbox forbids ptrace(2)");
}

/* The process must see the same file by that path. */
static int check_library(struct target *target)
{
	const char *library = target->library;
	char path[PATH_MAX];
	struct stat here, there;

	if (stat(library, &here) < 0)
		return say_why(target, -errno, "%s cannot be read: %s", library, strerror(errno));
	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)target->pid, library);
	if (stat(path, &there) < 0 && errno == EACCES)
		return target_denied(target);
	if (stat(path, &there) < 0 || here.st_dev != there.st_dev || here.st_ino != there.st_ino)
		return say_why(target, -EXDEV,
			       "%s is not in its mount namespace (a container, a chroot); install "
			       "it there and run fastinst there",
			       library);
	return 0;
}

/* --- Its memory ------------------------------------------------------------------------------- */

bool target_read(const struct target *target, uint64_t at, void *to, size_t len)
{
	return pread(target->memory, to, len, (off_t)at) == (ssize_t)len;
}

bool target_write(const struct target *target, uint64_t at, const void *from, size_t len)
{
	return pwrite(target->memory, from, len, (off_t)at) == (ssize_t)len;
}

/* --- Its objects ------------------------------------------------------------------------------ */

/* As the process sees it; false: it was replaced meanwhile, or is no ELF file. */
static bool open_file(const struct target *target, const char *path, unsigned long inode,
		      struct elf *elf)
{
	char there[PATH_MAX];
	struct stat stat;
	bool opened;
	int fd;

	snprintf(there, sizeof(there), "/proc/%d/root%s", (int)target->pid, path);
	fd = open(there, O_RDONLY | O_CLOEXEC);
	opened = fd >= 0 && !fstat(fd, &stat) && stat.st_ino == inode &&
		 !elf_map_fd(elf, fd, ELF_PLAIN);
	if (fd >= 0)
		close(fd);
	return opened;
}

/* The address of an exported symbol in the file, or 0. */
static uint64_t find_export(const struct elf *elf, const char *name)
{
	struct elf_section table;
	Elf64_Sym symbol;
	const char *its;

	for (uint32_t i = 0; elf_next_section(elf, &i, &table);)
		for (uint64_t k = 0;
		     table.type == SHT_DYNSYM && elf_read_symbol(elf, &table, k, &symbol, &its);
		     k++)
			if (symbol.st_shndx != SHN_UNDEF && !strcmp(its, name))
				return symbol.st_value;
	return 0;
}

/* A sanitizer would report the agent's threads and memory as races and leaks of the program. */
static int check_sanitizer(struct target *target)
{
	struct preload preload;
	bool is_sanitized;
	struct elf elf;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)target->pid);
	preload_look(&preload, AT_FDCWD, path);
	is_sanitized = *preload.runtime;
	if (!elf_map(&elf, path, ELF_PLAIN)) {
		is_sanitized |=
			find_export(&elf, "__tsan_init") || find_export(&elf, "__asan_init");
		elf_unmap(&elf);
	}
	return is_sanitized
		       ? say_why(target, -EPERM,
				 "it is built with a sanitizer, which takes the agent for part "
				 "of it; start it by \"fastinst run\"")
		       : 0;
}

/* The functions that the stub calls, and the restorers of signal handlers. */
static bool note_libc(struct target *target, const struct elf *elf, uint64_t base)
{
	static const uint8_t sigreturn[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	/* In the order of struct letter_calls. */
	static const char *const names[] = { "pthread_create", "pthread_detach",  "dlopen",
					     "dlsym",	       "dlerror",	  "dlclose",
					     "munmap",	       "__errno_location" };
	uint64_t *calls = &target->call.create;
	struct elf_section text;
	const uint8_t *found;

	static_assert(sizeof(names) == sizeof(target->call), "a name for each");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		uint64_t value = find_export(elf, names[i]);

		if (!value)
			return false;
		calls[i] = base + value;
	}
	for (uint32_t k = 0; elf_next_section(elf, &k, &text);) {
		if (!text.bytes || !(text.flags & SHF_EXECINSTR))
			continue;
		for (const uint8_t *from = text.bytes, *end = from + text.len;
		     (found = memmem(from, (size_t)(end - from), sigreturn, sizeof(sigreturn))) &&
		     target->restorers < RESTORERS_MAX;
		     from = found + 1)
			target->restorer[target->restorers++] =
				base + text.addr + (uint64_t)(found - text.bytes);
	}
	return target->restorers;
}

/* Files of the C library and the loader, and mappings of the kernel ("[vdso]"). */
static bool is_libc(const char *path)
{
	const char *name = basename(path);

	return !strncmp(name, "libc.so", 7) || !strncmp(name, "libc-2.", 7) ||
	       !strncmp(name, "ld-", 3) || !strncmp(name, "ld.so", 5) ||
	       !strncmp(name, "libpthread", 10) || !strncmp(name, "libdl", 5) || *path == '[';
}

/* State while the lines of maps are read. */
struct reading {
	struct target *target;
	char path[PATH_MAX]; /* of the object whose mappings these are */
	bool is_lock_free;
	bool other; /* another C library was found */
};

/* Notes what an object has that is needed. */
static int note_object(struct target *target, struct reading *reading, const char *path,
		       uint64_t base, unsigned long inode)
{
	const char *name = basename(path);
	bool is_glibc = !strcmp(name, "libc.so.6");
	struct elf elf;
	int ret = 0;

	snprintf(reading->path, sizeof(reading->path), "%s", path);
	reading->is_lock_free = !is_libc(path);
	/* In Debian musl's loader is a link to its libc.so. glibc maps no file of that name. */
	if (!strncmp(name, "ld-musl", 7) || !strncmp(name, "libc.musl", 9) ||
	    !strcmp(name, "libc.so"))
		reading->other = true;
	if (*path == '[' || !*path)
		return 0;
	if (!open_file(target, path, inode, &elf)) {
		/* The object may have an allocator of its own. */
		reading->is_lock_free = false;
		if (is_glibc || !strncmp(name, "libc.so.6 (", 11))
			ret = say_why(target, -ESTALE,
				      "its C library was replaced since it was started, or is not "
				      "one for x86-64; start the program again");
		return ret;
	}
	if (is_glibc && !note_libc(target, &elf, base))
		ret = say_why(target, -ENOTSUP,
			      "its C library is no glibc 2.34 or later, which has "
			      "pthread_create() and dlopen() in libc.so.6");
	if (!strncmp(name, "ld-linux", 8)) {
		target->loader = find_export(&elf, "_r_debug");
		target->loader += target->loader ? base : 0;
	} else if (find_export(&elf, "malloc")) {
		reading->is_lock_free = false;
	}
	elf_unmap(&elf);
	return ret;
}

uint64_t target_cave(const struct target *target, size_t len)
{
	uint8_t page[4096];

	for (const struct target_mapping *mapping = target->mappings;
	     mapping < target->mappings + target->n; mapping++) {
		uint64_t from = mapping->end - sizeof(page);

		if (!mapping->executable || !mapping->own ||
		    !target_read(target, from, page, sizeof(page)))
			continue;
		/* In the last page, behind caves that earlier commands have left. */
		for (size_t at = sizeof(page) - len; at; at -= len)
			if (!page[at] && !memcmp(page + at, page + at + 1, len - 1))
				return from + at;
	}
	return 0;
}

static int read_mapping(char *line, void *arg)
{
	struct reading *reading = arg;
	struct target *target = reading->target;
	struct target_mapping mapping = { 0 };
	unsigned long inode;
	uint64_t offset;
	char flags[5];
	const char *path;
	int at = 0, ret = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %lu %n", &mapping.start,
		   &mapping.end, flags, &offset, &inode, &at) != 5)
		return 0;
	path = line + at;
	if (strcmp(path, reading->path) != 0 || !*path)
		ret = note_object(target, reading, path, mapping.start - offset, inode);
	mapping.writable = flags[1] == 'w';
	mapping.executable = flags[2] == 'x';
	mapping.own = flags[3] == 'p' && inode;
	mapping.is_lock_free = mapping.executable && reading->is_lock_free;
	mapping.agent = mapping.executable && (!strncmp(basename(path), "libfastinst", 11) ||
					       !strncmp(basename(path), "libpatchcore", 12));
	if (!ret && ARRAY_ADD(target->mappings, target->n, mapping))
		ret = say_why(target, -ENOMEM, "fastinst has no memory left to look at it");
	return ret;
}

static int read_maps(struct target *target)
{
	struct reading reading = { .target = target };
	FILE *file = target_file(target->pid, "maps");
	int ret;

	if (!file)
		return errno == ENOENT ? say_why(target, -ESRCH, "it has ended")
				       : target_denied(target);
	ret = text_lines(file, read_mapping, &reading);
	fclose(file);
	if (ret)
		return ret;
	if (!target->n)
		return say_why(target, -ESRCH,
			       "it has no memory: a kernel thread, or one that ends");
	if (reading.other)
		return say_why(target, -ENOTSUP, "its C library is musl; the agent is for glibc");
	if (!target->call.create)
		return say_why(target, -ENOTSUP,
			       "it has no libc.so.6: if it has only begun, try again; else "
			       "it is linked statically, and cannot load the agent; link it "
			       "with -lfastinst");
	return 0;
}

/* --- All of it -------------------------------------------------------------------------------- */

static int open_memory(struct target *target)
{
	int version = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)target->pid);
	target->memory = open(path, O_RDWR | O_CLOEXEC);
	if (target->memory < 0)
		return errno == ENOENT ? say_why(target, -ESRCH, "it has ended")
				       : target_denied(target);
	if (target->loader)
		target_read(target, target->loader + offsetof(struct r_debug, r_version), &version,
			    sizeof(version));
	return version ? 0
		       : say_why(target, -EAGAIN,
				 "its loader has not begun, was replaced, or is not glibc's");
}

bool target_loads(const struct target *target)
{
	int state;

	return !target_read(target, target->loader + offsetof(struct r_debug, r_state), &state,
			    sizeof(state)) ||
	       state;
}

int target_look(struct target *target, pid_t pid, const char *library, char why[TARGET_WHY])
{
	static int (*const looks[])(struct target *) = { check_status, check_library,
							 check_sanitizer, read_maps, open_memory };
	int ret = 0;

	*target = (struct target){ .pid = pid, .memory = -1, .library = library, .why = why };
	for (size_t i = 0; i < sizeof(looks) / sizeof(*looks) && !ret; i++)
		ret = looks[i](target);
	return ret;
}

void target_free(struct target *target)
{
	free(target->mappings);
	if (target->memory >= 0)
		close(target->memory);
	*target = (struct target){ .memory = -1 };
}
