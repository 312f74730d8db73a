/* SPDX-License-Identifier: MIT */
/*
 * Code with a breakpoint in it that is not the library's: a copy would keep the INT3, and the
 * kernel, or the debugger, would not know of it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "patchcore/pages/text.h"
#include "patchcore/tests/mappings.h"
#include "patchcore/tests/text_library.h"
#include "patchcore/tests/text_pages.h"

static struct text_library library;

static void load_library(void)
{
	start_library();
	library_copy(&library);
	library_open(&library);
	base = library.fn - ((uintptr_t)library.fn & (CODE_PAGE - 1));
	pages = 1;
}

static void must_be_aliased(int ret)
{
	uint8_t before[CODE_PAGE];

	memcpy(before, base, CODE_PAGE);
	MUST(pc_text_alias(library.fn, 1) == ret);
	MUST(memcmp(before, base, CODE_PAGE) == 0 && code_prot(base) == RX);
	if (ret == 0)
		MUST(pc_text_close(library.fn, 1) == 0 && code_prot(base) == RX);
	else
		MUST(pc_text_close(library.fn, 1) == -ENOENT);
}

/* --- A uprobe --------------------------------------------------------------------------------- */

static uint64_t kind_of_uprobes(void)
{
	FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	unsigned kind = 0;

	if (!file || fscanf(file, "%u", &kind) != 1)
		child_skip("no uprobes here");
	fclose(file);
	return kind;
}

/* At the function. Its descriptor. */
static int put_uprobe(void)
{
	struct perf_event_attr attr = { .size = sizeof(attr) };
	struct mapping *map;
	int fd;

	MUST(mappings_read((uintptr_t)library.fn, (uintptr_t)library.fn + 1, &map) == 1);
	attr.type = (uint32_t)kind_of_uprobes();
	attr.config1 = (uintptr_t)library.path;
	attr.config2 = mapping_origin(map, (uintptr_t)library.fn).offset;
	free(map);
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		child_skip("no uprobe may be made");
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	return fd;
}

static uint64_t count_of(int fd)
{
	uint64_t count;

	MUST(read(fd, &count, sizeof(count)) == sizeof(count));
	return count;
}

static void uprobe(const void *arg)
{
	double (*function)(double);
	int fd;

	(void)arg;
	load_library();
	fd = put_uprobe();
	memcpy(&function, &library.fn, sizeof(function));
	MUST(*library.fn == 0xcc && function(0) == 0 && count_of(fd) == 1);
	must_be_aliased(-EBUSY);
	MUST(function(0) == 0 && count_of(fd) == 2);
	close(fd);
	MUST(*library.fn != 0xcc);
	must_be_aliased(0);
	unlink(library.path);
}

/* --- Others ----------------------------------------------------------------------------------- */

static void put_byte(uint8_t *at, uint8_t byte)
{
	MUST(mprotect(base, CODE_PAGE, RW) == 0);
	*at = byte;
	MUST(mprotect(base, CODE_PAGE, RX) == 0);
}

/* As a debugger does. Any other difference from the file is the program's affair. */
static void debugger(const void *arg)
{
	uint8_t byte;

	(void)arg;
	load_library();
	byte = *library.fn;
	put_byte(library.fn, 0xcc);
	must_be_aliased(-EBUSY);
	put_byte(library.fn, 0x90);
	must_be_aliased(0);
	put_byte(library.fn, byte);
	/* Not where the file is gone: nothing tells. */
	unlink(library.path);
	put_byte(library.fn, 0xcc);
	must_be_aliased(0);
}

/* An INT3 of the file's own is code as any other. */
static void own(const void *arg)
{
	char path[] = "/tmp/test_text.XXXXXX";
	uint8_t page[CODE_PAGE];
	int fd = mkstemp(path);

	(void)arg;
	start_library();
	memset(page, 0xcc, sizeof(page));
	code_put(page + 64, CODE_OLD);
	MUST(fd >= 0 && write(fd, page, sizeof(page)) == (ssize_t)sizeof(page));
	base = mmap(NULL, CODE_PAGE, RX, MAP_PRIVATE, fd, 0);
	if (base == MAP_FAILED)
		child_skip("nothing in the folder for temporary files may be executed");
	MUST(pc_text_alias(base, 1) == 0 && pc_text_close(base, 1) == 0);
	unlink(path);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(uprobe),
		child_unit_test(debugger),
		child_unit_test(own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
