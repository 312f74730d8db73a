/* SPDX-License-Identifier: MIT */
/* pc_check_site(): decode old and new code side by side, and compare. */
#include "patchcore/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "patchcore/check/decode.h"
#include "patchcore/patchcore.h"

#define INT3	     0xcc
#define STRETCH	     64u /* bytes looked at: one for each bit of a mask */
#define UNTIL_MAX    (STRETCH - DECODE_INSN_MAX)
#define WINDOW_KNOWN 8u /* AMD APM vol. 2, 7.6.1 */
#define LINE	     64u
#define PAGE	     4096u

/* The code of a site as it is and as it would be. */
struct pair {
	const uint8_t *addr;
	uint8_t old_code[STRETCH];
	uint8_t new_code[STRETCH];
	size_t size; /* of both */
	size_t len;  /* that changes */
	struct layout old_layout;
	struct layout new_layout;
};

/* For a return value and its reason at once. */
__attribute__((format(printf, 3, 4))) static int because(struct pc_check *result, int ret,
							 const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(result->why, sizeof(result->why), format, args);
	va_end(args);
	return ret;
}

static uint64_t bits_below(size_t at)
{
	return at < 64 ? (UINT64_C(1) << at) - 1 : ~UINT64_C(0);
}

/* Bytes of [addr, addr + len) before a multiple of unit inside it; 0: there is none. */
static unsigned split_of(const void *addr, size_t len, unsigned unit)
{
	size_t front = unit - ((uintptr_t)addr & (unit - 1));

	return front < len ? (unsigned)front : 0;
}

/* Is there an instruction on both sides of the end of the change? *cut: it crosses the window. */
static bool ends_inside(const struct pair *pair, const struct layout *layout, unsigned window,
			bool *cut)
{
	uint64_t before = layout->starts & bits_below(pair->len);
	size_t start = before ? 63u - (size_t)__builtin_clzll(before) : 0;

	if (start + layout->len[start] <= pair->len)
		return false;
	*cut |= split_of(pair->addr + start, layout->len[start], window) > 0;
	return true;
}

/* Until an instruction ends at the same byte in both, behind the change. */
static int decode_both(struct pair *pair, struct pc_check *result)
{
	static const char not_there[] = "the old code has no instruction at +%u";
	static const char cut_off[] =
		"the old instruction at +%u runs into memory that is not mapped";
	struct layout *was = &pair->old_layout, *is = &pair->new_layout;
	size_t until = pair->len;
	int ret;

	do {
		ret = decode_layout(was, pair->old_code, pair->size, until, NULL);
		result->old_invalid = ret == -ENOEXEC;
		if (ret < 0)
			return because(result, ret, ret == -ENOEXEC ? not_there : cut_off,
				       (unsigned)was->end);
		until = was->end;
		ret = decode_layout(is, pair->new_code, pair->size, until, &was->starts);
		result->new_invalid = ret < 0;
		if (ret < 0)
			return because(result, -ENOEXEC, "the new code has no instruction at +%u",
				       (unsigned)is->end);
		if (is->leaves)
			is->end = was->end;
		if (is->end == until)
			break;
		until = is->end;
	} while (until <= UNTIL_MAX);
	return 0;
}

/*
 * Copies what is mapped of [addr, addr + size), up to the first hole. The number of bytes, or
 * -EACCES: nothing can be read this way.
 */
static ssize_t read_code(uint8_t *to, const void *addr, size_t size)
{
	size_t rest = PAGE - ((uintptr_t)addr & (PAGE - 1)), first = size < rest ? size : rest;
	struct iovec local = { .iov_base = to, .iov_len = size };
	/* A piece that is not all mapped is not read at all. */
	struct iovec remote[] = {
		{ .iov_base = (void *)(uintptr_t)addr, .iov_len = first },
		{ .iov_base = (void *)((uintptr_t)addr + first), .iov_len = size - first },
	};
	ssize_t got = process_vm_readv(gettid(), &local, 1, remote, size > first ? 2 : 1, 0);
	int fd;

	if (got >= 0 || errno == EFAULT)
		return got < 0 ? 0 : got;
	/* Where a filter of system calls keeps that way shut. */
	fd = open("/proc/thread-self/mem", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -EACCES;
	got = pread(fd, to, size, (off_t)(uintptr_t)addr);
	close(fd);
	return got < 0 ? 0 : got;
}

static int tell_lost(const struct pair *pair, struct pc_check *result)
{
	const struct layout *was = &pair->old_layout;
	uint64_t lost = result->lost_starts, before = lost >> 1;
	unsigned at = lost ? (unsigned)__builtin_ctzll(lost) : STRETCH;
	const char *what = "a start is lost at +%u, which only a jump from elsewhere can reach";

	/* Are all starts that are lost those of 1-byte NOPs, and also what stands before them? */
	result->merges_nops = lost && ((lost | (before & was->starts)) & ~was->nops) == 0 &&
			      (before & ~was->starts) == 0;
	if (result->merges_nops)
		what = "1-byte NOPs become one instruction: a thread at +%u would run its middle";
	else if (at >= pair->len)
		what = "the new code runs over the end of the change into the instruction at +%u";
	else if (lost & ~result->after_jump)
		what = "an instruction starts at +%u in the old code and not in the new";
	return because(result, -EILSEQ, what, at);
}

/* The layout is kept: how the change can be made. */
static int tell_kept(const struct pair *pair, struct pc_check *result)
{
	unsigned split = result->window_split, window = result->window;
	int fronts = __builtin_popcountll(result->starts & bits_below(split));
	const char *more = result->cut ? "; only part of an instruction that crosses the window: "
					 "always change the same part"
				       : "";

	for (size_t i = 0; i < pair->len; i++)
		result->int3 |= (result->starts & UINT32_C(1) << i) && pair->new_code[i] == INT3;
	if (result->int3)
		return because(
			result, -EINVAL,
			"the new code has INT3 at a start: it could not be told from a held site");
	if (pair->len > PC_PATCH_MAX)
		return because(result, -E2BIG,
			       "keeps the layout, but is longer than the %d bytes of one patch",
			       PC_PATCH_MAX);
	if (!split)
		return because(result, 0, "one store: inside the window of %u bytes%s", window,
			       more);
	if (fronts > 1)
		return because(result, 0,
			       "pc_patch_starts(): %d instructions start before the split of the "
			       "window of %u bytes, %u before it%s",
			       fronts, window, split, more);
	return because(result, 0, "word protocol: crosses the window of %u bytes, %u before it%s",
		       window, split, more);
}

int pc_check_site(const void *addr, const void *bytes, size_t len, struct pc_check *result)
{
	struct pair pair = { .addr = addr, .len = len };
	const struct layout *was = &pair.old_layout, *is = &pair.new_layout;
	struct pc_status status;
	ssize_t got;
	int ret;

	if (!result)
		return -EINVAL;
	*result = (struct pc_check){ 0 };
	if (!bytes || len < 1 || len > PC_CHECK_MAX)
		return because(result, -EINVAL, "not 1 to %d bytes of new code", PC_CHECK_MAX);
	got = read_code(pair.old_code, addr, sizeof(pair.old_code));
	if (got < 0)
		return because(result, (int)got, "the old code cannot be read by a system call");
	if ((size_t)got < len)
		return because(result, -EFAULT, "the old code is not all mapped, or not readable");
	pair.size = (size_t)got;
	memcpy(pair.new_code, pair.old_code, pair.size);
	memcpy(pair.new_code, bytes, len);
	result->window = pc_get_status(&status) == 0 ? status.atomic_window : WINDOW_KNOWN;
	result->window_split = split_of(pair.addr, pair.len, result->window);
	result->line_split = split_of(pair.addr, pair.len, LINE);
	result->page_split = split_of(pair.addr, pair.len, PAGE);
	if (pair.old_code[0] == INT3)
		return because(result, -EAGAIN,
			       "an INT3 stands there: a patch or a debugger has the site");
	ret = decode_both(&pair, result);
	result->old_starts = was->starts;
	result->new_starts = is->starts;
	result->lost_starts = was->starts & ~is->starts;
	result->after_jump = was->after_jump;
	result->relative = is->relative;
	result->starts = (uint32_t)(was->starts & is->starts & bits_below(pair.len));
	result->old_end = (uint16_t)was->end;
	result->new_end = (uint16_t)is->end;
	result->old_partial = ends_inside(&pair, was, result->window, &result->cut);
	result->new_partial = ends_inside(&pair, is, result->window, &result->cut);
	if (ret < 0)
		return ret;
	if (result->lost_starts || result->old_end != result->new_end)
		return tell_lost(&pair, result);
	return tell_kept(&pair, result);
}
