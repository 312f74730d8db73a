# SPDX-License-Identifier: MIT
noinst_LTLIBRARIES += libstress.la
libstress_la_SOURCES = \
	stress/bench_toggle.c \
	stress/bench_op.c \
	stress/bench_op.h \
	stress/bench_toggle.h \
	stress/cell.c \
	stress/cell.h \
	stress/child.c \
	stress/child.h \
	stress/clock.h \
	stress/clock_rate.c \
	stress/clock_rate.h \
	stress/code.c \
	stress/code.h \
	stress/gap.c \
	stress/gap.h \
	stress/gap_child.c \
	stress/gap_child.h \
	stress/gap_code.c \
	stress/gap_code.h \
	stress/gap_judge.c \
	stress/gap_judge.h \
	stress/gap_tally.c \
	stress/gap_tally.h \
	stress/isolate.c \
	stress/isolate.h \
	stress/noise.c \
	stress/noise.h \
	stress/placement.c \
	stress/placement.h \
	stress/proc_text.c \
	stress/proc_text.h \
	stress/provoker.c \
	stress/provoker.h \
	stress/provoker_load.c \
	stress/provoker_threads.c \
	stress/provoker_wide.c \
	stress/provoker_work.h \
	stress/random.h \
	stress/run.c \
	stress/run.h \
	stress/toggle.c \
	stress/toggle.h \
	stress/trace_log.c \
	stress/trace_log.h \
	stress/tsc_offset.c \
	stress/tsc_offset.h \
	stress/witness.c \
	stress/witness.h
libstress_la_LIBADD = $(HWLOC_LIBS)

check_PROGRAMS += stress/tests/fuzz_proc_text
TESTS += stress/tests/fuzz_proc_text
EXTRA_DIST += \
	stress/tests/fixtures/interrupts \
	stress/tests/fixtures/stat
CLEANFILES += stress/tests/fuzz_proc_text.crash

stress_tests_fuzz_proc_text_CPPFLAGS = $(fuzz_cppflags)
stress_tests_fuzz_proc_text_CFLAGS = $(fuzz_cflags)

if HAVE_CMOCKA
stress_tests = \
	stress/tests/test_cell \
	stress/tests/test_code \
	stress/tests/test_gap \
	stress/tests/test_gap_judge \
	stress/tests/test_noise \
	stress/tests/test_oracle \
	stress/tests/test_placement \
	stress/tests/test_provoker \
	stress/tests/test_trace_log \
	stress/tests/test_witness
check_PROGRAMS += $(stress_tests)
TESTS += $(stress_tests)
endif
