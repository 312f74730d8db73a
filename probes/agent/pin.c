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

#include "probes/include/fastinst.h"

struct pin {
	uintptr_t from, to;
	void *handle; /* NULL: the program itself, which stays anyway */
	bool is_used;
};

static struct pin *pins;
static size_t pins_n;

struct search {
	uintptr_t address;
	struct pin pin;
	uintptr_t base;
	char name[PATH_MAX];
};

static int look_at(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;
	bool found = false;

	(void)size;
	search->pin = (struct pin){ .from = UINTPTR_MAX };
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t from = info->dlpi_addr + part->p_vaddr, to = from + part->p_memsz;

		if (part->p_type != PT_LOAD)
			continue;
		search->pin.from = from < search->pin.from ? from : search->pin.from;
		search->pin.to = to > search->pin.to ? to : search->pin.to;
		found |= search->address >= from && search->address < to;
	}
	if (found) {
		search->base = info->dlpi_addr;
		snprintf(search->name, sizeof(search->name), "%s", info->dlpi_name);
	}
	return found;
}

static void close_handle(void *handle)
{
	((int (*)(void *))dlsym(RTLD_NEXT, "dlclose"))(handle);
}

static bool holds(const struct pin *pin, uintptr_t address)
{
	return address >= pin->from && address < pin->to;
}

/* Of that name, and where it was found: else it has gone, and another came. */
static void *open_same(const struct search *search)
{
	void *handle = dlopen(search->name, RTLD_NOLOAD | RTLD_LAZY);
	struct link_map *map;

	if (!handle)
		return NULL;
	if (!dlinfo(handle, RTLD_DI_LINKMAP, &map) && map->l_addr == search->base)
		return handle;
	close_handle(handle);
	return NULL;
}

int pin_object(const void *address)
{
	struct search search = { .address = (uintptr_t)address };
	struct pin *more;

	/* Those of one object come one after the other. */
	for (size_t i = pins_n; i-- > 0;)
		if (holds(&pins[i], search.address))
			return 0;
	if (!dl_iterate_phdr(look_at, &search))
		return -ENOENT;
	more = realloc(pins, (pins_n + 1) * sizeof(*pins));
	if (!more)
		return -ENOMEM;
	pins = more;
	if (search.name[0]) {
		search.pin.handle = open_same(&search);
		if (!search.pin.handle)
			return -ENOENT;
	}
	pins[pins_n++] = search.pin;
	return 0;
}

int pin_init(void)
{
	fi_hold_objects(pin_object);
	return fi_init();
}

int pin_scan(void)
{
	fi_hold_objects(pin_object);
	return fi_scan();
}

void pin_use(const void *address)
{
	for (size_t i = pins_n; i-- > 0;)
		if (holds(&pins[i], (uintptr_t)address)) {
			pins[i].is_used = true;
			return;
		}
}

void pins_drop(void)
{
	size_t kept = 0;

	for (size_t i = 0; i < pins_n; i++) {
		if (pins[i].is_used)
			pins[kept++] = pins[i];
		else if (pins[i].handle)
			close_handle(pins[i].handle);
	}
	for (pins_n = kept; kept-- > 0;)
		pins[kept].is_used = false;
}
