/* SPDX-License-Identifier: MIT */
/*
 * Looking at code without touching it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>

#include "patchcore/kernel/sys.h"
#include "patchcore/text/text.h"

int text_read(void *buffer, const void *addr, size_t len)
{
	struct iovec to = { .iov_base = buffer, .iov_len = len };
	struct iovec from = { .iov_base = (void *)(uintptr_t)addr, .iov_len = len };
	long mem, forced,
		got = sys_call(SYS_process_vm_readv, sys_call(SYS_getpid), &to, 1, &from, 1, 0);

	if (got == (long)len)
		return 0;
	/* What is only executed is -EFAULT to that way, as what is not mapped; but not to this. */
	mem = sys_call(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDONLY | O_CLOEXEC);
	if (mem < 0)
		/* Some of it was there, or it is said that it is not: that much can be told. */
		return got > 0 || got == -EFAULT ? -EFAULT : -EACCES;
	forced = sys_call(SYS_pread64, mem, buffer, len, addr);
	sys_call(SYS_close, mem);
	return forced == (long)len ? 1 : -EFAULT;
}
