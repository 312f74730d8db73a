/* SPDX-License-Identifier: MIT */
/*
 * Which functions are profiled, as objects come and go.
 */
#include "profile/sampler/epochs.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "agent/counts/base.h"
#include "base/text.h"
#include "profile/sample/pages.h"

static uint32_t found[FI_PROBES_MAX]; /* probes that a pattern names */

static void take_function(uint32_t id, size_t *taken)
{
	struct fi_probe probe;

	if (id < known_probes || function_states[id].watched || fi_get(id, &probe) < 0 ||
	    probe.kind != FI_ENTRY || price_is_own(probe.address) ||
	    (asked.visits && pin_object(probe.address) < 0))
		return;
	pages_note(probe.object, probe.address);
	function_states[id].watched = true;
	reopened[(*taken)++] = id;
}

static void take_pattern(const char *pattern, uint32_t n, size_t *taken)
{
	long matches = fi_find_from(pattern, known_probes, found, n);

	for (long i = 0; i < matches && i < (long)n; i++)
		take_function(found[i], taken);
}

/* Exits are turned on and off with their entries. */
static void take_exits(size_t taken)
{
	long functions = asked.no_times ? 0 : exits_find(reopened, taken, known_probes);

	if (functions > 0)
		account.with_exits += (uint64_t)functions;
}

void functions_watch(uint32_t n)
{
	char *copy = strdup(asked.functions), *rest = copy, *pattern;
	size_t taken = 0;

	while (copy && (pattern = text_word(&rest)))
		if (*pattern)
			take_pattern(pattern, n, &taken);
	pages_open();
	take_exits(taken);
	windows_activate(reopened, taken);
	known_probes = n;
	free(copy);
}

/* A probe whose object comes again is on if it was, and begins a new epoch. */
static void follow_object(uint32_t id)
{
	struct function_state *function = &function_states[id];
	struct fi_probe probe;

	if ((!function->watched && !function->gone) || fi_get(id, &probe) < 0)
		return;
	function->opened &= !function->gone;
	function->gone = probe.state == FI_GONE;
	function->watched = !function->gone;
}

void functions_scan(void)
{
	uint32_t n;

	fi_scan();
	n = fi_probes();
	for (uint32_t id = 0; id < known_probes; id++)
		follow_object(id);
	if (n > known_probes)
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
