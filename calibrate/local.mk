# SPDX-License-Identifier: MIT
noinst_LTLIBRARIES += libcalibrate.la
libcalibrate_la_SOURCES = \
	calibrate/bench_cmd.c \
	calibrate/bench_find.c \
	calibrate/bench_find.h \
	calibrate/bench_options.c \
	calibrate/bench_options.h \
	calibrate/bench_print.c \
	calibrate/bench_print.h \
	calibrate/bound.c \
	calibrate/bound.h \
	calibrate/calibrate_cmd.c \
	calibrate/calibrate_options.c \
	calibrate/calibrate_options.h \
	calibrate/climb.c \
	calibrate/climb.h \
	calibrate/commands.h \
	calibrate/conf_write.c \
	calibrate/conf_write.h \
	calibrate/estimate.c \
	calibrate/estimate.h \
	calibrate/estimate_json.c \
	calibrate/evidence.c \
	calibrate/evidence.h \
	calibrate/evidence_cmd.c \
	calibrate/exit_status.h \
	calibrate/experiment.c \
	calibrate/experiment.h \
	calibrate/factors.c \
	calibrate/factors.h \
	calibrate/gaps_cmd.c \
	calibrate/here.c \
	calibrate/here.h \
	calibrate/html.c \
	calibrate/html.h \
	calibrate/info.c \
	calibrate/ladder.c \
	calibrate/ladder.h \
	calibrate/long_wait.c \
	calibrate/long_wait.h \
	calibrate/one_cell.c \
	calibrate/one_cell.h \
	calibrate/options.c \
	calibrate/options.h \
	calibrate/paper.c \
	calibrate/paper.h \
	calibrate/paper_run.c \
	calibrate/paper_run.h \
	calibrate/plan.c \
	calibrate/plan.h \
	calibrate/progress.c \
	calibrate/progress.h \
	calibrate/report.c \
	calibrate/report.h \
	calibrate/report_bench.c \
	calibrate/report_bench.h \
	calibrate/report_cmd.c \
	calibrate/report_costs.c \
	calibrate/report_gaps.c \
	calibrate/report_machine.c \
	calibrate/report_noise.c \
	calibrate/report_page.h \
	calibrate/report_places.c \
	calibrate/report_provokers.c \
	calibrate/report_provokers.h \
	calibrate/report_rate.c \
	calibrate/report_rate.h \
	calibrate/report_tears.c \
	calibrate/report_verdict.c \
	calibrate/schedule.c \
	calibrate/schedule.h \
	calibrate/sequential.c \
	calibrate/sequential.h \
	calibrate/session.c \
	calibrate/session.h \
	calibrate/session_noise.c \
	calibrate/shard.c \
	calibrate/shard.h \
	calibrate/stress_cmd.c \
	calibrate/summary.c \
	calibrate/summary.h \
	calibrate/sums.c \
	calibrate/sums.h \
	calibrate/tail_plan.c \
	calibrate/tail_plan.h \
	calibrate/tail_run.c \
	calibrate/tail_run.h \
	calibrate/targets.c \
	calibrate/targets.h \
	calibrate/verify.c \
	calibrate/verify.h \
	calibrate/verify_cmd.c \
	calibrate/verify_conf.c \
	calibrate/verify_conf.h \
	calibrate/verify_print.c \
	calibrate/verify_print.h \
	calibrate/verify_run.c \
	calibrate/verify_run.h
libcalibrate_la_LIBADD = $(GSL_LIBS) $(LIBCPUID_LIBS)

bin_PROGRAMS += tmax
tmax_SOURCES = calibrate/main.c
tmax_LDADD = $(package_libs)

calibrate_script_tests = \
	calibrate/tests/test_bench.sh \
	calibrate/tests/test_cli.sh \
	calibrate/tests/test_faults.sh \
	calibrate/tests/test_gaps.sh \
	calibrate/tests/test_proof.sh \
	calibrate/tests/test_report.sh \
	calibrate/tests/test_run.sh \
	calibrate/tests/test_shard.sh \
	calibrate/tests/test_verify.sh
TESTS += $(calibrate_script_tests)
EXTRA_DIST += \
	$(calibrate_script_tests) \
	calibrate/tests/bench_sample.h \
	calibrate/tests/common.sh \
	calibrate/tests/conf_place.h \
	calibrate/tests/session_place.h \
	calibrate/tests/report_place.h \
	calibrate/tests/report_sample.h \
	calibrate/tests/sums_sample.h \
	calibrate/tests/verify_sample.h

check_PROGRAMS += calibrate/tests/report_journal

# It needs the samples that cmocka's tests have, which assert by it.
if HAVE_CMOCKA
check_PROGRAMS += calibrate/tests/fuzz_evidence
TESTS += calibrate/tests/fuzz_evidence
endif
CLEANFILES += calibrate/tests/fuzz_evidence.crash

calibrate_tests_fuzz_evidence_CPPFLAGS = $(fuzz_cppflags)
calibrate_tests_fuzz_evidence_CFLAGS = $(fuzz_cflags)

if HAVE_CMOCKA
calibrate_tests = \
	calibrate/tests/test_bench_print \
	calibrate/tests/test_bound \
	calibrate/tests/test_climb \
	calibrate/tests/test_conf_target \
	calibrate/tests/test_conf_write \
	calibrate/tests/test_coverage \
	calibrate/tests/test_estimate \
	calibrate/tests/test_evidence \
	calibrate/tests/test_experiment \
	calibrate/tests/test_factors \
	calibrate/tests/test_ladder \
	calibrate/tests/test_long_wait \
	calibrate/tests/test_options \
	calibrate/tests/test_paper \
	calibrate/tests/test_plan \
	calibrate/tests/test_report \
	calibrate/tests/test_report_bench \
	calibrate/tests/test_report_parts \
	calibrate/tests/test_schedule \
	calibrate/tests/test_sequential \
	calibrate/tests/test_session \
	calibrate/tests/test_sums \
	calibrate/tests/test_summary \
	calibrate/tests/test_tail_plan \
	calibrate/tests/test_targets \
	calibrate/tests/test_verify \
	calibrate/tests/test_verify_print \
	calibrate/tests/test_verify_run
check_PROGRAMS += $(calibrate_tests)
TESTS += $(calibrate_tests)
endif
