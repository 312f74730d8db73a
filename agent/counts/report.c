/* SPDX-License-Identifier: MIT */
/*
 * Probes of a pattern, on and off; and their counts as lines of text, names escaped. A report asks
 * for no memory: a signal handler may have called _exit().
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/counts/agent.h"
#include "agent/counts/base.h"
#include "base/text.h"
#include "probes/include/fastinst.h"

#define TRIES 10 /* an object may be unloaded in each */

static _Atomic pid_t reporter;	   /* the process that has still to report; 0: it has */
static pid_t reported_before_exec; /* the process that did so; 0: none */
static const char *folder;	   /* NULL: to stderr */
static off_t before;		   /* the length of its file before that report */
static const struct agent_pattern *patterns;
static size_t patterns_n;

static uint64_t *baseline; /* what report_reset() has taken off */
static size_t baseline_n;

/* --- Probes of a pattern ---------------------------------------------------------------------- */

struct named *agent_named(const char *pattern, uint32_t from)
{
	size_t max = fi_probes() - from;
	struct named *named = malloc(sizeof(*named) + max * sizeof(*named->ids));
	long n = named ? fi_find_from(pattern, from, named->ids, max) : -ENOMEM;

	if (n < 0) {
		free(named);
		errno = (int)-n;
		return NULL;
	}
	named->n = (size_t)n < max ? (size_t)n : max;
	return named;
}

long agent_change(const char *pattern, bool on, uint32_t from)
{
	/* In an attached process the agent sees no dlopen(). */
	long ret = on ? fi_scan() : 0;

	for (int i = 0; i < TRIES && (ret >= 0 || ret == -ENODEV); i++) {
		struct named *named = agent_named(pattern, from);
		size_t n = named ? named->n : 0;

		if (!named)
			return -errno;
		if (!n)
			ret = 0;
		else if (!on)
			ret = fi_deactivate_batch(named->ids, n);
		else
			ret = trace_wanted() ? trace_on(named->ids, n)
					     : fi_activate_batch(named->ids, n, NULL);
		free(named);
		if (ret >= 0)
			return (long)n;
	}
	return ret;
}

/* --- Lines ------------------------------------------------------------------------------------ */

/* Returns behind the field, or end: not all of it fits. */
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

/* Returns the length of the line, or size: not all of it fits. */
static size_t put_line(char *to, size_t size, const uint64_t numbers[2], const char *kind,
		       const char *function, const char *object)
{
	size_t head = (size_t)snprintf(to, size, "%llu\t%llu\t%s\t", (unsigned long long)numbers[0],
				       (unsigned long long)numbers[1], kind);
	char *end = to + size, *at = head < size ? to + head : end;

	at = put_field(at, end, function, '\t');
	return (size_t)(put_field(at, end, object, '\n') - to);
}

/* Returns 0 where the report does not have the probe. */
static size_t put_probe(char *to, size_t size, uint32_t id, enum report_kind which)
{
	const uint64_t numbers[] = { fi_count(id) - (id < baseline_n ? baseline[id] : 0),
				     fi_lost(id) };
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
	uint64_t *more = named ? realloc(baseline, (n + 1) * sizeof(*baseline)) : NULL;
	long ret;

	if (!more) {
		free(named);
		return -errno;
	}
	baseline = more;
	for (; baseline_n < n; baseline_n++)
		baseline[baseline_n] = 0;
	for (size_t i = 0; i < named->n; i++)
		baseline[named->ids[i]] = fi_count(named->ids[i]);
	ret = (long)named->n;
	free(named);
	return ret;
}

size_t report_fill(uint32_t *next, const struct named *named, char *block, size_t size,
		   enum report_kind which)
{
	size_t n = named ? named->n : fi_probes(), used = 0;

	for (; *next < n; (*next)++) {
		size_t left = size - used;
		size_t len =
			put_probe(block + used, left, named ? named->ids[*next] : *next, which);

		if (len >= left && used)
			return used;
		/* A line that is longer than the block is left out. */
		used += len < left ? len : 0;
	}
	return used;
}

static bool report_lines(int fd)
{
	static char block[65536]; /* the longest line */
	uint32_t next = 0;
	bool whole = true;
	size_t len;

	while (whole && (len = report_fill(&next, NULL, block, sizeof(block), REPORT_RUN)))
		whole = write_all(fd, block, len);
	for (size_t i = 0; i < patterns_n && folder && whole; i++) {
		len = put_line(block, sizeof(block), (uint64_t[]){ patterns[i].matched, 0 },
			       "pattern", patterns[i].text, "");
		whole = len == sizeof(block) || write_all(fd, block, len);
	}
	return whole;
}

void report_begin(const char *to, const struct agent_pattern *asked, size_t n)
{
	patterns = asked;
	patterns_n = n;
	folder = copy_folder(to);
	atomic_store_explicit(&reporter, getpid(), memory_order_relaxed);
}

void report_forked(void)
{
	baseline_n = 0;
	atomic_store_explicit(&reporter, getpid(), memory_order_relaxed);
}

/* Not in the child of vfork(), which sees its parent's counts. */
static bool is_mine(void)
{
	pid_t me = getpid();

	return atomic_compare_exchange_strong(&reporter, &me, 0);
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
	reported_before_exec = getpid();
	write_counts();
}

void report_back(void)
{
	if (!folder || reported_before_exec != getpid())
		return;
	reported_before_exec = 0;
	remove_report(folder, before);
	report_forked();
}
