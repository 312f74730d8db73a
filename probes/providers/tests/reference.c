/* SPDX-License-Identifier: MIT */
/*
 * Counts blocks and compares as the compiler means it to be done: by the address that each call
 * comes back to. Preloaded in place of fastinst. At the end of the process it writes "OFFSET COUNT"
 * to the file that BLOCKS names: where the call is in the program's file. EDGES names one for "FROM
 * TO": which are run one behind the other by a thread. It takes a program of less than 4096 bytes.
 */
#define _GNU_SOURCE
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define PLACES (1u << 20)
#define NEAR   4096u

static _Atomic uint64_t counts[PLACES];
static uintptr_t base, start;
static uint8_t behind[NEAR][NEAR]; /* of the last 12 bits of their offsets */
static uint32_t whole[NEAR];
static __thread uint32_t previous;

static int find_base(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	(void)data;
	base = info->dlpi_addr;
	start = info->dlpi_phdr->p_vaddr & ~UINT64_C(0xffff); /* of a program at a fixed place */
	return 1;
}

__attribute__((constructor)) static void begin(void)
{
	dl_iterate_phdr(find_base, NULL);
}

static uintptr_t count(void *back)
{
	uintptr_t offset = (uintptr_t)back - base - start;

	atomic_fetch_add_explicit(&counts[offset % PLACES], 1, memory_order_relaxed);
	whole[offset % NEAR] = (uint32_t)offset;
	return offset;
}

#define COMPARE(name)                                                                              \
	void taken_##name(void) __asm__("__sanitizer_cov_trace_" #name);                           \
	void taken_##name(void)                                                                    \
	{                                                                                          \
		count(__builtin_return_address(0));                                                \
	}

COMPARE(cmp1)
COMPARE(cmp2)
COMPARE(cmp4)
COMPARE(cmp8)
COMPARE(const_cmp1)
COMPARE(const_cmp2)
COMPARE(const_cmp4)
COMPARE(const_cmp8)
COMPARE(cmpf)
COMPARE(cmpd)
COMPARE(switch)

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
	uintptr_t offset = count(__builtin_return_address(0));

	if (previous)
		behind[previous % NEAR][offset % NEAR] = 1;
	previous = (uint32_t)offset;
}

/* A call of five bytes, or one of six through a slot (-fno-plt). */
static unsigned long long place(uint32_t offset)
{
	const uint8_t *back = (const uint8_t *)(base + start + offset);

	return offset + start - (back[-6] == 0xff && back[-5] == 0x15 ? 6 : 5);
}

static void write_edges(FILE *out)
{
	for (uint32_t from = 0; from < NEAR; from++)
		for (uint32_t to = 0; to < NEAR; to++)
			if (behind[from][to])
				fprintf(out, "%llx %llx\n", place(whole[from]), place(whole[to]));
}

__attribute__((destructor)) static void end(void)
{
	const char *path = getenv("BLOCKS");
	FILE *out = path ? fopen(path, "w") : NULL;

	for (uint32_t i = 0; out && i < PLACES; i++)
		if (counts[i])
			fprintf(out, "%llx %llu\n", place(i), (unsigned long long)counts[i]);
	if (out)
		fclose(out);
	path = getenv("EDGES");
	out = path ? fopen(path, "w") : NULL;
	if (out)
		write_edges(out);
	if (out)
		fclose(out);
}
