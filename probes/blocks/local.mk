# SPDX-License-Identifier: MIT
# Basic blocks of -fsanitize-coverage=trace-pc.
libfastinst_internal_la_SOURCES += \
	probes/blocks/blocks.c \
	probes/blocks/blocks.h

TESTS += probes/blocks/tests/test_counts.sh
EXTRA_DIST += \
	probes/blocks/tests/blocked.c \
	probes/blocks/tests/reference.c \
	probes/blocks/tests/test_counts.sh
if HAVE_CMOCKA
check_PROGRAMS += probes/blocks/tests/test_blocks
TESTS += probes/blocks/tests/test_blocks
probes_blocks_tests_test_blocks_LDFLAGS = -Wl,--wrap=calls_starts
probes_blocks_tests_test_blocks_LDADD = $(probes_ldadd)
endif
