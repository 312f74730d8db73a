/* SPDX-License-Identifier: MIT */
#include "stress/oracle/gap_code.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "patchcore/machine/wait.h"
#include "stress/cell/code.h"

#define PAGE	    4096u
#define LEAD_PAGES  4 /* in front of the arena: room for all that runs before the site */
#define CHAIN_LINKS 40

#define OPCODE_MOV 0xb8 /* mov eax, imm32 */
#define OPCODE_RET 0xc3

static const uint8_t filler[] = { 0x0f, 0x1f, 0x00 };		/* nop dword [rax] */
static const uint8_t chain_link[] = { 0x48, 0x0f, 0xaf, 0xc0 }; /* imul rax, rax */

/* So many copies that end at `end`. Returns where they begin. */
static uint8_t *put_before(uint8_t *end, const uint8_t *code, size_t len, unsigned copies)
{
	for (unsigned i = 0; i < copies; i++) {
		end -= len;
		memcpy(end, code, len);
	}
	return end;
}

int gap_code_build(struct gap_code *code, const struct cell *cell)
{
	static const uint8_t site[] = { OPCODE_MOV, 0, 0, 0, 0, OPCODE_RET };
	size_t size = (LEAD_PAGES + CODE_ARENA_PAGES) * PAGE;
	void *arena = mmap(NULL, size, PROT_READ | PROT_WRITE | PROT_EXEC,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *entry;

	if (arena == MAP_FAILED)
		return -ENOMEM;
	*code = (struct gap_code){
		.site = code_place_site((uint8_t *)arena + LEAD_PAGES * PAGE, cell),
		.layout = gap_layout_of(cell->split),
	};
	memcpy(code->site, site, sizeof(site));
	entry = code->site;
	if (cell->provokers & (1u << PROVOKER_CHAIN))
		entry = put_before(entry, chain_link, sizeof(chain_link), CHAIN_LINKS);
	entry = put_before(entry, filler, sizeof(filler), cell->loop);
	code->fetch = (gap_fetch_fn *)(uintptr_t)entry;
	code->word = (struct word){
		.front_at = code->site,
		.back_at = code->site + cell->split,
		.len = CODE_LENGTH,
		.front = cell->split,
	};
	return 0;
}

static uint64_t mask_of(const struct gap_code *code, enum gap_part part)
{
	return (UINT64_C(1) << code->layout.bits[part]) - 1;
}

void gap_code_store(struct gap_code *code, enum gap_part part, uint64_t generation)
{
	generation &= mask_of(code, part);
	if (part == GAP_BACK) {
		code->word.new_back = generation;
		word_put_back(&code->word);
		return;
	}
	code->word.new_front = OPCODE_MOV | generation << 8;
	word_put_front(&code->word);
}

/* One load of the aligned 8 bytes that hold the part. */
static uint32_t load_part(const struct gap_code *code, enum gap_part part)
{
	const uint8_t *at = part == GAP_FRONT ? code->site + 1 : code->site + code->word.front;
	uintptr_t aligned = (uintptr_t)at & ~(uintptr_t)7;
	uint64_t word = __atomic_load_n((const uint64_t *)aligned, __ATOMIC_ACQUIRE);

	return (uint32_t)(word >> 8 * ((uintptr_t)at - aligned) & mask_of(code, part));
}

uint32_t gap_code_load(const struct gap_code *code, enum gap_part first, uint64_t between)
{
	uint32_t part[GAP_PARTS];

	part[first] = load_part(code, first);
	ticks_wait(between);
	part[!first] = load_part(code, !first);
	return part[GAP_FRONT] | part[GAP_BACK] << code->layout.bits[GAP_FRONT];
}
