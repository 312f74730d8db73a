# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libconform.a
libconform_a_SOURCES = \
	commands/tmax/conform_cmd.c \
	commands/tmax/conform_print.c \
	commands/tmax/conform_print.h \
	conform/child.c \
	conform/child.h \
	conform/guarantee.h \
	conform/guarantees.c \
	conform/handshakes.c \
	conform/pages.c \
	conform/running.c \
	conform/rounds.c \
	conform/rounds.h \
	conform/suspects.c

if HAVE_CMOCKA
check_PROGRAMS += conform/tests/test_child conform/tests/test_rounds
tests_compute += conform/tests/test_rounds
tests_race += conform/tests/test_child
endif
