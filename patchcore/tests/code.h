/* SPDX-License-Identifier: MIT */
/* Pages of code to patch, and functions on them that return a number. */
#ifndef PATCHCORE_TESTS_CODE_H
#define PATCHCORE_TESTS_CODE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CODE_PAGE 4096u
#define CODE_NOP  0xf8 /* CLC, since a run of 0x90 may not be patched as one instruction */
#define CODE_INT3 0xcc
#define CODE_LEN  5u /* of the instruction that loads the number */

/* No byte is that of the other, so that every mix of the two shows. */
#define CODE_OLD 0x11121314u
#define CODE_NEW 0x21222324u

#define RX  (PROT_READ | PROT_EXEC)
#define RWX (PROT_READ | PROT_WRITE | PROT_EXEC)

/* Filled with instructions of one byte that do nothing here. */
static inline uint8_t *code_map(size_t pages, int prot)
{
	uint8_t *code = mmap(NULL, pages * CODE_PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (code == MAP_FAILED)
		abort();
	memset(code, CODE_NOP, pages * CODE_PAGE);
	if (mprotect(code, pages * CODE_PAGE, prot) < 0)
		abort();
	return code;
}

static inline void code_unmap(uint8_t *code, size_t pages)
{
	munmap(code, pages * CODE_PAGE);
}

/* mov eax, number */
static inline void code_load(uint8_t bytes[CODE_LEN], uint32_t number)
{
	bytes[0] = 0xb8;
	memcpy(bytes + 1, &number, sizeof(number));
}

/* mov eax, number; ret. The page is writable. */
static inline void code_put(uint8_t *at, uint32_t number)
{
	code_load(at, number);
	at[CODE_LEN] = 0xc3;
}

static inline uint32_t code_run(const uint8_t *at)
{
	uint32_t (*fn)(void) = (uint32_t(*)(void))(uintptr_t)at;

	return fn();
}

/*
 * Two bytes before a boundary of every window: with the opcode kept, front and
 * back of the number both change.
 */
static inline uint8_t *code_straddler(uint8_t *page)
{
	return page + CODE_PAGE / 2 - 2;
}

/* The protection as the kernel tells it, -1 if there is no mapping. */
static inline int code_prot(const void *at)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start, end, addr = (unsigned long)at;
	int prot = -1;
	char line[512], p[5];

	while (maps && prot < 0 && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %4s", &start, &end, p) != 3 || addr < start ||
		    addr >= end)
			continue;
		prot = (p[0] == 'r' ? PROT_READ : 0) | (p[1] == 'w' ? PROT_WRITE : 0) |
		       (p[2] == 'x' ? PROT_EXEC : 0);
	}
	if (maps)
		fclose(maps);
	return prot;
}

#endif
