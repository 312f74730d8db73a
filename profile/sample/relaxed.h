/* SPDX-License-Identifier: MIT */
/* Atomic accesses by the order that they have. */
#ifndef PROFILE_SAMPLE_RELAXED_H
#define PROFILE_SAMPLE_RELAXED_H

#include <stdatomic.h>

#define load_relaxed(at)	 atomic_load_explicit(at, memory_order_relaxed)
#define load_acquire(at)	 atomic_load_explicit(at, memory_order_acquire)
#define store_relaxed(at, value) atomic_store_explicit(at, value, memory_order_relaxed)
#define store_release(at, value) atomic_store_explicit(at, value, memory_order_release)
#define add_relaxed(at, value)	 atomic_fetch_add_explicit(at, value, memory_order_relaxed)
#define swap_relaxed(at, value)	 atomic_exchange_explicit(at, value, memory_order_relaxed)

#endif
