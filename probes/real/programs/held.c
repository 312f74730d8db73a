/* SPDX-License-Identifier: MIT */
/*
 * glibc's own malloc() has a second name, by which what stands in its place reaches it.
 */
#define _GNU_SOURCE
#include "probes/real/programs/held.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *block);

static __thread bool counted __attribute__((tls_model("initial-exec")));
static atomic_long held;

void held_count(void)
{
	counted = true;
}

long held_bytes(void)
{
	return atomic_load_explicit(&held, memory_order_relaxed);
}

static void add_held(long bytes)
{
	if (counted)
		atomic_fetch_add_explicit(&held, bytes, memory_order_relaxed);
}

static void *count_taken(void *block)
{
	add_held((long)malloc_usable_size(block));
	return block;
}

static void give_back(void *block)
{
	add_held(-(long)malloc_usable_size(block));
}

void *malloc(size_t size)
{
	return count_taken(__libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
	return count_taken(__libc_calloc(n, size));
}

void *realloc(void *old, size_t size)
{
	long before = (long)malloc_usable_size(old);
	void *block = __libc_realloc(old, size);

	/* Where it fails, the old one stays. */
	if (block || !size)
		add_held((long)malloc_usable_size(block) - before);
	return block;
}

void *aligned_alloc(size_t align, size_t size)
{
	return count_taken(__libc_memalign(align, size));
}

void free(void *block)
{
	give_back(block);
	__libc_free(block);
}

void *mmap(void *wish, size_t len, int prot, int flags, int fd, off_t offset)
{
	void *at = (void *)syscall(SYS_mmap, wish, len, prot, flags, fd, offset);

	/* A fixed one takes the place of what was there. */
	if (at != MAP_FAILED && !(flags & MAP_FIXED))
		add_held((long)len);
	return at;
}

int munmap(void *at, size_t len)
{
	int ret = (int)syscall(SYS_munmap, at, len);

	if (!ret)
		add_held(-(long)len);
	return ret;
}
