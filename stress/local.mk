# SPDX-License-Identifier: MIT
noinst_LTLIBRARIES += libstress.la
libstress_la_SOURCES = \
	stress/bench/count.c \
	stress/bench/count.h \
	stress/bench/crew.c \
	stress/bench/crew.h \
	stress/bench/flow.c \
	stress/bench/flow.h \
	stress/bench/flow_site.c \
	stress/bench/flow_site.h \
	stress/bench/flow_tally.c \
	stress/bench/flow_tally.h \
	stress/bench/hot.c \
	stress/bench/hot.h \
	stress/bench/invoke.c \
	stress/bench/known.c \
	stress/bench/known.h \
	stress/bench/known_sites.c \
	stress/bench/known_sites.h \
	stress/bench/latency.c \
	stress/bench/latency.h \
	stress/bench/latent.c \
	stress/bench/loop.c \
	stress/bench/loop.h \
	stress/bench/method.c \
	stress/bench/method.h \
	stress/bench/over.c \
	stress/bench/over.h \
	stress/bench/pace.h \
	stress/bench/pass.c \
	stress/bench/pass.h \
	stress/bench/pass_measure.c \
	stress/bench/result.c \
	stress/bench/result.h \
	stress/bench/samples.c \
	stress/bench/samples.h \
	stress/bench/scaling.c \
	stress/bench/scaling.h \
	stress/bench/scaling_known.c \
	stress/bench/scaling_mix.c \
	stress/bench/scaling_patchers.c \
	stress/bench/sites.c \
	stress/bench/sites.h \
	stress/bench/spare.c \
	stress/bench/spare.h \
	stress/bench/stall.c \
	stress/bench/stall.h \
	stress/bench/stall_change.c \
	stress/bench/stall_record.c \
	stress/bench/stall_record.h \
	stress/bench/throughput.c \
	stress/bench/throughput.h \
	stress/bench/toggle.c \
	stress/bench/toggle_batch.c \
	stress/bench/toggle_case.c \
	stress/bench/toggle_case.h \
	stress/bench/toggle_cold.c \
	stress/bench/toggle_list.c \
	stress/bench/toggle_ops.c \
	stress/bench/toggle_others.c \
	stress/cell.c \
	stress/cell.h \
	stress/child.c \
	stress/child.h \
	stress/clock.h \
	stress/clock_rate.c \
	stress/clock_rate.h \
	stress/code.c \
	stress/code.h \
	stress/emit.h \
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
	stress/peers/all.h \
	stress/peers/compiled.c \
	stress/peers/compiled.h \
	stress/peers/hand.c \
	stress/peers/hand.h \
	stress/peers/jvm.c \
	stress/peers/outside.c \
	stress/peers/outside.h \
	stress/peers/peer.h \
	stress/peers/peers.c \
	stress/peers/process.c \
	stress/peers/process.h \
	stress/peers/process_spawn.c \
	stress/peers/process_spawn.h \
	stress/peers/uftrace.c \
	stress/peers/uprobe.c \
	stress/peers/xray.c \
	stress/place.c \
	stress/place.h \
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
	stress/seat.c \
	stress/toggle.c \
	stress/toggle.h \
	stress/trace_log.c \
	stress/trace_log.h \
	stress/variant.c \
	stress/variant.h \
	stress/tsc_offset.c \
	stress/tsc_offset.h \
	stress/witness.c \
	stress/witness.h
libstress_la_LIBADD = $(HWLOC_LIBS) -lm

check_PROGRAMS += stress/tests/fuzz_proc_text
TESTS += stress/tests/fuzz_proc_text
EXTRA_DIST += \
	stress/tests/bench_run.h \
	stress/tests/pass_test.h \
	stress/tests/peer_checks.h \
	stress/tests/provoker_place.h \
	stress/tests/serve.h \
	stress/tests/fixtures/interrupts \
	stress/tests/fixtures/stat
CLEANFILES += stress/tests/fuzz_proc_text.crash

stress_tests_fuzz_proc_text_CPPFLAGS = $(fuzz_cppflags)
stress_tests_fuzz_proc_text_CFLAGS = $(fuzz_cflags)

if HAVE_CMOCKA
stress_tests = \
	stress/tests/test_bench_count \
	stress/tests/test_bench_crew \
	stress/tests/test_bench_flow \
	stress/tests/test_bench_hot \
	stress/tests/test_bench_invoke \
	stress/tests/test_bench_known \
	stress/tests/test_bench_latency \
	stress/tests/test_bench_latent \
	stress/tests/test_bench_loop \
	stress/tests/test_bench_method \
	stress/tests/test_bench_result \
	stress/tests/test_bench_samples \
	stress/tests/test_bench_scaling \
	stress/tests/test_bench_sites \
	stress/tests/test_bench_stall \
	stress/tests/test_bench_throughput \
	stress/tests/test_bench_toggle \
	stress/tests/test_bench_toggle_case \
	stress/tests/test_cell \
	stress/tests/test_code \
	stress/tests/test_gap \
	stress/tests/test_gap_judge \
	stress/tests/test_hand \
	stress/tests/test_isolate \
	stress/tests/test_noise \
	stress/tests/test_oracle \
	stress/tests/test_peer_process \
	stress/tests/test_peers \
	stress/tests/test_peers_jvm \
	stress/tests/test_place \
	stress/tests/test_placement \
	stress/tests/test_provoker \
	stress/tests/test_provoker_cell \
	stress/tests/test_trace_log \
	stress/tests/test_witness
check_PROGRAMS += $(stress_tests)
TESTS += $(stress_tests)
endif
