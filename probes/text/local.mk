# SPDX-License-Identifier: MIT
noinst_LTLIBRARIES += libfastinst_text.la
libfastinst_text_la_SOURCES = probes/text/text.c probes/text/text.h
if HAVE_CMOCKA
check_PROGRAMS += probes/text/tests/test_text
TESTS += probes/text/tests/test_text
probes_text_tests_test_text_LDADD = libfastinst_text.la $(CMOCKA_LIBS)
endif
TESTS += probes/text/tests/test_names.sh
EXTRA_DIST += probes/text/tests/test_names.sh
