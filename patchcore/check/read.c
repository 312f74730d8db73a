/* SPDX-License-Identifier: MIT */
#include "patchcore/check/read.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE 4096u

static ssize_t read_vm(uint8_t *to, const void *addr, size_t size)
{
	size_t rest = PAGE - ((uintptr_t)addr & (PAGE - 1)), first = size < rest ? size : rest;
	struct iovec local = { .iov_base = to, .iov_len = size };
	/* A piece that is not all mapped is not read at all. */
	struct iovec remote[] = {
		{ .iov_base = (void *)(uintptr_t)addr, .iov_len = first },
		{ .iov_base = (void *)((uintptr_t)addr + first), .iov_len = size - first },
	};
	ssize_t got = process_vm_readv(getpid(), &local, 1, remote, size > first ? 2 : 1, 0);

	return got < 0 ? -errno : got;
}

/* Where a filter of system calls keeps the other way shut. */
static ssize_t read_file(uint8_t *to, const void *addr, size_t size)
{
	int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return -EACCES;
	got = pread(fd, to, size, (off_t)(uintptr_t)addr);
	close(fd);
	return got < 0 ? 0 : got;
}

ssize_t read_code(uint8_t *to, const void *addr, size_t size)
{
	ssize_t got = read_vm(to, addr, size);

	if (got == -EFAULT)
		return 0;
	return got < 0 ? read_file(to, addr, size) : got;
}
