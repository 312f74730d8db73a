/* SPDX-License-Identifier: MIT */
/*
 * The compiler lists such calls nowhere. A site is an E8 or E9 that
 *
 *  1. leads to the function that is looked for, or to a jump through a slot where the loader puts
 *     its address: an entry of the PLT; and
 *  2. is an instruction: the function that it lies in, from its symbol to its end, comes out as
 *     instructions, of which one starts there. The same bytes inside of another are no site.
 *
 * Before the probe is made, the call becomes a NOP, and the jump a RET: one instruction for one,
 * so it does not matter who runs it. A jump is turned on as a jump: the trampoline comes back to
 * who called the function, as the RET does.
 *
 * The middle of a function is no place for a CALL of ours where the red zone is in use. Here the
 * compiler has put a CALL itself, so it is not.
 */
#include "probes/calls/calls.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <patchcore/batch.h>
#include <patchcore/mapping.h>

#include "probes/calls/starts.h"

#define CALL	  0xe8
#define JMP	  0xe9
#define SITE_LEN  5
#define SLOTS_MAX 8  /* of one function in one object */
#define ENTRY_LEN 16 /* of the PLT */

static const uint8_t nop5[SITE_LEN] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
static const uint8_t ret5[SITE_LEN] = { 0xc3, 0x0f, 0x1f, 0x40, 0x00 };

/* Where calls lead to. */
struct slot {
	uintptr_t at;
	bool is_code; /* the function itself is there, not its address */
	enum fi_kind kind;
	const char *reason;
};

struct site {
	uint8_t *at;
	bool tail;
	enum fi_kind kind;
	const struct elf_symbol *function;
	const char *reason;
};

struct place {
	struct object *object;
	struct slot slots[1 + CALLS_MAX * SLOTS_MAX];
	size_t slots_n;
	struct site *sites;
	size_t n, room;
};

/* --- Which calls ------------------------------------------------------------------------------ */

static void find_slots(struct place *place, const struct calls *calls, const struct elf *elf,
		       const struct elf_symbols *symbols)
{
	uint64_t found[SLOTS_MAX];

	if (calls->direct && object_covers(place->object, (uintptr_t)calls->direct, 1, PF_X))
		place->slots[place->slots_n++] = (struct slot){
			.at = (uintptr_t)calls->direct,
			.is_code = true,
			.kind = calls->to[0].kind,
			.reason =
				calls->refuse(place->object, symbols, calls->to[0].function, NULL),
		};
	for (size_t i = 0; i < calls->n; i++) {
		const char *function = calls->to[i].function;
		size_t n = elf_slots(elf, function, found, SLOTS_MAX);

		for (size_t k = 0; k < n; k++) {
			uintptr_t at = place->object->base + found[k];

			if (!object_covers(place->object, at, sizeof(void *), PF_R))
				continue;
			place->slots[place->slots_n++] = (struct slot){
				.at = at,
				.kind = calls->to[i].kind,
				.reason = calls->refuse(place->object, symbols, function,
							(const void *)at),
			};
		}
	}
}

static const struct slot *find_slot(const struct place *place, uintptr_t at, bool is_code)
{
	for (size_t i = 0; i < place->slots_n; i++)
		if (place->slots[i].at == at && place->slots[i].is_code == is_code)
			return &place->slots[i];
	return NULL;
}

/* An entry of the PLT: ENDBR64 and BND where there are any, then a jump through a slot. */
static const struct slot *slot_of(const struct place *place, uintptr_t entry)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	const uint8_t *code = (const uint8_t *)entry;
	int32_t rel;

	if (!object_covers(place->object, entry, ENTRY_LEN, PF_X | PF_R))
		return NULL;
	if (!memcmp(code, endbr64, sizeof(endbr64)))
		code += sizeof(endbr64);
	if (*code == 0xf2)
		code++;
	if (code[0] != 0xff || code[1] != 0x25)
		return NULL;
	memcpy(&rel, code + 2, sizeof(rel));
	return find_slot(place, (uintptr_t)code + 6 + (uintptr_t)(intptr_t)rel, false);
}

static const struct slot *leads_to(const struct place *place, const uint8_t *code)
{
	const struct slot *slot;
	uintptr_t target;
	int32_t rel;

	if (*code != CALL && *code != JMP)
		return NULL;
	memcpy(&rel, code + 1, sizeof(rel));
	target = (uintptr_t)code + SITE_LEN + (uintptr_t)(intptr_t)rel;
	slot = find_slot(place, target, true);
	return slot ? slot : slot_of(place, target);
}

static int add_site(struct place *place, const struct site *site)
{
	struct site *more;

	if (place->n == place->room) {
		place->room = place->room ? 2 * place->room : 64;
		more = realloc(place->sites, place->room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		place->sites = more;
	}
	place->sites[place->n++] = *site;
	return 0;
}

static const char *refusal(const struct slot *slot, int error)
{
	if (slot->reason)
		return slot->reason;
	if (error == -ENOTSUP)
		return "this library was built without Zydis, which tells instructions apart";
	return error ? "its function does not come out as instructions" : NULL;
}

static int take_sites(struct place *place, const struct elf_symbol *function, uint8_t *code,
		      size_t first)
{
	bool *starts = calloc(function->size, sizeof(*starts));
	int error, ret = 0;

	if (!starts)
		return -ENOMEM;
	error = calls_starts(code, function->size, starts);
	for (size_t i = first; i + SITE_LEN <= function->size && !ret; i++) {
		const struct slot *slot = error || starts[i] ? leads_to(place, code + i) : NULL;
		struct site site = { .at = code + i, .function = function };

		if (!slot)
			continue;
		site.tail = code[i] == JMP;
		site.kind = slot->kind;
		site.reason = refusal(slot, error);
		ret = add_site(place, &site);
	}
	free(starts);
	return ret;
}

/* Most functions of most objects have no such bytes, and need not be decoded. */
static int scan_function(struct place *place, const struct elf_symbol *function)
{
	uintptr_t start = place->object->base + function->addr;
	uint8_t *code = (uint8_t *)start;

	if (!object_covers(place->object, start, function->size, PF_X | PF_R))
		return 0;
	for (size_t i = 0; i + SITE_LEN <= function->size; i++)
		if (leads_to(place, code + i))
			return take_sites(place, function, code, i);
	return 0;
}

static int scan(struct place *place, const struct elf_symbols *symbols)
{
	uint64_t end = 0;
	int ret = 0;

	for (size_t i = 0; i < symbols->n && !ret; i++) {
		const struct elf_symbol *function = &symbols->symbol[i];

		/* Another name of the same code. */
		if (function->addr < end)
			continue;
		ret = scan_function(place, function);
		if (function->size <= UINT64_MAX - function->addr)
			end = function->addr + function->size;
	}
	return ret;
}

/* --- Off, and probes -------------------------------------------------------------------------- */

static const uint8_t *off_bytes(const struct site *site)
{
	return site->tail ? ret5 : nop5;
}

/* One that cannot be changed is refused by the core: other bytes stand there. */
static int turn_off(const struct place *place)
{
	struct pc_op *ops;
	bool is_open;
	size_t span, n = 0;

	if (!place->n)
		return 0;
	ops = calloc(place->n, sizeof(*ops));
	if (!ops)
		return -ENOMEM;
	for (size_t i = 0; i < place->n; i++)
		if (!place->sites[i].reason)
			ops[n++] = (struct pc_op){ .addr = place->sites[i].at,
						   .bytes = off_bytes(&place->sites[i]),
						   .len = SITE_LEN };
	span = (size_t)(place->sites[place->n - 1].at + SITE_LEN - place->sites[0].at);
	is_open = n && !pc_text_open(place->sites[0].at, span);
	if (n)
		pc_patch_batch(ops, n);
	if (is_open)
		pc_text_close(place->sites[0].at, span);
	free(ops);
	return 0;
}

static const char *name_of(const struct calls *calls, const struct place *place,
			   const struct site *site)
{
	uintptr_t start = place->object->base + site->function->addr;
	char *name;

	if (!calls->offsets)
		return object_string(site->function->name);
	return asprintf(&name, "%s+0x%zx", site->function->name,
			(size_t)((uintptr_t)site->at - start)) < 0
		       ? NULL
		       : name;
}

static int add_probe(const struct calls *calls, const struct place *place, const struct site *site)
{
	struct probe probe = {
		.provider = calls->provider,
		.object = place->object,
		.name = name_of(calls, place, site),
		.kind = site->kind,
		.site = site->at,
		.len = SITE_LEN,
		.reason = site->reason,
	};

	if (!probe.name)
		return -ENOMEM;
	memcpy(probe.off, off_bytes(site), SITE_LEN);
	return probe_add(&probe, NULL);
}

int calls_discover(const struct calls *calls, struct object *object, const void *image, size_t size)
{
	struct place place = { .object = object };
	struct elf_symbols symbols;
	struct elf elf;
	int ret;

	if (!elf_open(&elf, image, size))
		return 0;
	ret = elf_functions(&elf, &symbols);
	if (ret)
		return ret;
	find_slots(&place, calls, &elf, &symbols);
	if (place.slots_n)
		ret = scan(&place, &symbols);
	if (!ret)
		ret = turn_off(&place);
	for (size_t i = 0; i < place.n && !ret; i++)
		ret = add_probe(calls, &place, &place.sites[i]);
	elf_free(&symbols);
	free(place.sites);
	return ret;
}

int calls_arm(struct probe *probe)
{
	int ret = site_arm_call(probe);

	/* The stub comes back by its return address, whichever way led to it. */
	if (probe->off[0] == ret5[0])
		probe->on[0] = JMP;
	return ret;
}
