/* SPDX-License-Identifier: MIT */
/*
 * pc_check_site(): decode old and new code side by side, and compare.
 */
#include "patchcore/check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "patchcore/check/decode.h"
#include "patchcore/check/read.h"
#include "patchcore/patchcore.h"

#define INT3	     0xcc
#define STRETCH	     64u /* bytes looked at: one for each bit of a mask */
#define UNTIL_MAX    (STRETCH - DECODE_INSN_MAX)
#define WINDOW_KNOWN 8u /* AMD APM vol. 2, 7.6.1 */
#define LINE	     64u
#define PAGE	     4096u
#define FIRST_NONE   64u

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

static unsigned first_of(uint64_t mask)
{
	return mask ? (unsigned)__builtin_ctzll(mask) : FIRST_NONE;
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

static unsigned window_here(void)
{
	struct pc_status status;

	return pc_get_status(&status) == 0 ? status.atomic_window : WINDOW_KNOWN;
}

static void note_splits(const struct pair *pair, struct pc_check *result)
{
	result->window = window_here();
	result->window_split = split_of(pair->addr, pair->len, result->window);
	result->line_split = split_of(pair->addr, pair->len, LINE);
	result->page_split = split_of(pair->addr, pair->len, PAGE);
}

/* The instruction that is on both sides of `at`: its length or 0, and where it starts. */
static size_t spanning(const struct layout *layout, size_t at, size_t *start)
{
	uint64_t before = layout->starts & bits_below(at);

	*start = before ? 63u - (size_t)__builtin_clzll(before) : 0;
	return *start + layout->len[*start] > at ? layout->len[*start] : 0;
}

static bool is_cut(const struct pair *pair, const struct layout *layout, unsigned window)
{
	size_t start, len = spanning(layout, pair->len, &start);

	return split_of(pair->addr + start, len, window) > 0;
}

static void note_layouts(const struct pair *pair, struct pc_check *result)
{
	const struct layout *was = &pair->old_layout, *is = &pair->new_layout;
	size_t ignored;

	result->old_starts = was->starts;
	result->new_starts = is->starts;
	result->lost_starts = was->starts & ~is->starts;
	result->after_jump = was->after_jump;
	result->relative = is->relative;
	result->starts = (uint32_t)(was->starts & is->starts & bits_below(pair->len));
	result->old_end = (uint16_t)was->end;
	result->new_end = (uint16_t)is->end;
	result->old_partial = spanning(was, pair->len, &ignored) > 0;
	result->new_partial = spanning(is, pair->len, &ignored) > 0;
	result->cut = is_cut(pair, was, result->window) || is_cut(pair, is, result->window);
}

/* Are all starts that are lost those of 1-byte NOPs, and also what stands before them? */
static bool merges_nops(const struct layout *was, uint64_t lost)
{
	uint64_t before = lost >> 1;

	return lost && ((lost | (before & was->starts)) & ~was->nops) == 0 &&
	       (before & ~was->starts) == 0;
}

static int decode_old(struct pair *pair, struct pc_check *result, size_t until)
{
	int ret = decode_layout(&pair->old_layout, pair->old_code, pair->size, until, NULL);
	unsigned at = (unsigned)pair->old_layout.end;

	if (ret == -EFAULT)
		return because(result, ret,
			       "the old instruction at +%u runs into memory that is "
			       "not mapped",
			       at);
	if (ret < 0) {
		result->old_invalid = true;
		return because(result, ret, "the old code has no instruction at +%u", at);
	}
	return 0;
}

static int decode_new(struct pair *pair, struct pc_check *result, size_t until)
{
	struct layout *is = &pair->new_layout;
	int ret = decode_layout(is, pair->new_code, pair->size, until, &pair->old_layout.starts);
	unsigned at = (unsigned)is->end;

	if (ret < 0) {
		result->new_invalid = true;
		return because(result, ret == -EFAULT ? -ENOEXEC : ret,
			       "the new code has no instruction at +%u", at);
	}
	if (is->leaves)
		is->end = pair->old_layout.end;
	return 0;
}

/* Until an instruction ends at the same byte in both, behind the change. */
static int decode_both(struct pair *pair, struct pc_check *result)
{
	size_t until = pair->len;
	int ret;

	do {
		ret = decode_old(pair, result, until);
		if (ret < 0)
			return ret;
		until = pair->old_layout.end;
		ret = decode_new(pair, result, until);
		if (ret < 0)
			return ret;
		if (pair->new_layout.end == until)
			break;
		until = pair->new_layout.end;
	} while (until <= UNTIL_MAX);
	return 0;
}

static int read_pair(struct pair *pair, const void *addr, const void *bytes, size_t len)
{
	ssize_t got = read_code(pair->old_code, addr, sizeof(pair->old_code));

	if (got < 0)
		return (int)got;
	if ((size_t)got < len)
		return -EFAULT;
	pair->addr = addr;
	pair->len = len;
	pair->size = (size_t)got;
	memcpy(pair->new_code, pair->old_code, pair->size);
	memcpy(pair->new_code, bytes, len);
	return 0;
}

static int tell_lost(const struct pair *pair, struct pc_check *result)
{
	unsigned at = first_of(result->lost_starts);

	result->merges_nops = merges_nops(&pair->old_layout, result->lost_starts);
	if (result->merges_nops)
		return because(result, -EILSEQ,
			       "1-byte NOPs become one instruction: a thread at "
			       "+%u would run its middle",
			       at);
	if (at >= pair->len)
		return because(result, -EILSEQ,
			       "the new code runs over the end of the change "
			       "into the instruction at +%u",
			       at);
	if (result->lost_starts & ~result->after_jump)
		return because(result, -EILSEQ,
			       "an instruction starts at +%u in the old code and "
			       "not in the new",
			       at);
	return because(result, -EILSEQ,
		       "a start is lost at +%u, which only a jump from elsewhere "
		       "can reach",
		       at);
}

static const char *caution(const struct pc_check *result)
{
	return result->cut ? "; only part of an instruction that crosses the window: always change "
			     "the same part"
			   : "";
}

static int tell_way(struct pc_check *result)
{
	unsigned split = result->window_split, window = result->window;
	int fronts = __builtin_popcountll(result->starts & bits_below(split));
	const char *more = caution(result);

	if (!split)
		return because(result, 0, "one store: inside the window of %u bytes%s", window,
			       more);
	if (fronts > 1)
		return because(result, 0,
			       "pc_patch_starts(): %d instructions start before the split "
			       "of the window of %u bytes, %u before it%s",
			       fronts, window, split, more);
	return because(result, 0, "word protocol: crosses the window of %u bytes, %u before it%s",
		       window, split, more);
}

static bool has_int3(const struct pair *pair, uint32_t starts)
{
	for (size_t i = 0; i < pair->len; i++)
		if (starts & UINT32_C(1) << i && pair->new_code[i] == INT3)
			return true;
	return false;
}

static int tell_result(const struct pair *pair, struct pc_check *result)
{
	if (result->lost_starts || result->old_end != result->new_end)
		return tell_lost(pair, result);
	result->int3 = has_int3(pair, result->starts);
	if (result->int3)
		return because(result, -EINVAL,
			       "the new code has INT3 at a start: it could not be "
			       "told from a held site");
	if (pair->len > PC_PATCH_MAX)
		return because(result, -E2BIG,
			       "keeps the layout, but is longer than the %d bytes of "
			       "one patch",
			       PC_PATCH_MAX);
	return tell_way(result);
}

static int check_pair(struct pair *pair, struct pc_check *result)
{
	int ret;

	note_splits(pair, result);
	if (pair->old_code[0] == INT3)
		return because(result, -EAGAIN,
			       "an INT3 stands there: a patch or a debugger has "
			       "the site");
	ret = decode_both(pair, result);
	note_layouts(pair, result);
	return ret < 0 ? ret : tell_result(pair, result);
}

int pc_check_site(const void *addr, const void *bytes, size_t len, struct pc_check *result)
{
	struct pair pair = { 0 };
	int ret;

	if (!result)
		return -EINVAL;
	*result = (struct pc_check){ 0 };
	if (!bytes || len < 1 || len > PC_CHECK_MAX)
		return because(result, -EINVAL, "not 1 to %d bytes of new code", PC_CHECK_MAX);
	ret = read_pair(&pair, addr, bytes, len);
	if (ret == -EFAULT)
		return because(result, ret, "the old code is not all mapped, or not readable");
	if (ret < 0)
		return because(result, ret, "the old code cannot be read by a system call");
	return check_pair(&pair, result);
}
