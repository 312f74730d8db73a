# SPDX-License-Identifier: MIT
# Basic blocks and compares of -fsanitize-coverage.
libfastinst_internal_la_SOURCES += \
	probes/blocks/blocks.c \
	probes/blocks/blocks.h \
	probes/blocks/compare.c \
	probes/blocks/tracers.h

TESTS += \
	probes/blocks/tests/test_compares.sh \
	probes/blocks/tests/test_counts.sh
EXTRA_DIST += \
	probes/blocks/tests/blocked.c \
	probes/blocks/tests/compared.c \
	probes/blocks/tests/compares.c \
	probes/blocks/tests/reference.c \
	probes/blocks/tests/test_compares.sh \
	probes/blocks/tests/test_counts.sh
if HAVE_CMOCKA
check_PROGRAMS += probes/blocks/tests/test_blocks
TESTS += probes/blocks/tests/test_blocks
probes_blocks_tests_test_blocks_LDFLAGS = -Wl,--wrap=function_index
probes_blocks_tests_test_blocks_LDADD = $(probes_ldadd)
endif
