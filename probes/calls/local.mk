# SPDX-License-Identifier: MIT
# Calls that the compiler has put into functions, and lists nowhere.
libfastinst_internal_la_SOURCES += \
	probes/calls/blocks.c \
	probes/calls/calls.c \
	probes/calls/calls.h \
	probes/calls/hooks.c
libfastinst_internal_la_LIBADD += libfastinst_find.la

# For "fastinst list", too.
noinst_LTLIBRARIES += libfastinst_find.la
libfastinst_find_la_SOURCES = probes/calls/find.c

calls_script_tests = probes/calls/tests/test_compares.sh probes/calls/tests/test_counts.sh
calls_script_computing = probes/calls/tests/test_compiled.sh probes/calls/tests/test_jumps.sh
tests_race += $(calls_script_tests)
tests_compute += $(calls_script_computing)
EXTRA_DIST += \
	$(calls_script_tests) \
	$(calls_script_computing) \
	probes/calls/tests/blocked.c \
	probes/calls/tests/compared.c \
	probes/calls/tests/compares.c \
	probes/calls/tests/reference.c
if HAVE_CMOCKA
check_PROGRAMS += probes/calls/tests/test_blocks
tests_race += probes/calls/tests/test_blocks
probes_calls_tests_test_blocks_LDFLAGS = -Wl,--wrap=function_index
probes_calls_tests_test_blocks_LDADD = $(probes_ldadd)
endif

check_PROGRAMS += probes/calls/tests/test_hooks
tests_race += probes/calls/tests/test_hooks
probes_calls_tests_test_hooks_SOURCES = \
	probes/calls/tests/hooked.c \
	probes/calls/tests/hooked.h \
	probes/calls/tests/test_hooks.c
probes_calls_tests_test_hooks_CPPFLAGS = $(AM_CPPFLAGS) -DBREAKABLE
probes_calls_tests_test_hooks_CFLAGS = $(AM_CFLAGS) -finstrument-functions
probes_calls_tests_test_hooks_LDFLAGS = -Wl,--wrap=function_index
probes_calls_tests_test_hooks_LDADD = libfastinst_internal.la libpatchcore.la
