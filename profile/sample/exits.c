/* SPDX-License-Identifier: MIT */
/* Exits of functions: which belong to which entries, by their names; and exits on and off. */
#include "profile/sample/sample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct exit_site {
	struct fi_probe probe;
	size_t len; /* of the function's name, without .cold */
};

static uint32_t all[FI_PROBES_MAX]; /* exits that belong to entries */
static uint32_t closed[FI_PROBES_MAX];
static size_t all_n;
static struct group groups[FI_PROBES_MAX];
static size_t groups_n;

static void note_site(struct exit_site *site, uint32_t id)
{
	const char *part;

	fi_get(id, &site->probe);
	part = strstr(site->probe.function, ".cold");
	site->len = part ? (size_t)(part - site->probe.function) : strlen(site->probe.function);
}

static int by_function(const struct exit_site *one, const struct exit_site *two)
{
	int order = strcmp(one->probe.object, two->probe.object);

	if (!order)
		order = strcmp(one->probe.provider, two->probe.provider);
	if (!order)
		order = (one->len > two->len) - (one->len < two->len);
	return order ? order : memcmp(one->probe.function, two->probe.function, one->len);
}

static int by_address(const void *a, const void *b)
{
	const struct exit_site *one = a, *two = b;
	int order = by_function(one, two);

	if (order)
		return order;
	return (one->probe.address > two->probe.address) -
	       (one->probe.address < two->probe.address);
}

static void link_site(struct group *group, uint32_t *first, uint32_t id)
{
	watches[id].group = group;
	watches[id].next = *first;
	*first = id;
}

static void link_exit(struct group *group, uint32_t id, uint32_t entry)
{
	link_site(group, &group->exits, id);
	watches[id].entry = entry;
	store_relaxed(&watches[id].state, WATCH_OVER);
	all[all_n++] = id;
}

/* The entry of an exit. Of static functions of one name: the last that starts before the exit. */
static uint32_t entry_of(const struct exit_site *site, size_t n, size_t exit)
{
	uint32_t entry = NO_PROBE;

	for (size_t i = 0; i < n; i++)
		if (site[i].probe.kind == FI_ENTRY && (i < exit || entry == NO_PROBE))
			entry = site[i].probe.id;
	return entry;
}

/* Link the sites of one name, if there are both entries and exits. */
static void make_group(const struct exit_site *site, size_t n)
{
	struct group *group = &groups[groups_n];
	size_t entries = 0;

	for (size_t i = 0; i < n; i++)
		entries += site[i].probe.kind == FI_ENTRY;
	if (!entries || entries == n)
		return;
	groups_n++;
	*group = (struct group){ NO_PROBE, NO_PROBE };
	for (size_t i = 0; i < n; i++) {
		const struct fi_probe *probe = &site[i].probe;

		if (probe->kind == FI_EXIT) {
			link_exit(group, probe->id, entry_of(site, n, i));
			continue;
		}
		link_site(group, &group->entries, probe->id);
		watches[probe->id].hooks = !strcmp(probe->provider, "cyg");
	}
}

long exits_find(const uint32_t *entries, size_t n, uint32_t first)
{
	uint32_t end = fi_probes();
	size_t sites = 0, next;
	struct exit_site *site = calloc(n + end + 1, sizeof(*site));
	size_t before = groups_n;

	if (!site)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		note_site(&site[sites++], entries[i]);
	for (uint32_t id = first; id < end; id++) {
		note_site(&site[sites], id);
		sites += site[sites].probe.kind == FI_EXIT && site[sites].probe.state != FI_REFUSED;
	}
	qsort(site, sites, sizeof(*site), by_address);
	for (size_t i = 0; i < sites; i = next) {
		for (next = i + 1; next < sites && !by_function(&site[i], &site[next]); next++)
			;
		make_group(site + i, next - i);
	}
	free(site);
	return (long)(groups_n - before);
}

long exits_turn_on(const uint32_t *entries, size_t n)
{
	size_t found = 0;
	int ret = 0;

	for (size_t i = 0; i < n; i++) {
		const struct group *group = watches[entries[i]].group;

		for (uint32_t id = group ? group->exits : NO_PROBE; id != NO_PROBE;
		     id = watches[id].next) {
			uint64_t state = atomic_load(&watches[id].state);

			if ((state & WATCH_LOW) == WATCH_OVER && watch_next(&watches[id], state))
				closed[found++] = id;
		}
	}
	if (found)
		ret = fi_activate_how(closed, found, watch_exit, FI_KEEPS_VECTORS);
	return ret < 0 ? ret : (long)found;
}

static size_t find_closed_exits(void)
{
	size_t n = 0;

	for (size_t i = 0; i < all_n; i++)
		if ((atomic_load(&watches[all[i]].state) & WATCH_LOW) == WATCH_OVER)
			closed[n++] = all[i];
	return n;
}

int exits_turn_all_on(void)
{
	return fi_activate_how(closed, find_closed_exits(), watch_exit, FI_KEEPS_VECTORS);
}

int exits_turn_back_off(void)
{
	return fi_deactivate_batch(closed, find_closed_exits());
}

int exits_turn_all_off(void)
{
	return fi_deactivate_batch(all, all_n);
}

void exits_forget(void)
{
	for (size_t i = 0; i < all_n; i++)
		watches[all[i]].group = NULL;
	all_n = groups_n = 0;
}

void exits_reset_in_child(void)
{
	for (size_t i = 0; i < all_n; i++)
		store_relaxed(&watches[all[i]].state, WATCH_OVER);
}
