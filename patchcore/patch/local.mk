# SPDX-License-Identifier: MIT
# The functions that change code.
libpatchcore_internal_la_SOURCES += \
	patchcore/patch/batch.c \
	patchcore/patch/over.c \
	patchcore/patch/patch.c \
	patchcore/patch/patch.h

in_tsan += patchcore/patch/tests/test_patch

if HAVE_CMOCKA
patchcore_patch_tests = \
	patchcore/patch/tests/test_batch \
	patchcore/patch/tests/test_cost \
	patchcore/patch/tests/test_patch \
	patchcore/patch/tests/test_quiet
check_PROGRAMS += $(patchcore_patch_tests)
tests_race += $(patchcore_patch_tests)

patchcore_patch_tests_test_batch_LDFLAGS = -Wl,--wrap=calloc
endif
