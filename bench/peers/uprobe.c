/* SPDX-License-Identifier: MIT */
/*
 * A uprobe of the kernel, as perf and libbpf set one: switched on by perf_event_open(), off by
 * close(). The function begins with a five-byte NOP, which recent kernels turn into a call where
 * they once trapped.
 *
 * The event counts the calls of one thread and does nothing else: what the kernel does without
 * a program of the user's behind it.
 */
#include "lines.h"

#include <errno.h>
#include <link.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>

#define TYPE_FILE "/sys/bus/event_source/devices/uprobe/type"

static struct perf_event_attr event = { .size = sizeof(event) };
static int fd = -1;

/* Each on a line of its own: a page of code that holds a probe is a private copy. */
__asm__(".pushsection .text.uprobe, \"ax\", @progbits\n\t"
	".p2align 6\n\t"
	".globl traced, plain\n\t"
	".type traced, @function\n"
	"traced:\n\t"
	".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n\t"
	"ret\n\t"
	".size traced, . - traced\n\t"
	".p2align 6\n\t"
	".type plain, @function\n"
	"plain:\n\t"
	"ret\n\t"
	".size plain, . - plain\n\t"
	".p2align 6\n\t"
	".popsection");

/* Where in the file of this program the function is. */
static int look_in(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		uintptr_t at = (uintptr_t)traced - info->dlpi_addr - h->p_vaddr;

		if (h->p_type == PT_LOAD && at < h->p_filesz)
			event.probe_offset = at + h->p_offset;
	}
	return 1;
}

/* The event is the executor's, or if there is none this thread's. */
static int open_event(void)
{
	pid_t task = atomic_load_explicit(&executor.id, memory_order_acquire);

	return (int)syscall(SYS_perf_event_open, &event, task, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void turn_traced(bool on)
{
	if (on && (fd = open_event()) < 0)
		give_up("the kernel sets no uprobe any more");
	if (!on)
		close(fd);
}

static const char *get_ready(void)
{
	static char why[128];
	FILE *file = fopen(TYPE_FILE, "re");

	if (file && fscanf(file, "%u", &event.type) == 1)
		errno = 0;
	if (file)
		fclose(file);
	event.uprobe_path = (uintptr_t) "/proc/self/exe";
	dl_iterate_phdr(look_in, NULL);
	fd = event.type ? open_event() : -1;
	if (fd >= 0)
		return close(fd) ? "close" : NULL;
	snprintf(why, sizeof(why), "the kernel sets no uprobe: %s%s", strerror(errno),
		 errno == EACCES || errno == EPERM ? " (it takes CAP_PERFMON)" : "");
	return why;
}
