# SPDX-License-Identifier: MIT
noinst_LTLIBRARIES += libstress.la
libstress_la_SOURCES = \
	stress/bench_toggle.c \
	stress/bench_toggle.h \
	stress/cell.c \
	stress/cell.h \
	stress/child.c \
	stress/child.h \
	stress/clock.h \
	stress/code.c \
	stress/code.h \
	stress/placement.c \
	stress/placement.h \
	stress/run.c \
	stress/run.h \
	stress/toggle.c \
	stress/toggle.h \
	stress/witness.c \
	stress/witness.h
libstress_la_LIBADD = $(HWLOC_LIBS)

if HAVE_CMOCKA
stress_tests = \
	stress/tests/test_cell \
	stress/tests/test_oracle \
	stress/tests/test_placement
check_PROGRAMS += $(stress_tests)
TESTS += $(stress_tests)
endif
