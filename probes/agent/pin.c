/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "probes/agent/pin.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct pin {
	uintptr_t from, to;
	void *handle; /* NULL: the program itself, which stays anyway */
};

static struct pin *pins;
static size_t pins_n;

struct search {
	uintptr_t address;
	struct pin pin;
	char name[PATH_MAX];
	const void *dynamic; /* two objects may have the same base, but not this */
};

static int look_at(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;
	bool found = false;

	(void)size;
	search->pin = (struct pin){ .from = UINTPTR_MAX };
	search->dynamic = NULL;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t from = info->dlpi_addr + part->p_vaddr, to = from + part->p_memsz;

		if (part->p_type == PT_DYNAMIC)
			search->dynamic = (const void *)from;
		if (part->p_type != PT_LOAD)
			continue;
		search->pin.from = from < search->pin.from ? from : search->pin.from;
		search->pin.to = to > search->pin.to ? to : search->pin.to;
		found |= search->address >= from && search->address < to;
	}
	if (found)
		snprintf(search->name, sizeof(search->name), "%s", info->dlpi_name);
	return found;
}

static bool pin_holds(const struct pin *pin, uintptr_t address)
{
	return address >= pin->from && address < pin->to;
}

static void close_it(void *handle)
{
	int (*close)(void *) = (int (*)(void *))dlsym(RTLD_NEXT, "dlclose");

	close(handle);
}

/*
 * By its name, the only way there is. Once it is held it stays: does it still lie there, or did
 * another of that name come before?
 */
static int hold(struct search *search)
{
	void *handle = dlopen(search->name, RTLD_NOLOAD | RTLD_LAZY);
	const struct link_map *map;

	if (!handle)
		return -ENOENT;
	if (!dl_iterate_phdr(look_at, search) || !search->dynamic ||
	    dlinfo(handle, RTLD_DI_LINKMAP, &map) < 0 || map->l_ld != search->dynamic) {
		close_it(handle);
		return -ENOENT;
	}
	search->pin.handle = handle;
	return 0;
}

int pin_object(const void *address)
{
	struct search search = { .address = (uintptr_t)address };
	struct pin *before = pins, *more;

	/* Those of one object come one after the other. */
	for (size_t i = pins_n; i-- > 0;)
		if (pin_holds(&pins[i], search.address))
			return 0;
	if (!dl_iterate_phdr(look_at, &search))
		return -ENOENT;
	more = malloc((pins_n + 1) * sizeof(*pins));
	if (!more)
		return -ENOMEM;
	for (size_t i = 0; i < pins_n; i++)
		more[i] = pins[i];
	/* A child of any moment has one of them whole. */
	pins = more;
	free(before);
	if (search.name[0] && hold(&search) < 0)
		return -ENOENT;
	pins[pins_n++] = search.pin;
	return 0;
}

void pins_drop(void)
{
	while (pins_n) {
		void *handle = pins[--pins_n].handle;

		if (handle)
			close_it(handle);
	}
}
