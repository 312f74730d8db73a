# SPDX-License-Identifier: MIT
# What both programs stand on.
libstress_a_SOURCES += \
	base/array.h \
	base/clock.h \
	base/command_line.c \
	base/command_line.h \
	base/emit.h \
	base/exit_status.h \
	base/names.h \
	base/number.c \
	base/number.h \
	base/process.c \
	base/process.h \
	base/program.c \
	base/program.h \
	base/random.h \
	base/spelling.c \
	base/spelling.h \
	base/text_file.c \
	base/text_file.h \
	base/words.c \
	base/words.h

noinst_LTLIBRARIES += libfastinst_text.la
libfastinst_text_la_SOURCES = \
	base/text.c \
	base/text.h \
	agent/counts/base.h \
	agent/counts/words.c
noinst_LTLIBRARIES += libfastinst_names.la
libfastinst_names_la_SOURCES = base/demangle.c base/demangle.h
libfastinst_names_la_LIBADD = -liberty
if HAVE_CMOCKA
check_PROGRAMS += base/tests/test_text
tests_compute += base/tests/test_text
base_tests_test_text_LDADD = libfastinst_names.la libfastinst_text.la $(CMOCKA_LIBS)
endif
tests_compute += base/tests/test_names.sh
EXTRA_DIST += base/tests/test_names.sh
