/* SPDX-License-Identifier: MIT */
/* What the loops of all sites have: memory where they want it, landings, what a cell adds. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/emit.h"
#include "stress/cell/code.h"

#define PAGE 4096u
#define LINE 64u

int code_map(uint64_t addr, size_t length)
{
	void *want = (void *)(uintptr_t)addr;
	void *got = mmap(want, length, PROT_READ | PROT_WRITE | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (got == MAP_FAILED)
		return -errno;
	if (got != want) { /* a kernel before 4.17 takes the flag for a hint */
		munmap(got, length);
		return -EEXIST;
	}
	return 0;
}

int code_map_landing(const uint8_t *at)
{
	uint64_t page = (uint64_t)(uintptr_t)at & ~(uint64_t)(PAGE - 1);

	for (unsigned i = 0; i < 2; i++) {
		int ret = code_map(page + i * PAGE, PAGE);

		if (ret == 0)
			/* An executor that lands beside a pad is seen, too. */
			memset((void *)(uintptr_t)(page + i * PAGE), CODE_INVALID, PAGE);
		else if (ret != -EEXIST)
			return ret;
	}
	return 0;
}

void code_put_additions(struct emit *e, struct code *code, const struct cell *cell)
{
	static const uint8_t nop[8] = { 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00 };

	/* Each has two lines of its own, and is a NOP 0F 1F 44 with any bytes. */
	for (unsigned i = 0; cell->provokers & 1u << PROVOKER_SITES && i < CODE_EXTRA; i++) {
		uintptr_t line = ((uintptr_t)e->at + 3 + 2 * LINE) & ~(uintptr_t)(LINE - 1);

		code->extra[i] = (uint8_t *)(line - 4);
		while (code->extra[i] - e->at >= 8)
			put(e, nop, 8);
		put_copies(e, 0x90, (size_t)(code->extra[i] - e->at));
		PUT(e, 0x0f, 0x1f, 0x44, 0x00, 0x00);
	}
	for (unsigned i = 0; i < cell->loop; i++)
		PUT(e, 0x48, 0x8d, 0x52, 0x01); /* lea rdx, [rdx + 1] */
	if (!(cell->provokers & 1u << PROVOKER_CHAIN))
		return;
	for (unsigned i = 0; i < CODE_CHAIN; i++)
		PUT(e, 0x48, 0x0f, 0xaf, 0xd2); /* imul rdx, rdx */
	PUT(e, 0xf8);				/* clc */
}
