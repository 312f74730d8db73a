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
#include "probes/agent/file.h"
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

/* What does not fit has failed. */
struct sink {
	bool failed;
	size_t used, size;
	char *text;
};

static void put_escaped(struct sink *to, const char *text)
{
	size_t len = strlen(text);

	to->failed |= len > to->size - to->used;
	if (to->failed)
		return;
	memcpy(to->text + to->used, text, len);
	to->used += len;
}

static void put_name(struct sink *to, const char *name)
{
	char piece[TEXT_PIECE];
	size_t n;

	while ((n = text_piece(piece, name))) {
		put_escaped(to, piece);
		name += n;
	}
}

static void put_line(struct sink *to, uint32_t id, enum report which)
{
	uint64_t count = fi_count(id) - (id < based ? base[id] : 0), lost = fi_lost(id);
	struct fi_probe probe;
	char numbers[64];

	if (!count && !lost && which == REPORT_RUN)
		return;
	if (fi_get(id, &probe) < 0)
		return;
	if (!count && !lost && probe.state != FI_ON &&
	    (which == REPORT_ON || probe.state != FI_OFF))
		return;
	snprintf(numbers, sizeof(numbers), "%llu\t%llu\t", (unsigned long long)count,
		 (unsigned long long)lost);
	put_escaped(to, numbers);
	put_escaped(to, kind_name(probe.kind));
	put_escaped(to, "\t");
	put_name(to, probe.function);
	put_escaped(to, "\t");
	put_name(to, probe.object);
	put_escaped(to, "\n");
}

static void put_wish(struct sink *to, const struct wish *wish)
{
	put_escaped(to, wish->matched ? "1\t0\tpattern\t" : "0\t0\tpattern\t");
	put_name(to, wish->pattern);
	put_escaped(to, "\t\n");
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
		struct sink to = { .size = size - used, .text = block + used };

		put_line(&to, named ? named->ids[*next] : *next, which);
		if (to.failed && used)
			return used;
		/* One that does not fit at all is left out. */
		used += to.failed ? 0 : to.used;
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
		whole = file_put(fd, block, len);
	for (size_t i = 0; i < wishes_n && folder && whole; i++) {
		struct sink to = { .size = sizeof(block), .text = block };

		put_wish(&to, &wishes[i]);
		whole = to.failed || file_put(fd, block, to.used);
	}
	return whole;
}

void report_begin(const char *to, const struct wish *patterns, size_t n)
{
	wishes = patterns;
	wishes_n = n;
	folder = file_folder(to);
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

static void write_file(void)
{
	struct file file;

	if (!file_open(&file, folder))
		return;
	before = file.size;
	file_close(&file, report_lines(file.fd));
}

void report_final(void)
{
	struct quiet quiet;

	if (!is_mine())
		return;
	if (folder) {
		write_file();
		return;
	}
	quiet_begin(&quiet);
	report_lines(STDERR_FILENO);
	quiet_end(&quiet);
}

void report_image(void)
{
	if (!folder || !is_mine())
		return;
	imaged = getpid();
	write_file();
}

void report_back(void)
{
	if (!folder || imaged != getpid())
		return;
	imaged = 0;
	file_take_back(folder, before);
	report_forked();
}
