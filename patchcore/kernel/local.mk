# SPDX-License-Identifier: MIT
# The kernel, asked without libc.
libpatchcore_internal_la_SOURCES += \
	patchcore/kernel/kernel_signal.c \
	patchcore/kernel/kernel_signal.h \
	patchcore/kernel/sys.h \
	patchcore/kernel/task.c \
	patchcore/kernel/task.h

if HAVE_CMOCKA
patchcore_kernel_tests = \
	patchcore/kernel/tests/test_task
check_PROGRAMS += $(patchcore_kernel_tests)
tests_wait += $(patchcore_kernel_tests)
endif
