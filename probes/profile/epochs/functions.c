/* SPDX-License-Identifier: MIT */
#include "probes/profile/epochs/epochs.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "probes/agent/pin.h"
#include "probes/profile/sample/pages.h"
#include "probes/text/text.h"

static void take_function(uint32_t id, struct reopen *reopen, struct pages_range *range)
{
	struct fi_probe probe;

	if (id < books_known || books[id].watched || fi_get(id, &probe) < 0 ||
	    probe.kind != FI_ENTRY || price_is_own(probe.address) ||
	    (asked.visits && pin_object(probe.address) < 0))
		return;
	pages_note(range, &probe);
	books[id].watched = true;
	reopen->ids[reopen->n++] = id;
}

static void take_pattern(const char *pattern, uint32_t *found, uint32_t n, struct reopen *reopen,
			 struct pages_range *range)
{
	long matches = fi_find_from(pattern, books_known, found, n);

	for (long i = 0; i < matches && i < (long)n; i++)
		take_function(found[i], reopen, range);
}

/* Turned on and off with their entries. */
static void take_exits(const struct reopen *reopen)
{
	long functions = asked.no_times ? 0 : exits_take(reopen->ids, reopen->n, books_known);

	if (functions > 0)
		account.with_exits += (uint64_t)functions;
}

void functions_watch(uint32_t n)
{
	struct reopen reopen = { .ids = calloc(n + 1, sizeof(*reopen.ids)) };
	uint32_t *found = calloc(n + 1, sizeof(*found));
	char *copy = strdup(asked.functions), *rest_of = copy, *pattern;
	struct pages_range range = { 0 };

	if (reopen.ids && found && copy) {
		while ((pattern = text_word(&rest_of)))
			if (*pattern)
				take_pattern(pattern, found, n, &reopen, &range);
		pages_open(range.from, range.to);
		take_exits(&reopen);
		if (reopen.n)
			windows_activate(&reopen);
	}
	books_known = n;
	free(copy);
	free(found);
	free(reopen.ids);
}

/* When it comes again a new epoch begins, and it is on if it was. */
static void follow_object(uint32_t id)
{
	struct book *book = &books[id];
	struct fi_probe probe;

	if ((!book->watched && !book->gone) || fi_get(id, &probe) < 0)
		return;
	book->opened &= !book->gone;
	book->gone = probe.state == FI_GONE;
	book->watched = !book->gone;
}

void functions_scan(void)
{
	uint32_t n;

	fi_scan();
	n = fi_probes();
	for (uint32_t id = 0; id < books_known; id++)
		follow_object(id);
	if (n > books_known)
		functions_watch(n);
}

static int count_loads(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	*(unsigned long long *)data = info->dlpi_adds;
	return 1;
}

void functions_scan_if_loaded(void)
{
	static unsigned long long before;
	unsigned long long now = 0;

	dl_iterate_phdr(count_loads, &now);
	if (now != before)
		functions_scan();
	before = now;
}
