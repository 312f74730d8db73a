# SPDX-License-Identifier: MIT
# Calls that the compiler has put into functions, and lists nowhere.
libfastinst_internal_la_SOURCES += \
	probes/calls/calls.c \
	probes/calls/calls.h
libfastinst_internal_la_LIBADD += libfastinst_find.la

# For "fastinst list", too.
noinst_LTLIBRARIES += libfastinst_find.la
libfastinst_find_la_SOURCES = probes/calls/find.c

TESTS += probes/calls/tests/test_jumps.sh
EXTRA_DIST += probes/calls/tests/test_jumps.sh
