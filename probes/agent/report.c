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

struct sink {
	int fd;
	bool failed;
	size_t used;
	char text[16384];
};

static void flush(struct sink *to)
{
	if (!to->failed)
		to->failed = !file_put(to->fd, to->text, to->used);
	to->used = 0;
}

static void put(struct sink *to, const char *text)
{
	size_t len = strlen(text);

	if (to->used + len > sizeof(to->text))
		flush(to);
	memcpy(to->text + to->used, text, len);
	to->used += len;
}

static void put_name(struct sink *to, const char *name)
{
	char piece[TEXT_PIECE];
	size_t n;

	while ((n = text_piece(piece, name))) {
		put(to, piece);
		name += n;
	}
}

static const char *kind_name(enum fi_kind kind)
{
	static const char *const names[] = { "entry", "exit", "marker", "branch", "call", "block" };

	return kind < sizeof(names) / sizeof(*names) ? names[kind] : "unknown";
}

static void put_line(struct sink *to, uint32_t id, bool all)
{
	uint64_t count = fi_count(id), lost = fi_lost(id);
	struct fi_probe probe;
	char numbers[64];

	if (!count && !lost && !all)
		return;
	if (fi_get(id, &probe) < 0 || (!count && !lost && probe.state != FI_ON))
		return;
	snprintf(numbers, sizeof(numbers), "%llu\t%llu\t", (unsigned long long)count,
		 (unsigned long long)lost);
	put(to, numbers);
	put(to, kind_name(probe.kind));
	put(to, "\t");
	put_name(to, probe.function);
	put(to, "\t");
	put_name(to, probe.object);
	put(to, "\n");
}

bool report_lines(int fd, bool all)
{
	struct sink to = { .fd = fd };
	uint32_t n = fi_probes();

	for (uint32_t id = 0; id < n; id++)
		put_line(&to, id, all);
	flush(&to);
	return !to.failed;
}

void report_forked(void)
{
	atomic_store_explicit(&owner, getpid(), memory_order_relaxed);
}

void report_final(void)
{
	const char *folder = getenv("FASTINST_OUTPUT");
	pid_t expected = getpid();
	struct file file;

	/* The child of vfork() has its parent's counts. */
	if (!atomic_compare_exchange_strong(&owner, &expected, 0))
		return;
	if (!folder) {
		quiet_begin(&file.quiet);
		report_lines(STDERR_FILENO, false);
		quiet_end(&file.quiet);
	} else if (file_open(&file, folder)) {
		file_close(&file, report_lines(file.fd, false));
	}
}

long report_begin_exec(void)
{
	const char *folder = getenv("FASTINST_OUTPUT");
	struct file file;

	if (!folder || atomic_load_explicit(&owner, memory_order_relaxed) != getpid() ||
	    !file_open(&file, folder))
		return -1;
	file_close(&file, report_lines(file.fd, false));
	return file.size;
}

void report_end_exec(long before)
{
	int error = errno;

	if (before >= 0)
		file_take_back(getenv("FASTINST_OUTPUT"), before);
	errno = error;
}
