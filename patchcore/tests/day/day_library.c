/* SPDX-License-Identifier: MIT */
/*
 * A shared library to load, patch and unload: straddlers of 8, 64 and 4096 bytes.
 * See day_code.c: each is its DAY_LOAD, old.
 */
#include <stdint.h>

#define SITE(name, boundary, split)                                                                \
	".p2align " #boundary "\n"                                                                 \
	".skip (1 << " #boundary ") - " #split ", 0x06\n"                                          \
	".globl " #name "\n"                                                                       \
	".type " #name ", @function\n" #name ":\n"                                                 \
	"mov $0x11121314, %eax\n"                                                                  \
	"ret\n"                                                                                    \
	".size " #name ", . - " #name "\n"

__asm__(".text\n" SITE(day_library_0, 3, 2) SITE(day_library_1, 6, 3) SITE(day_library_2, 12, 1)
		SITE(day_library_3, 12, 4));

/* Data, so that more than code is mapped. */
uint32_t day_library_data[2048] = { 1 };
