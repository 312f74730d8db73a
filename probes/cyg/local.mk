# SPDX-License-Identifier: MIT
# Entries and exits of -finstrument-functions.
libfastinst_internal_la_SOURCES += \
	probes/cyg/cyg.c \
	probes/cyg/cyg.h

check_PROGRAMS += probes/cyg/tests/test_cyg
TESTS += \
	probes/cyg/tests/test_cyg \
	probes/cyg/tests/test_compiled.sh
EXTRA_DIST += probes/cyg/tests/test_compiled.sh
probes_cyg_tests_test_cyg_SOURCES = \
	probes/cyg/tests/sample.c \
	probes/cyg/tests/sample.h \
	probes/cyg/tests/test_cyg.c
probes_cyg_tests_test_cyg_CPPFLAGS = $(AM_CPPFLAGS) -DBREAKABLE
probes_cyg_tests_test_cyg_CFLAGS = $(AM_CFLAGS) -finstrument-functions
probes_cyg_tests_test_cyg_LDFLAGS = -Wl,--wrap=function_index
probes_cyg_tests_test_cyg_LDADD = libfastinst_internal.la libpatchcore.la
