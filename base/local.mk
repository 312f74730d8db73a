# SPDX-License-Identifier: MIT
noinst_LTLIBRARIES += libfastinst_text.la
libfastinst_text_la_SOURCES = \
	base/text.c \
	base/text.h \
	agent/counts/words.c \
	agent/counts/words.h
noinst_LTLIBRARIES += libfastinst_names.la
libfastinst_names_la_SOURCES = base/demangle.h
if HAVE_LIBIBERTY
libfastinst_names_la_SOURCES += base/demangle.c
libfastinst_names_la_LIBADD = -liberty
else
libfastinst_names_la_SOURCES += base/no_demangle.c
endif
if HAVE_CMOCKA
check_PROGRAMS += base/tests/test_text
tests_race += base/tests/test_text
base_tests_test_text_LDADD = libfastinst_names.la libfastinst_text.la $(CMOCKA_LIBS)
endif
tests_race += base/tests/test_names.sh
EXTRA_DIST += base/tests/test_names.sh
