# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libconform.a
libconform_a_SOURCES = \
	conform/commands/conform_cmd.c \
	conform/commands/conform_print.c \
	conform/commands/conform_print.h \
	conform/commands/conform_yaml.c \
	conform/guarantee/child.c \
	conform/guarantee/child.h \
	conform/guarantee/guarantee.h \
	conform/guarantee/guarantees.c \
	conform/guarantee/handshakes.c \
	conform/guarantee/loops.h \
	conform/guarantee/pages.c \
	conform/guarantee/running.c \
	conform/rounds/order.c \
	conform/rounds/order.h \
	conform/rounds/rounds.c \
	conform/rounds/rounds.h \
	conform/rounds/suspects.c \
	conform/rounds/suspects.h

tests_calibrate += conform/commands/tests/test_conform.sh
not_asan += conform/commands/%
EXTRA_DIST += conform/commands/tests/test_conform.sh

if HAVE_CMOCKA
check_PROGRAMS += conform/rounds/tests/test_rounds
tests_compute += conform/rounds/tests/test_rounds
endif
