/* SPDX-License-Identifier: MIT */
/*
 * Pages of code that are written through a second mapping. Private; the public
 * half is pc_text_alias().
 */
#ifndef PATCHCORE_TEXT_ALIAS_H
#define PATCHCORE_TEXT_ALIAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "patchcore/text/text_page.h"

/* The pages that have one of the library's own, in order. Under text_lock. */
extern struct page *alias_first;

/*
 * alias_make - for pages that are in the table, have none, and are all of one
 * mapping. 0, or -EACCES, -EINVAL (part of a huge page), -ENOMEM, -EMFILE,
 * -ENFILE, -EFAULT (cannot be read) and nothing has changed. Under text_lock.
 */
int alias_make(uintptr_t start, uintptr_t end);

/*
 * alias_end - make them private memory with page->prot again, as they read
 * now. All have one alias and one protection. Errors as alias_make(), and
 * nothing has changed. Under text_lock.
 */
int alias_end(uintptr_t start, uintptr_t end);

/*
 * alias_use, alias_return - the same for an alias of the caller's, so far from the code: noted
 * down and given up, and nothing is mapped. Under text_lock.
 */
void alias_use(uintptr_t start, uintptr_t end, ptrdiff_t shift);
void alias_return(uintptr_t start, uintptr_t end);

/* alias_forget - the page is gone, only its alias is still there. Under text_lock. */
void alias_forget(struct page *page);

/* alias_memory - new memory to map, as a file. Its descriptor or -errno. */
int alias_memory(size_t len);

#endif
