/* SPDX-License-Identifier: MIT */
#ifndef PROBES_ELF_SORTED_H
#define PROBES_ELF_SORTED_H

#include <stddef.h>

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
