/* SPDX-License-Identifier: MIT */
/*
 * Counts as lines of text, names escaped. No memory is asked for: a signal handler may have called
 * _exit().
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/agent/agent.h"
#include "probes/agent/base.h"
#include "probes/include/fastinst.h"
#include "probes/text/text.h"

static _Atomic pid_t owner; /* who has not reported yet; 0: it has */
static pid_t imaged;	    /* who has reported before another program was to be executed */
static const char *folder;  /* NULL: to stderr */
static off_t before;	    /* the length of its file before that */
static const struct wish *wishes;
static size_t wishes_n;

static uint64_t *base; /* counts that are not told any more */
static size_t based;

/* The end, or that of the room: not all of it fits. */
static char *put_field(char *to, char *end, const char *text, char after)
{
	char piece[TEXT_PIECE];
	size_t n;

	while (to < end && (n = text_piece(piece, text))) {
		to = stpncpy(to, piece, (size_t)(end - to));
		text += n;
	}
	if (to < end)
		*to++ = after;
	return to;
}

/* How long it is, or size: not all of it fits. */
static size_t put_line(char *to, size_t size, const uint64_t numbers[2], const char *kind,
		       const char *function, const char *object)
{
	size_t head = (size_t)snprintf(to, size, "%llu\t%llu\t%s\t",
				       (unsigned long long)numbers[0],
				       (unsigned long long)numbers[1], kind);
	char *end = to + size, *at = head < size ? to + head : end;

	at = put_field(at, end, function, '\t');
	return (size_t)(put_field(at, end, object, '\n') - to);
}

/* 0: the probe is none of those. */
static size_t put_probe(char *to, size_t size, uint32_t id, enum report which)
{
	const uint64_t numbers[] = { fi_count(id) - (id < based ? base[id] : 0), fi_lost(id) };
	bool was_run = numbers[0] || numbers[1];
	struct fi_probe probe;

	if ((!was_run && which == REPORT_RUN) || fi_get(id, &probe) < 0)
		return 0;
	if (!was_run && probe.state != FI_ON && (which == REPORT_ON || probe.state != FI_OFF))
		return 0;
	return put_line(to, size, numbers, kind_name(probe.kind), probe.function, probe.object);
}

long report_reset(const char *pattern)
{
	struct named *named = agent_named(pattern, 0);
	size_t n = fi_probes();
	uint64_t *more = named ? realloc(base, (n + 1) * sizeof(*base)) : NULL;
	long ret;

	if (!more) {
		free(named);
		return -errno;
	}
	base = more;
	for (; based < n; based++)
		base[based] = 0;
	for (size_t i = 0; i < named->n; i++)
		base[named->ids[i]] = fi_count(named->ids[i]);
	ret = (long)named->n;
	free(named);
	return ret;
}

size_t report_fill(uint32_t *next, const struct named *named, char *block, size_t size,
		   enum report which)
{
	size_t n = named ? named->n : fi_probes(), used = 0;

	for (; *next < n; (*next)++) {
		size_t left = size - used;
		size_t len = put_probe(block + used, left, named ? named->ids[*next] : *next, which);

		if (len >= left && used)
			return used;
		/* One that does not fit at all is left out. */
		used += len < left ? len : 0;
	}
	return used;
}

static bool report_lines(int fd)
{
	static char block[65536]; /* a line has at most */
	uint32_t next = 0;
	bool whole = true;
	size_t len;

	while (whole && (len = report_fill(&next, NULL, block, sizeof(block), REPORT_RUN)))
		whole = write_all(fd, block, len);
	for (size_t i = 0; i < wishes_n && folder && whole; i++) {
		len = put_line(block, sizeof(block), (uint64_t[]){ wishes[i].matched, 0 },
			       "pattern", wishes[i].pattern, "");
		whole = len == sizeof(block) || write_all(fd, block, len);
	}
	return whole;
}

void report_begin(const char *to, const struct wish *patterns, size_t n)
{
	wishes = patterns;
	wishes_n = n;
	folder = copy_folder(to);
	atomic_store_explicit(&owner, getpid(), memory_order_relaxed);
}

void report_forked(void)
{
	based = 0;
	atomic_store_explicit(&owner, getpid(), memory_order_relaxed);
}

/* The child of vfork() has its parent's counts. */
static bool is_mine(void)
{
	pid_t me = getpid();

	return atomic_compare_exchange_strong(&owner, &me, 0);
}

static void write_counts(void)
{
	struct report_file file;

	if (!open_report(&file, folder))
		return;
	before = file.size;
	close_report(&file, report_lines(file.fd));
}

void report_final(void)
{
	struct write_signals signals;

	if (!is_mine())
		return;
	if (folder) {
		write_counts();
		return;
	}
	block_write_signals(&signals);
	report_lines(STDERR_FILENO);
	restore_write_signals(&signals);
}

void report_image(void)
{
	if (!folder || !is_mine())
		return;
	imaged = getpid();
	write_counts();
}

void report_back(void)
{
	if (!folder || imaged != getpid())
		return;
	imaged = 0;
	remove_report(folder, before);
	report_forked();
}
