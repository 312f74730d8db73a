# SPDX-License-Identifier: MIT
# Ways to patch that are there to be measured against; not installed.
noinst_LIBRARIES += libpatchcore_baseline.a
libpatchcore_baseline_a_SOURCES = \
	patchcore/baseline/baseline.c \
	patchcore/baseline/baseline.h

if HAVE_CMOCKA
check_PROGRAMS += patchcore/baseline/tests/test_baseline
TESTS += patchcore/baseline/tests/test_baseline
patchcore_baseline_tests_test_baseline_LDADD = libpatchcore_baseline.a $(LDADD)
endif
