/* SPDX-License-Identifier: MIT */
/*
 * Looking at code without touching it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>

#include "patchcore/kernel/sys.h"
#include "patchcore/text/text.h"

/* Bytes, or a negative errno. Not what is only executed: that is -EFAULT, as what is not mapped. */
static long read_plainly(void *buffer, const void *addr, size_t len)
{
	struct iovec to = { .iov_base = buffer, .iov_len = len };
	struct iovec from = { .iov_base = (void *)(uintptr_t)addr, .iov_len = len };

	return sys_call(SYS_process_vm_readv, sys_call(SYS_getpid), &to, 1, &from, 1, 0);
}

/* 0, or a negative errno: -EACCES, this way is shut. */
static int read_forcibly(void *buffer, const void *addr, size_t len)
{
	long mem = sys_call(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDONLY | O_CLOEXEC), got;

	if (mem < 0)
		return -EACCES;
	got = sys_call(SYS_pread64, mem, buffer, len, addr);
	sys_call(SYS_close, mem);
	return got == (long)len ? 0 : -EFAULT;
}

int text_read(void *buffer, const void *addr, size_t len)
{
	long got = read_plainly(buffer, addr, len);
	int ret;

	if (got == (long)len)
		return 0;
	ret = read_forcibly(buffer, addr, len);
	if (ret == 0)
		return 1;
	/* Some of it was there, or it is said that it is not: that is as much as can be told. */
	return got > 0 || got == -EFAULT ? -EFAULT : ret;
}
