# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libconform.a
libconform_a_SOURCES = \
	commands/tmax/conform_cmd.c \
	commands/tmax/conform_print.c \
	commands/tmax/conform_print.h \
	commands/tmax/litmus_cmd.c \
	conform/child.c \
	conform/child.h \
	conform/forbidden.c \
	conform/guarantee.h \
	conform/guarantees.c \
	conform/handshakes.c \
	conform/litmus.h \
	conform/litmus_bench.c \
	conform/litmus_read.c \
	conform/litmus_result.c \
	conform/litmus_run.c \
	conform/pages.c \
	conform/running.c \
	conform/rounds.c \
	conform/rounds.h \
	conform/suspects.c

include conform/litmus/local.mk

if HAVE_CMOCKA
check_PROGRAMS += conform/tests/test_child conform/tests/test_litmus conform/tests/test_rounds
tests_compute += conform/tests/test_rounds
tests_race += conform/tests/test_child
tests_alone += conform/tests/test_litmus
endif
