# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libbench.a
libbench_a_SOURCES = \
	bench/baseline/baseline.c \
	bench/baseline/baseline.h \
	bench/cases/growth/growth.c \
	bench/cases/latency/latency.c \
	bench/cases/pass/pass.c \
	bench/cases/probes/many.c \
	bench/cases/probes/probes.c \
	bench/cases/scaling/scaling.c \
	bench/cases/stall/stall.c \
	bench/cases/throughput/pace.h \
	bench/cases/throughput/throughput.c \
	bench/cases/toggle/toggle.c \
	bench/figures/bench_figure.c \
	bench/figures/bench_figure.h \
	bench/method/hot.c \
	bench/method/hot.h \
	bench/method/loop.c \
	bench/method/loop.h \
	bench/method/method.c \
	bench/method/method.h \
	bench/method/result.c \
	bench/method/result.h \
	bench/method/samples.c \
	bench/method/samples.h \
	bench/peers/peer.h \
	bench/peers/peers.c \
	bench/record/bench_record.c \
	bench/record/bench_record.h \
	bench/record/bench_words.c \
	bench/record/bench_words.h \
	bench/ways/ways.c \
	bench/ways/ways.h

# The command and its page stand above the program's own rooms, beside its other commands.
libcalibrate_a_SOURCES += \
	bench/command/bench_cmd.c \
	bench/command/bench_print.c \
	bench/command/bench_print.h \
	bench/page/report_bench.c \
	bench/page/report_bench.h

dist_pkgdata_DATA += \
	bench/figures/bench-growth.gp \
	bench/figures/bench-latency.gp \
	bench/figures/bench-rows.gp \
	bench/figures/bench-throughput.gp

# Compiled where and when they are used.
peersdir = $(pkgdatadir)/peers
dist_peers_DATA = \
	bench/peers/programs/CallSites.java \
	bench/peers/programs/lines.h \
	bench/peers/programs/lttng.c \
	bench/peers/programs/lttng_called.h \
	bench/peers/programs/many.S \
	bench/peers/programs/uftrace.c \
	bench/peers/programs/uprobe.c \
	bench/peers/programs/xray.c

bench_script_tests = \
	bench/command/tests/test_bench.sh
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
	bench/baseline/tests/test_baseline \
	bench/cases/tests/test_bench_flow \
	bench/cases/tests/test_bench_growth \
	bench/cases/tests/test_bench_invoke \
	bench/cases/tests/test_bench_latency \
	bench/cases/tests/test_bench_latent \
	bench/cases/tests/test_bench_probes \
	bench/cases/tests/test_bench_scaling \
	bench/cases/tests/test_bench_sites \
	bench/cases/tests/test_bench_stall \
	bench/cases/tests/test_bench_throughput \
	bench/cases/tests/test_bench_toggle \
	bench/cases/tests/test_bench_toggle_case \
	bench/peers/tests/test_peers \
	bench/ways/tests/test_hand
bench_computing = bench/command/tests/test_bench_print bench/figures/tests/test_bench_figure
bench_alone = \
	bench/method/tests/test_bench_hot \
	bench/method/tests/test_bench_loop \
	bench/method/tests/test_bench_method \
	bench/method/tests/test_bench_result \
	bench/method/tests/test_bench_samples
bench_reading = \
	bench/page/tests/test_report_bench \
	bench/record/tests/test_bench_find \
	bench/record/tests/test_bench_record
bench_cases_tests_test_bench_probes_LDFLAGS = \
	-Wl,--wrap=fi_activate_how,--wrap=fi_branch_on,--wrap=fi_call_retarget
check_PROGRAMS += $(bench_tests) $(bench_computing) $(bench_alone) $(bench_reading)
tests_race += $(bench_tests)
tests_compute += $(bench_computing)
tests_alone += $(bench_alone)
tests_read += $(bench_reading)
not_asan += bench/baseline/% bench/cases/% bench/peers/% bench/figures/tests/test_bench_figure
endif
