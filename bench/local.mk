# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libbench.a
libbench_a_SOURCES = \
	bench/peers/baseline.c \
	bench/cases/benchmarks.c \
	bench/cases/benchmarks.h \
	bench/cases/growth.c \
	bench/cases/growth.h \
	bench/cases/growth_axes.c \
	bench/cases/pass.c \
	bench/cases/probes.c \
	bench/cases/probes_many.c \
	bench/cases/stall.c \
	bench/cases/throughput.c \
	bench/cases/toggle.c \
	bench/record/bench_figure.c \
	bench/method/hot.c \
	bench/method/hot.h \
	bench/method/loop.c \
	bench/method/loop.h \
	bench/method/method.c \
	bench/method/method.h \
	bench/method/result.c \
	bench/method/result.h \
	bench/method/samples.c \
	bench/peers/peer.h \
	bench/peers/peers.c \
	bench/record/bench_record.c \
	bench/record/bench_record.h \
	bench/record/bench_words.c \
	bench/peers/ways.c \
	bench/peers/ways.h

# The command and its page stand above the program's own rooms, beside its other commands.
libcalibrate_a_SOURCES += \
	commands/tmax/bench_cmd.c \
	commands/tmax/bench_print.c \
	commands/report/report_bench.c

dist_pkgdata_DATA += \
	bench/record/bench-curves.gp \
	bench/record/bench-rows.gp

# Compiled where and when they are used.
peersdir = $(pkgdatadir)/peers
dist_peers_DATA = \
	bench/peers/CallSites.java \
	bench/peers/lines.h \
	bench/peers/many.S \
	bench/peers/uprobe.c \
	bench/peers/xray.c

bench_script_tests = \
	commands/tmax/tests/test_bench.sh
tests_calibrate += $(bench_script_tests)
not_asan += $(bench_script_tests)
EXTRA_DIST += \
	$(bench_script_tests) \
	bench/tests/bench_run.h \
	bench/tests/bench_sample.h \
	bench/tests/pass_test.h \
	bench/tests/sample_bench.h \
	bench/tests/threads.h

if HAVE_CMOCKA
bench_tests = \
	bench/peers/tests/test_baseline \
	bench/cases/tests/test_bench_flow \
	bench/cases/tests/test_bench_growth \
	bench/cases/tests/test_bench_invoke \
	bench/cases/tests/test_bench_latent \
	bench/cases/tests/test_bench_probes \
	bench/cases/tests/test_bench_stall \
	bench/cases/tests/test_bench_throughput \
	bench/cases/tests/test_bench_toggle \
	bench/cases/tests/test_bench_toggle_case \
	bench/peers/tests/test_peers \
	bench/peers/tests/test_hand
bench_computing = commands/tmax/tests/test_bench_print bench/record/tests/test_bench_figure
bench_alone = \
	bench/method/tests/test_bench_hot \
	bench/method/tests/test_bench_loop \
	bench/method/tests/test_bench_method \
	bench/method/tests/test_bench_result \
	bench/method/tests/test_bench_samples
bench_reading = \
	commands/report/tests/test_report_bench \
	bench/record/tests/test_bench_record
bench_cases_tests_test_bench_probes_LDFLAGS = \
	-Wl,--wrap=fi_activate_how,--wrap=fi_branch_on,--wrap=fi_call_retarget
check_PROGRAMS += $(bench_tests) $(bench_computing) $(bench_alone) $(bench_reading)
tests_race += $(bench_tests)
tests_compute += $(bench_computing)
tests_alone += $(bench_alone)
tests_read += $(bench_reading)
not_asan += bench/peers/% bench/cases/% bench/peers/% bench/record/tests/test_bench_figure
endif
