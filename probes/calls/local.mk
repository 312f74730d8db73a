# SPDX-License-Identifier: MIT
# Calls that the compiler has put into functions, and lists nowhere.
libfastinst_internal_la_SOURCES += \
	probes/calls/calls.c \
	probes/calls/calls.h
libfastinst_internal_la_LIBADD += libfastinst_find.la

# For "fastinst list", too.
noinst_LTLIBRARIES += libfastinst_find.la
libfastinst_find_la_SOURCES = \
	probes/calls/entered.c \
	probes/calls/entered.h \
	probes/calls/find.c \
	probes/calls/given.h \
	probes/calls/jumps.h \
	probes/calls/starts.h
libfastinst_find_la_LIBADD =
if HAVE_ZYDIS
libfastinst_find_la_SOURCES += \
	probes/calls/given.c \
	probes/calls/jumps.c \
	probes/calls/starts.c
noinst_LTLIBRARIES += libfastinst_decode.la
libfastinst_decode_la_SOURCES = \
	patchcore/check/decode.c \
	patchcore/check/decode.h
libfastinst_decode_la_LIBADD = $(ZYDIS_LIBS)
libfastinst_find_la_LIBADD += libfastinst_decode.la
else
libfastinst_find_la_SOURCES += probes/calls/no_starts.c
endif

if HAVE_CMOCKA
check_PROGRAMS += probes/calls/tests/test_entered
TESTS += probes/calls/tests/test_entered
probes_calls_tests_test_entered_LDADD = libfastinst_find.la $(tables_la) libfastinst_elf.la $(LDADD)
if HAVE_ZYDIS
check_PROGRAMS += probes/calls/tests/test_given
TESTS += probes/calls/tests/test_given
probes_calls_tests_test_given_LDADD = libfastinst_find.la $(tables_la) libfastinst_elf.la $(LDADD)
endif
endif

TESTS += probes/calls/tests/test_jumps.sh
EXTRA_DIST += probes/calls/tests/test_jumps.sh
