/* SPDX-License-Identifier: MIT */
#include "patchcore/tests/real/sites.h"

#include <Zydis/Zydis.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "patchcore/tests/real/functions.h"

#define CALL	  0xe8
#define LINE	  64u
#define PAGE	  4096u
#define STUB_SIZE 16u
#define JUMP	  8u		   /* offset in a stub */
#define STUBS	  (4u * SITES_MAX) /* more than sites, to choose from */
#define CODE_SIZE (STUBS * STUB_SIZE)
#define AREA_SIZE (CODE_SIZE + SITES_MAX * sizeof(uint64_t))

/* So far from the code that the top byte of a distance differs, and within reach. */
#define NEAREST	 INT64_C(0x30000000)
#define FURTHEST INT64_C(0x70000000)
#define STRIDE	 INT64_C(0x01000000)

struct finder {
	struct sites *sites;
	ZydisDecoder decoder;
	unsigned window;
};

static bool crosses(const uint8_t *addr, unsigned unit)
{
	return ((uintptr_t)addr & (unit - 1)) + CALL_LEN > unit;
}

static void add_site(struct finder *finder, uint8_t *addr)
{
	struct sites *sites = finder->sites;
	struct site_call *site = &sites->list[sites->count];

	if (sites->count == SITES_MAX)
		return;
	sites->count++;
	site->addr = addr;
	memcpy(site->form[0], addr, CALL_LEN);
	site->straddles_window = crosses(addr, finder->window);
	site->straddles_line = crosses(addr, LINE);
	if (!sites->low || addr < sites->low)
		sites->low = addr;
	if (addr + CALL_LEN > sites->high)
		sites->high = addr + CALL_LEN;
}

/* What a compiler makes of a function has no data in it; stop where it does. */
static void decode(uint8_t *code, size_t size, void *arg)
{
	struct finder *finder = arg;
	ZydisDecodedInstruction insn;

	for (size_t at = 0; at < size; at += insn.length) {
		if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(&finder->decoder, NULL, code + at,
							      size - at, &insn)))
			return;
		if (insn.length == CALL_LEN && code[at] == CALL)
			add_site(finder, code + at);
	}
}

int sites_find(struct sites *sites, const char *object, unsigned window)
{
	struct finder finder = { .sites = sites, .window = window };

	*sites = (struct sites){ .list = calloc(SITES_MAX, sizeof(*sites->list)) };
	if (!sites->list)
		return -ENOMEM;
	ZydisDecoderInit(&finder.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	functions_each(object, decode, &finder);
	return sites->count ? 0 : -ENOENT;
}

static uint8_t *map_at(uintptr_t at)
{
	uint8_t *area = mmap((void *)at, AREA_SIZE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	return area == MAP_FAILED ? NULL : area;
}

/* Below or above, where there is room. */
static uint8_t *map_within_reach(const struct sites *sites)
{
	uintptr_t base = (uintptr_t)sites->low & ~(uintptr_t)(STRIDE - 1);

	for (int64_t far = NEAREST; far < FURTHEST; far += STRIDE) {
		uint8_t *area = (uintptr_t)far < base ? map_at(base - (uintptr_t)far) : NULL;

		if (!area)
			area = map_at(base + (uintptr_t)far);
		if (area)
			return area;
	}
	return NULL;
}

static void put_call(uint8_t code[CALL_LEN], const uint8_t *from, const uint8_t *to)
{
	int32_t distance = (int32_t)(to - (from + CALL_LEN));

	code[0] = CALL;
	memcpy(code + 1, &distance, sizeof(distance));
}

static const uint8_t *target_of(const struct site_call *site)
{
	int32_t distance;

	memcpy(&distance, site->form[0] + 1, sizeof(distance));
	return site->addr + CALL_LEN + distance;
}

static bool all_bytes_differ(const struct site_call *site)
{
	for (unsigned i = 1; i < CALL_LEN; i++)
		if (site->form[0][i] == site->form[1][i])
			return false;
	return true;
}

/* No caller expects flags to last into a function. */
static void put_stub(const struct site_call *site)
{
	static const uint8_t lock_inc[] = { 0xf0, 0x48, 0xff, 0x05 }; /* qword [rip + ...] */
	uint8_t *at = site->stub;
	int32_t distance = (int32_t)((uint8_t *)site->count - (at + JUMP));

	memcpy(at, lock_inc, sizeof(lock_inc));
	memcpy(at + 4, &distance, sizeof(distance));
	put_call(at + JUMP, at + JUMP, target_of(site));
	at[JUMP] = 0xe9; /* jmp */
}

/* The first free stub behind *next from which all bytes differ. */
static bool place(struct site_call *site, uint8_t *area, size_t *next, bool *taken)
{
	for (size_t i = 0; i < STUBS; i++) {
		size_t slot = (*next + i) % STUBS;

		site->stub = area + slot * STUB_SIZE;
		put_call(site->form[1], site->addr, site->stub);
		if (taken[slot] || !all_bytes_differ(site))
			continue;
		taken[slot] = true;
		*next = (slot + 1) % STUBS;
		return true;
	}
	return false;
}

static int fill_stubs(struct sites *sites, uint8_t *area, bool *taken)
{
	_Atomic(uint64_t) *counts = (_Atomic(uint64_t) *)(void *)(area + CODE_SIZE);
	size_t next = 0;

	for (size_t i = 0; i < sites->count; i++) {
		sites->list[i].count = &counts[i];
		if (!place(&sites->list[i], area, &next, taken))
			return -ENOSPC;
		put_stub(&sites->list[i]);
	}
	return mprotect(area, CODE_SIZE, PROT_READ | PROT_EXEC) < 0 ? -errno : 0;
}

int sites_add_stubs(struct sites *sites)
{
	uint8_t *area = map_within_reach(sites);
	bool *taken = calloc(STUBS, sizeof(*taken));
	int ret = area && taken ? fill_stubs(sites, area, taken) : -ENOMEM;

	free(taken);
	return ret;
}

void site_break_stub(const struct site_call *site)
{
	static const uint8_t return_0[] = { 0x31, 0xc0, 0xc3 };
	uintptr_t page = (uintptr_t)site->stub & ~(uintptr_t)(PAGE - 1);

	mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
	memcpy(site->stub + JUMP, return_0, sizeof(return_0));
}
