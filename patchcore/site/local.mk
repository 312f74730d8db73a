# SPDX-License-Identifier: MIT
# Sites, and their owners.
libpatchcore_internal_la_SOURCES += \
	patchcore/site/fork.h \
	patchcore/site/lock.c \
	patchcore/site/lock.h \
	patchcore/site/site.c \
	patchcore/site/site.h \
	patchcore/site/table.c \
	patchcore/site/table.h \
	patchcore/site/thread.c \
	patchcore/site/thread.h

if HAVE_CMOCKA
patchcore_site_tests = \
	patchcore/site/tests/test_cancel \
	patchcore/site/tests/test_guest \
	patchcore/site/tests/test_own_text \
	patchcore/site/tests/test_table \
	patchcore/site/tests/test_thread \
	patchcore/site/tests/test_thread_late
check_PROGRAMS += $(patchcore_site_tests)
tests_race += $(patchcore_site_tests)
patchcore_site_tests_test_thread_late_LDFLAGS = -Wl,--wrap=membarrier_sync
endif

# What a look-up costs; no test.
EXTRA_PROGRAMS += patchcore/site/tests/bench_find
patchcore_site_tests_bench_find_LDADD = libpatchcore_internal.la
