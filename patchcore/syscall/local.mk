# SPDX-License-Identifier: MIT
# The kernel, asked without libc.
libpatchcore_internal_la_SOURCES += \
	patchcore/syscall/kernel_signal.c \
	patchcore/syscall/kernel_signal.h \
	patchcore/syscall/sys.h \
	patchcore/syscall/task.c \
	patchcore/syscall/task.h

if HAVE_CMOCKA
patchcore_syscall_tests = \
	patchcore/syscall/tests/test_task
check_PROGRAMS += $(patchcore_syscall_tests)
tests_wait += $(patchcore_syscall_tests)
endif
