# SPDX-License-Identifier: MIT
noinst_LTLIBRARIES += libfastinst_text.la
libfastinst_text_la_SOURCES = \
	probes/text/text.c \
	probes/text/text.h \
	probes/trace/words.c \
	probes/trace/words.h
noinst_LTLIBRARIES += libfastinst_names.la
libfastinst_names_la_SOURCES = probes/text/demangle.h
if HAVE_LIBIBERTY
libfastinst_names_la_SOURCES += probes/text/demangle.c
libfastinst_names_la_LIBADD = -liberty
else
libfastinst_names_la_SOURCES += probes/text/no_demangle.c
endif
if HAVE_CMOCKA
check_PROGRAMS += probes/text/tests/test_text
tests_race += probes/text/tests/test_text
probes_text_tests_test_text_LDADD = libfastinst_names.la libfastinst_text.la $(CMOCKA_LIBS)
endif
tests_race += probes/text/tests/test_names.sh
EXTRA_DIST += probes/text/tests/test_names.sh
