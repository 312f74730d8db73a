/* SPDX-License-Identifier: MIT */
/* Holding objects by dlopen(), so that their probed code is not unloaded. */
#define _GNU_SOURCE
#include "agent/counts/base.h"

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
	uintptr_t from, to; /* of a segment */
	void *handle;	    /* NULL: the program itself, which stays anyway */
	struct pin *next;
};

/* Each is complete before it is listed: a child of any moment has the list. */
static struct pin *pins;

struct pin_search {
	uintptr_t address;
	struct pin pin;
	char name[PATH_MAX];
};

/* Finds the segment that holds the address, and the name of its object. */
static int match_object(struct dl_phdr_info *info, size_t size, void *data)
{
	struct pin_search *search = data;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t from = info->dlpi_addr + part->p_vaddr;

		if (part->p_type != PT_LOAD || search->address - from >= part->p_memsz)
			continue;
		search->pin = (struct pin){ .from = from, .to = from + part->p_memsz };
		snprintf(search->name, sizeof(search->name), "%s", info->dlpi_name);
		return 1;
	}
	return 0;
}

static void close_handle(void *handle)
{
	int (*close)(void *) = (int (*)(void *))dlsym(RTLD_NEXT, "dlclose");

	close(handle);
}

/*
 * Opens the object by its name, since dlopen() takes no address. An opened object stays loaded: so
 * its address is compared then, as another object may have that name.
 */
static int hold_object(struct pin_search *search)
{
	const struct link_map *opened, *there = NULL;
	Dl_info info;

	search->pin.handle = dlopen(search->name, RTLD_NOLOAD | RTLD_LAZY);
	if (!search->pin.handle)
		return -ENOENT;
	if (dladdr1((const void *)search->address, &info, (void **)&there, RTLD_DL_LINKMAP) &&
	    !dlinfo(search->pin.handle, RTLD_DI_LINKMAP, &opened) && opened == there)
		return 0;
	close_handle(search->pin.handle);
	return -ENOENT;
}

int pin_object(const void *address)
{
	struct pin_search search = { .address = (uintptr_t)address };
	struct pin *pin = pins;

	/* Those of one object come one after the other. */
	for (; pin; pin = pin->next)
		if (search.address >= pin->from && search.address < pin->to)
			return 0;
	if (!dl_iterate_phdr(match_object, &search))
		return -ENOENT;
	pin = malloc(sizeof(*pin));
	if (!pin)
		return -ENOMEM;
	if (search.name[0] && hold_object(&search) < 0) {
		free(pin);
		return -ENOENT;
	}
	*pin = search.pin;
	pin->next = pins;
	pins = pin;
	return 0;
}

void pins_drop(void)
{
	while (pins) {
		struct pin *pin = pins;

		pins = pin->next;
		if (pin->handle)
			close_handle(pin->handle);
		free(pin);
	}
}
