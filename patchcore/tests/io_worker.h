/* SPDX-License-Identifier: MIT */
/*
 * A thread that the kernel makes for io_uring: it reads from a pipe into which nothing is
 * ever written. For tests in a child.
 */
#ifndef PATCHCORE_TESTS_IO_WORKER_H
#define PATCHCORE_TESTS_IO_WORKER_H

#include <dirent.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "patchcore/tests/child.h"

static inline void *io_map(int ring, size_t size, uint64_t what)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring,
			(off_t)what);

	MUST(at != MAP_FAILED);
	return at;
}

/* A read that is not even tried in the thread that asks for it. */
static inline void io_submit(int ring, const struct io_uring_params *params, int from)
{
	static char byte;
	size_t size = params->sq_off.array + params->sq_entries * sizeof(uint32_t);
	char *queue = io_map(ring, size, IORING_OFF_SQ_RING);
	struct io_uring_sqe *entry = io_map(ring, sizeof(*entry), IORING_OFF_SQES);
	uint32_t *array = (uint32_t *)(queue + params->sq_off.array);
	_Atomic(uint32_t) *tail = (_Atomic(uint32_t) *)(queue + params->sq_off.tail);

	memset(entry, 0, sizeof(*entry));
	entry->opcode = IORING_OP_READ;
	entry->flags = IOSQE_ASYNC;
	entry->fd = from;
	entry->addr = (uintptr_t)&byte;
	entry->len = 1;
	array[0] = 0;
	atomic_fetch_add(tail, 1);
	MUST(syscall(SYS_io_uring_enter, ring, 1, 0, 0, NULL, 0) == 1);
}

/* The id of the first thread whose name begins with "iou-", 0 if there is none. */
static inline pid_t io_worker_find(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	pid_t found = 0;

	while (tasks && !found && (entry = readdir(tasks))) {
		char path[300], name[32] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "re");
		if (file && fgets(name, sizeof(name), file) && strncmp(name, "iou-", 4) == 0)
			found = atoi(entry->d_name);
		if (file)
			fclose(file);
	}
	if (tasks)
		closedir(tasks);
	return found;
}

/* Its id. It lives as long as the child. */
static inline pid_t io_worker_make(void)
{
	struct io_uring_params params = { 0 };
	int ring = (int)syscall(SYS_io_uring_setup, 1, &params), ends[2];
	pid_t worker = 0;

	if (ring < 0)
		child_skip("io_uring_setup() is refused");
	MUST(pipe(ends) == 0);
	io_submit(ring, &params, ends[0]);
	for (int i = 0; i < 1000 && !worker; i++) {
		worker = io_worker_find();
		usleep(1000);
	}
	if (!worker)
		child_skip("io_uring has made no thread");
	return worker;
}

#endif
