/* SPDX-License-Identifier: MIT */
/*
 * A uprobe and a probe on one function, or one marker: no order that this library can refuse ends
 * the program.
 * Exit status 77: the kernel refuses uprobes.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fastinst/marker.h>
#include <patchcore/mapping.h>

#include "probes/include/fastinst.h"

#define CALLS 1000

#ifdef __clang__
#define AS_WRITTEN __attribute__((noinline, used, optnone))
#else
#define AS_WRITTEN __attribute__((noinline, noclone, used, optimize("O0")))
#endif

/* Its first instruction is shorter than a jump. */
AS_WRITTEN static int doubled(int n)
{
	return n + n;
}

static int (*volatile function)(int) = doubled;

/* As libbpf's header made them: a uprobe may stand on either NOP. The sum is in the red zone. */
__asm__(".pushsection .text\n"
	".p2align 6\n"
	".type marked, @function\n"
	"marked:\n"
	"	endbr64\n"
	"	mov %edi, -8(%rsp)\n"
	"	.p2align 4\n"
	"marked_nops:\n"
	"990:	nop\n"
	"	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n" FI_NOTE("0", "its", "marker", "-4@%edi") //
	"	mov -8(%rsp), %eax\n"
	"	add %edi, %eax\n"
	"	ret\n"
	".size marked, . - marked\n"
	".popsection\n");
int marked(int n);
extern uint8_t marked_nops[];

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "uprobed: %s\n", what);
	exit(1);
}

static uint64_t offset_in_file(uintptr_t at)
{
	uint64_t start, end, offset, found = 0;
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 && at >= start &&
		    at < end)
			found = at - start + offset;
	if (maps)
		fclose(maps);
	return found;
}

/* As bpftrace(8) does, for this process. */
static int put_uprobe(const void *at)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .disabled = 0 };
	FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	int fd = -1;

	if (file && fscanf(file, "%u", &attr.type) == 1) {
		attr.uprobe_path = (uintptr_t) "/proc/self/exe";
		attr.probe_offset = offset_in_file((uintptr_t)at);
		fd = (int)syscall(SYS_perf_event_open, &attr, getpid(), -1, -1,
				  PERF_FLAG_FD_CLOEXEC);
	}
	if (file)
		fclose(file);
	if (fd < 0)
		_exit(77);
	return fd;
}

static void call_it(void)
{
	for (int i = 0; i < CALLS; i++)
		must(function(i) == 2 * i, "the function is another");
}

/* Also one that is refused. */
static uint32_t find_it(struct fi_probe *probe)
{
	must(!fi_take_entries("") && !fi_init(), "no probes");
	for (uint32_t id = 0; !fi_get(id, probe); id++)
		if (!strcmp(probe->function, "doubled"))
			return id;
	must(false, "the function is not found");
	return 0;
}

static void uprobe_then_probe(void)
{
	struct fi_probe probe;
	uint32_t id;

	put_uprobe((void *)(uintptr_t)doubled);
	id = find_it(&probe);
	must(probe.state == FI_REFUSED && strstr(probe.reason, "breakpoint"), probe.reason);
	must(fi_activate(id, NULL) < 0, "it is on");
	call_it();
}

static void found_then_uprobe(void)
{
	struct fi_probe probe;
	uint32_t id = find_it(&probe);

	put_uprobe((void *)(uintptr_t)doubled);
	must(fi_activate(id, NULL) == -ESTALE, "it is on");
	call_it();
}

/* Into a page that is writable the kernel puts no breakpoint. */
static void open_page_then_uprobe(void)
{
	struct fi_probe probe;
	uint32_t id = find_it(&probe);

	must(!pc_text_open((void *)(uintptr_t)doubled, 8), "its page is not opened");
	must(!fi_activate(id, NULL), "it cannot be turned on");
	put_uprobe((void *)(uintptr_t)doubled);
	call_it();
	must(fi_count(id) == CALLS, "not all calls are counted");
	must(!fi_deactivate(id), "it cannot be turned off");
	call_it();
}

/* --- A marker --------------------------------------------------------------------------------- */

static uint32_t find_marker(struct fi_probe *probe)
{
	must(!fi_init(), "no probes");
	for (uint32_t id = 0; !fi_get(id, probe); id++)
		if (probe->kind == FI_MARKER)
			return id;
	must(false, "the marker is not found");
	return 0;
}

/* A uprobe on a 5-byte NOP overwrites the red zone itself, once the kernel has made it a CALL. */
static void call_marked(bool is_kept)
{
	for (int i = 0; i < CALLS; i++)
		must(marked(i) == 2 * i || !is_kept, "the red zone is overwritten");
}

static void refused_behind_uprobe(size_t skip, bool hits)
{
	struct fi_probe probe;
	uint32_t id;

	put_uprobe(marked_nops + skip);
	if (hits)
		call_marked(!skip);
	printf("uprobe on byte %zu: %02x %02x\n", skip, marked_nops[0], marked_nops[1]);
	id = find_marker(&probe);
	must(probe.state == FI_REFUSED && strstr(probe.reason, "uprobe"), probe.reason);
	must(fi_activate(id, NULL) < 0, "it is on");
	call_marked(!skip);
}

static void breakpoint_on_first_nop(void)
{
	refused_behind_uprobe(0, true);
}

static void breakpoint_on_nop5(void)
{
	refused_behind_uprobe(1, false);
}

/* Since Linux 6.18 a CALL stands there. */
static void call_on_nop5(void)
{
	refused_behind_uprobe(1, true);
}

static void found_then_uprobe_on_nop5(void)
{
	struct fi_probe probe;
	uint32_t id = find_marker(&probe);

	must(probe.state == FI_OFF, probe.reason);
	put_uprobe(marked_nops + 1);
	call_marked(false);
	must(fi_activate(id, NULL) == -ESTALE, "it is on");
	call_marked(false);
}

/* Before the marker's jump: both count. */
static void marker_then_uprobe_on_first_nop(void)
{
	struct fi_probe probe;
	uint32_t id = find_marker(&probe);

	must(!fi_activate(id, NULL), "it cannot be turned on");
	put_uprobe(marked_nops);
	call_marked(true);
	must(fi_count(id) == CALLS, "not all calls are counted");
	must(!fi_deactivate(id), "it cannot be turned off");
	call_marked(true);
}

static void open_marker_then_uprobe_on_nop5(void)
{
	struct fi_probe probe;
	uint32_t id = find_marker(&probe);

	must(!fi_keep_writable(true) && !fi_activate(id, NULL), "it cannot be turned on");
	put_uprobe(marked_nops + 1);
	call_marked(true);
	must(fi_count(id) == CALLS, "not all calls are counted");
	must(!fi_deactivate(id), "it cannot be turned off");
	call_marked(true);
}

int main(void)
{
	static void (*const orders[])(void) = {
		uprobe_then_probe,
		found_then_uprobe,
		open_page_then_uprobe,
		breakpoint_on_first_nop,
		breakpoint_on_nop5,
		call_on_nop5,
		found_then_uprobe_on_nop5,
		marker_then_uprobe_on_first_nop,
		open_marker_then_uprobe_on_nop5,
	};

	for (size_t i = 0; i < sizeof(orders) / sizeof(*orders); i++) {
		int status = -1;
		pid_t child = fork();

		if (!child) {
			orders[i]();
			exit(0);
		}
		waitpid(child, &status, 0);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
			return 77;
		if (status)
			fprintf(stderr, "order %zu: status %#x\n", i, (unsigned)status);
		if (status)
			return 1;
	}
	return 0;
}
