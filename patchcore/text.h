/* SPDX-License-Identifier: MIT */
/*
 * Pages of code: which are writable, and making them so. Private; the public
 * half is pc_text_open() and pc_text_close().
 */
#ifndef PATCHCORE_TEXT_H
#define PATCHCORE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEXT_PAGE 4096u

/*
 * text_is_open - did callers open all pages of the range, and so promise not to
 * close them while a patch is running? Lock-free.
 */
bool text_is_open(uintptr_t addr, size_t len);

/* text_borrow, text_return - the same for the length of one patch, seen by nobody else. */
int text_borrow(void *addr, size_t len);
void text_return(void *addr, size_t len);

#endif
