/* SPDX-License-Identifier: MIT */
/* Arrays that grow, and sorted ones. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

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

/*
 * SORTED_FROM - where the first of n elements of an array is whose member is at or behind a value,
 * or n. They are sorted by that member; none is read if n is 0.
 */
#define SORTED_FROM(array, n, member, value)                                                       \
	({                                                                                         \
		size_t low_ = 0, high_ = (n);                                                      \
                                                                                                   \
		while (low_ < high_) {                                                             \
			size_t middle_ = low_ + (high_ - low_) / 2;                                \
                                                                                                   \
			if ((array)[middle_].member < (value))                                     \
				low_ = middle_ + 1;                                                \
			else                                                                       \
				high_ = middle_;                                                   \
		}                                                                                  \
		low_;                                                                              \
	})

/* ORDER_BY - define an order of structures for qsort() and bsearch(): by a member, a number. */
#define ORDER_BY(name, type, member)                                                               \
	static int name(const void *a, const void *b)                                              \
	{                                                                                          \
		const type *one = a, *two = b;                                                     \
                                                                                                   \
		return (one->member > two->member) - (one->member < two->member);                  \
	}

#endif
