/* SPDX-License-Identifier: MIT */
/*
 * Sites of a file. Providers find sites in loaded objects, so they look at a copy of the file that
 * is laid out and relocated as the loader does it.
 */
#include "commands/fastinst/sites.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "agent/counts/base.h"
#include "base/array.h"
#include "probes/entries/survey.h"
#include "probes/providers/branch.h"

#define SPAN_MAX (UINT64_C(1) << 31) /* from the first to the last byte in memory */

static const struct provider *const providers[] = {
	&patchable_provider,
	&marker_provider,
	&blocks_provider,
	&hooks_provider,
};

/* The largest boundary that so many bytes cross, 8 to 4096; 0: they cross none. */
static unsigned find_boundary(uint64_t addr, unsigned len)
{
	for (unsigned size = 4096; size >= 8; size /= 2)
		if (addr / size != (addr + len - 1) / size)
			return size;
	return 0;
}

/* Takes site.name, which was allocated. @at: the first byte that a change replaces */
static int add_site(struct listed_sites *sites, struct listed_site site, uint64_t at)
{
	int ret = -ENOMEM;

	site.crosses = find_boundary(at, site.len);
	if (site.name)
		ret = ARRAY_ADD(sites->site, sites->n, site);
	if (ret)
		free(site.name);
	return ret;
}

/* --- Probes ----------------------------------------------------------------------------------- */

static int add_probe(struct listed_sites *sites, const struct probe *probe)
{
	uint64_t addr = (uintptr_t)probe->site - sites->object.base;

	return add_site(sites,
			(struct listed_site){ .addr = addr,
					      .len = probe->len,
					      .kind = kind_name(probe->kind),
					      .provider = probe->provider->name,
					      .name = strdup(probe->name ? probe->name : ""),
					      .args = probe->args,
					      .reason = probe->reason },
			addr);
}

static int find_probes(struct listed_sites *sites)
{
	struct object *object = &sites->object;
	struct probe *probe;
	int ret = 0;

	for (size_t i = 0; i < sizeof(providers) / sizeof(*providers) && !ret; i++)
		ret = providers[i]->discover(object, &sites->elf);
	while ((probe = object->probes)) {
		if (!ret)
			ret = add_probe(sites, probe);
		object->probes = probe->sibling;
		free((char *)probe->name);
		free(probe);
	}
	return ret;
}

/* --- Branches and calls by choice: no probes -------------------------------------------------- */

static int add_choice(struct listed_sites *sites, const struct branch_entry *entry,
		      const char *kind, const char *reason)
{
	return add_site(sites,
			(struct listed_site){ .addr = entry->site,
					      .len = BRANCH_LEN,
					      .kind = kind,
					      .provider = "branch",
					      .name = strdup(entry->name),
					      .reason = reason },
			entry->site);
}

static int add_branch(const struct branch_entry *entry, void *data)
{
	struct listed_sites *sites = data;

	return add_choice(sites, entry, "branch", branch_refusal(&sites->object, entry));
}

static int add_call(const struct branch_entry *entry, void *data)
{
	struct listed_sites *sites = data;
	bool covered =
		object_covers(&sites->object, sites->object.base + entry->site, BRANCH_LEN, PF_X);

	return add_choice(sites, entry, "call", covered ? NULL : BRANCH_DAMAGED);
}

/* --- The copy --------------------------------------------------------------------------------- */

/* Copies the segments to where the loader would put them. False: the file cannot be loaded. */
static bool lay_out(const struct elf *elf, struct object *object)
{
	Elf64_Phdr segments[ELF_SEGMENTS_MAX];
	size_t n = elf_segments(elf, segments);
	uint8_t *copy;

	*object = (struct object){ .is_file = true, .path = "" };
	for (size_t i = 0; i < n; i++)
		if (segments[i].p_type == PT_LOAD &&
		    (segments[i].p_filesz > segments[i].p_memsz || segments[i].p_memsz > SPAN_MAX ||
		     segments[i].p_vaddr > INT64_MAX ||
		     !elf_inside(elf, segments[i].p_offset, segments[i].p_filesz)))
			return false;
	object_segments(object, segments, n);
	if (object->start >= object->end || object->end - object->start > SPAN_MAX)
		return false;
	copy = mmap(NULL, object->end - object->start, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (copy == MAP_FAILED)
		return false;
	object->base = (uintptr_t)copy - object->start;
	object->end = 0;
	object_segments(object, segments, n);
	for (size_t i = 0; i < n; i++)
		if (segments[i].p_type == PT_LOAD)
			memcpy((void *)(object->base + segments[i].p_vaddr),
			       elf->image + segments[i].p_offset, segments[i].p_filesz);
	return true;
}

/* Symbols of other files are left out. */
static int relocate_copy(const struct elf *elf, const struct object *object)
{
	struct elf_values values;
	int ret = elf_values(elf, &values);

	for (size_t i = 0; i < values.n && !ret; i++) {
		uintptr_t at = object->base + values.value[i].at;
		uint64_t value = object->base + values.value[i].value;

		if (!*values.value[i].name && object_covers(object, at, sizeof(value), 0))
			memcpy((void *)at, &value, sizeof(value));
	}
	free(values.value);
	return ret;
}

static int by_addr(const void *a, const void *b)
{
	const struct listed_site *one = a, *two = b;
	int order = strcmp(one->provider, two->provider);

	if (order)
		return order;
	return one->addr < two->addr ? -1 : one->addr > two->addr;
}

int file_sites_find(struct listed_sites *sites)
{
	struct object *object = &sites->object;
	int ret;

	if (!lay_out(&sites->elf, object))
		return 0;
	ret = relocate_copy(&sites->elf, object);
	if (!ret)
		ret = find_probes(sites);
	if (!ret)
		ret = entries_read(&sites->elf, "fi_branch_sites", add_branch, sites);
	if (!ret)
		ret = entries_read(&sites->elf, "fi_call_sites", add_call, sites);
	munmap((void *)object->start, object->end - object->start);
	if (sites->n)
		qsort(sites->site, sites->n, sizeof(*sites->site), by_addr);
	return ret;
}

int file_sites_read(struct listed_sites *sites, const char *path, bool entries)
{
	struct survey survey = { 0 };
	int ret;

	*sites = (struct listed_sites){ 0 };
	ret = elf_map(&sites->elf, path, ELF_PATCHED);
	sites->mapped = !ret;
	if (ret || !entries)
		return ret ? ret : file_sites_find(sites);
	ret = survey_make(&survey, &sites->elf);
	for (size_t i = 0; i < survey.n && !ret; i++) {
		const struct survey_site *one = &survey.site[i];

		ret = add_site(sites,
			       (struct listed_site){ .addr = one->function,
						     .len = SURVEY_JUMP,
						     .kind = "entry",
						     .provider = "entries",
						     .name = strdup(one->name),
						     .reason = one->reason },
			       one->site);
	}
	survey_free(&survey);
	return ret;
}

void file_sites_free(struct listed_sites *sites)
{
	for (size_t i = 0; i < sites->n; i++)
		free(sites->site[i].name);
	free(sites->site);
	if (sites->mapped)
		elf_unmap(&sites->elf);
	*sites = (struct listed_sites){ 0 };
}
