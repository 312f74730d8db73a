/* SPDX-License-Identifier: MIT */
#ifndef PROBES_ELF_ARRAY_H
#define PROBES_ELF_ARRAY_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#define ARRAY_FIRST 16 /* elements that there is room for at first */

/* array_grow - room for one more than n elements; NULL: no memory, and the array is as it was. */
static inline void *array_grow(void *array, size_t n, size_t size)
{
	/* The array is full when n is a power of two. */
	if (n < ARRAY_FIRST ? n : n & (n - 1))
		return array;
	return reallocarray(array, n < ARRAY_FIRST ? ARRAY_FIRST : 2 * n, size);
}

/* ARRAY_ADD - put an element behind the n of an array that grows by this alone: 0 or -ENOMEM. */
#define ARRAY_ADD(array, n, ...)                                                                   \
	({                                                                                         \
		void *grown_ = array_grow((array), (n), sizeof(*(array)));                         \
                                                                                                   \
		if (grown_) {                                                                      \
			(array) = grown_;                                                          \
			(array)[(n)++] = __VA_ARGS__;                                              \
		}                                                                                  \
		grown_ ? 0 : -ENOMEM;                                                              \
	})

#endif
