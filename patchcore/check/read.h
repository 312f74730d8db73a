/* SPDX-License-Identifier: MIT */
/*
 * Reading memory that may not be there. Private.
 */
#ifndef PATCHCORE_CHECK_READ_H
#define PATCHCORE_CHECK_READ_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * read_code - copy what is mapped of [addr, addr + size), at most a page, up to
 * the first hole. The number of bytes, or -EACCES: nothing can be read this way.
 */
ssize_t read_code(uint8_t *to, const void *addr, size_t size);

#endif
