# SPDX-License-Identifier: MIT
noinst_LTLIBRARIES += libcalibrate.la
libcalibrate_la_SOURCES = \
	calibrate/climb/climb.c \
	calibrate/climb/climb.h \
	calibrate/climb/schedule.c \
	calibrate/climb/schedule.h \
	calibrate/commands/calibrate_cmd.c \
	calibrate/commands/calibrate_options.c \
	calibrate/commands/calibrate_options.h \
	calibrate/commands/evidence_cmd.c \
	calibrate/commands/gaps_cmd.c \
	calibrate/commands/info.c \
	calibrate/commands/one_cell.c \
	calibrate/commands/one_cell.h \
	calibrate/commands/report_cmd.c \
	calibrate/commands/stress_cmd.c \
	calibrate/commands/verify_cmd.c \
	calibrate/conf/conf_write.c \
	calibrate/conf/conf_write.h \
	calibrate/conf/summary.c \
	calibrate/conf/summary.h \
	calibrate/experiment/experiment.c \
	calibrate/experiment/experiment.h \
	calibrate/experiment/paper.c \
	calibrate/experiment/paper.h \
	calibrate/experiment/paper_run.c \
	calibrate/experiment/paper_run.h \
	calibrate/experiment/shard.c \
	calibrate/experiment/shard.h \
	calibrate/experiment/tail_plan.c \
	calibrate/experiment/tail_plan.h \
	calibrate/experiment/tail_run.c \
	calibrate/experiment/tail_run.h \
	calibrate/ladder/ladder.c \
	calibrate/ladder/ladder.h \
	calibrate/ladder/plan.c \
	calibrate/ladder/plan.h \
	calibrate/page/html.c \
	calibrate/page/html.h \
	calibrate/page/report_page.c \
	calibrate/page/report_page.h \
	calibrate/program/commands.h \
	calibrate/program/exit_status.h \
	calibrate/program/here.c \
	calibrate/program/here.h \
	calibrate/program/options.c \
	calibrate/program/options.h \
	calibrate/report/report.c \
	calibrate/report/report.h \
	calibrate/report/report_gaps.c \
	calibrate/report/report_machine.c \
	calibrate/report/report_noise.c \
	calibrate/report/report_places.c \
	calibrate/report/report_provokers.c \
	calibrate/report/report_provokers.h \
	calibrate/report/report_rate.c \
	calibrate/report/report_rate.h \
	calibrate/report/report_tears.c \
	calibrate/report/report_verdict.c \
	calibrate/report/sections.h \
	calibrate/session/progress.c \
	calibrate/session/progress.h \
	calibrate/session/session.c \
	calibrate/session/session.h \
	calibrate/session/session_noise.c \
	calibrate/statistics/bound.c \
	calibrate/statistics/bound.h \
	calibrate/statistics/estimate.c \
	calibrate/statistics/estimate.h \
	calibrate/statistics/estimate_json.c \
	calibrate/statistics/evidence.c \
	calibrate/statistics/evidence.h \
	calibrate/statistics/factors.c \
	calibrate/statistics/factors.h \
	calibrate/statistics/long_wait.c \
	calibrate/statistics/long_wait.h \
	calibrate/statistics/sequential.c \
	calibrate/statistics/sequential.h \
	calibrate/statistics/sums.c \
	calibrate/statistics/sums.h \
	calibrate/verify/verify.c \
	calibrate/verify/verify.h \
	calibrate/verify/verify_conf.c \
	calibrate/verify/verify_conf.h \
	calibrate/verify/verify_print.c \
	calibrate/verify/verify_print.h \
	calibrate/verify/verify_run.c \
	calibrate/verify/verify_run.h
libcalibrate_la_LIBADD = $(GSL_LIBS) $(LIBCPUID_LIBS)

dist_pkgdata_DATA += \
	calibrate/report/gaps.gp \
	calibrate/report/rate.gp \
	calibrate/report/witnesses.gp

bin_PROGRAMS += tmax
tmax_SOURCES = calibrate/commands/main.c
tmax_LDADD = $(package_libs)

calibrate_script_tests = \
	calibrate/tests/commands/test_cli.sh \
	calibrate/tests/commands/test_faults.sh \
	calibrate/tests/commands/test_gaps.sh \
	calibrate/tests/commands/test_proof.sh \
	calibrate/tests/commands/test_run.sh \
	calibrate/tests/experiment/test_shard.sh \
	calibrate/tests/report/test_report.sh \
	calibrate/tests/verify/test_verify.sh
TESTS += $(calibrate_script_tests)
EXTRA_DIST += \
	$(calibrate_script_tests) \
	calibrate/tests/common.sh \
	calibrate/tests/conf_place.h \
	calibrate/tests/report_place.h \
	calibrate/tests/report_sample.h \
	calibrate/tests/session_place.h \
	calibrate/tests/sums_sample.h \
	calibrate/tests/verify_sample.h

check_PROGRAMS += calibrate/tests/report/report_journal

# It needs the samples that cmocka's tests have, which assert by it.
if HAVE_CMOCKA
check_PROGRAMS += calibrate/tests/statistics/fuzz_evidence
TESTS += calibrate/tests/statistics/fuzz_evidence
endif
CLEANFILES += calibrate/tests/statistics/fuzz_evidence.crash

calibrate_tests_statistics_fuzz_evidence_CPPFLAGS = $(fuzz_cppflags)
calibrate_tests_statistics_fuzz_evidence_CFLAGS = $(fuzz_cflags)

if HAVE_CMOCKA
calibrate_tests = \
	calibrate/tests/climb/test_climb \
	calibrate/tests/climb/test_schedule \
	calibrate/tests/commands/test_options \
	calibrate/tests/conf/test_conf_target \
	calibrate/tests/conf/test_conf_write \
	calibrate/tests/conf/test_summary \
	calibrate/tests/experiment/test_experiment \
	calibrate/tests/experiment/test_paper \
	calibrate/tests/experiment/test_tail_plan \
	calibrate/tests/ladder/test_ladder \
	calibrate/tests/ladder/test_plan \
	calibrate/tests/report/test_report \
	calibrate/tests/report/test_report_parts \
	calibrate/tests/session/test_session \
	calibrate/tests/statistics/test_bound \
	calibrate/tests/statistics/test_coverage \
	calibrate/tests/statistics/test_estimate \
	calibrate/tests/statistics/test_evidence \
	calibrate/tests/statistics/test_factors \
	calibrate/tests/statistics/test_long_wait \
	calibrate/tests/statistics/test_sequential \
	calibrate/tests/statistics/test_sums \
	calibrate/tests/verify/test_verify \
	calibrate/tests/verify/test_verify_print \
	calibrate/tests/verify/test_verify_run
check_PROGRAMS += $(calibrate_tests)
TESTS += $(calibrate_tests)
endif
