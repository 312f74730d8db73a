/* SPDX-License-Identifier: MIT */
/* How the trampoline, entry.S, saves vectors on this machine, and the copies of its fast part. */
#include "probes/core/entry.h"

#include <assert.h>
#include <cpuid.h>
#include <immintrin.h>
#include <stddef.h>
#include <string.h>

#include "probes/insn/insn.h"

static_assert(sizeof(struct probe_slot) == 1 << SLOT_SHIFT, "the trampoline shifts the id");
static_assert(offsetof(struct probe_slot, function) == 0, "the trampoline reads it there");
static_assert(offsetof(struct probe_slot, data) == SLOT_DATA, "the trampoline reads it there");
static_assert(offsetof(struct probe_slot, site) == SLOT_SITE, "the trampoline reads it there");
static_assert(offsetof(struct probe_slot, lost) == SLOT_LOST, "the trampoline counts there");
static_assert(offsetof(struct block, inside) == BLOCK_INSIDE, "the trampoline counts there");
static_assert(offsetof(struct block, counts) == BLOCK_COUNTS, "the trampoline counts there");
static_assert(EFFECTS_XMM == 8, "the trampoline saves eight");
static_assert(offsetof(struct block, room) == BLOCK_ROOM, "the trampoline reads it there");
static_assert(offsetof(struct block, room_size) == BLOCK_ROOM_SIZE,
	      "the trampoline reads it there");
static_assert(sizeof(struct fi_regs) == 80, "the trampoline pushes ten registers");

#define VECTOR_STATES 0xe7 /* x87, SSE, AVX, opmask, the upper halves, zmm16 to 31 */

#define STATES_AVX    0x6
#define STATES_AVX512 0xe0
#define MOVES_AREA    2176 /* zmm0 to 31, k0 to 7, MXCSR; in whole lines */

struct probe_slot probe_slots[FI_PROBES_MAX];
struct probe_slot *const entry_slots __attribute__((visibility("hidden"))) = probe_slots;

/* For the assembly. */
uint32_t entry_states __attribute__((visibility("hidden"))); /* for XSAVE; 0: by FXSAVE */
uint64_t entry_area __attribute__((visibility("hidden"))) = 512;
uint32_t entry_moves __attribute__((visibility("hidden"))); /* 1: up to ymm15, 2: all of AVX-512 */

extern const uint8_t entry_copied[ENTRY_COPY] __attribute__((visibility("hidden")));
extern const uint8_t entry_copied_leaf[] __attribute__((visibility("hidden")));
extern const uint8_t entry_copied_words[] __attribute__((visibility("hidden")));
extern void probe_called(void) __attribute__((visibility("hidden")));

size_t entry_at(uint32_t id)
{
	uintptr_t word = atomic_load_explicit(&probe_slots[id].function, memory_order_relaxed);

	return word >> SLOT_LEAF & 1 ? (size_t)(entry_copied_leaf - entry_copied) : 0;
}

void entry_copy(uint8_t to[ENTRY_COPY])
{
	const uintptr_t words[] = {
		block_offset(),
		(uintptr_t)probe_slots,
		(uintptr_t)probe_called,
	};

	memcpy(to, entry_copied, ENTRY_COPY);
	memcpy(to + (entry_copied_words - entry_copied), words, sizeof(words));
}

__attribute__((target("xsave"))) static uint32_t read_xcr0(void)
{
	return (uint32_t)_xgetbv(0);
}

/* To the end of the last component. */
static uint64_t find_area_size(uint32_t states)
{
	uint64_t end = 576;
	unsigned size, offset, c, d;

	for (unsigned i = 2; i < 32; i++) {
		if (!(states & 1u << i) || !__get_cpuid_count(0xd, i, &size, &offset, &c, &d))
			continue;
		if (offset + size > end)
			end = offset + size;
	}
	return (end + 63) & ~UINT64_C(63);
}

/* XGETBV has to tell which vectors are in use. AVX-512 without BW is left to XSAVE. */
static void start_moves(void)
{
	unsigned a, b = 0, c, d;

	if ((entry_states & STATES_AVX) != STATES_AVX)
		return;
	__get_cpuid_count(7, 0, &a, &b, &c, &d);
	if ((entry_states & STATES_AVX512) == STATES_AVX512 && b & bit_AVX512F && b & bit_AVX512BW)
		entry_moves = 2;
	else if (!(entry_states & STATES_AVX512))
		entry_moves = 1;
	if (entry_moves && entry_area < MOVES_AREA)
		entry_area = MOVES_AREA;
}

void entry_start(void)
{
	unsigned a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return;
	entry_states = read_xcr0() & VECTOR_STATES;
	entry_area = find_area_size(entry_states);
	if (__get_cpuid_count(0xd, 1, &a, &b, &c, &d) && a & 4)
		start_moves();
}
