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

/* text_is_open - are all pages of the range open? Lock-free. */
bool text_is_open(uintptr_t addr, size_t len);

#endif
