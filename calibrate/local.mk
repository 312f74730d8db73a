# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libcalibrate.a
libcalibrate_a_SOURCES = \
	calibrate/session/climb.c \
	calibrate/session/pairs.c \
	calibrate/session/schedule.c \
	calibrate/session/schedule.h \
	commands/tmax/calibrate_cmd.c \
	commands/tmax/calibrate_cmd.h \
	commands/tmax/evidence_cmd.c \
	commands/tmax/export_cmd.c \
	commands/tmax/info.c \
	commands/tmax/one_cell_cmd.c \
	commands/tmax/protocols.h \
	commands/tmax/protocols_cmd.c \
	commands/tmax/protocols_print.c \
	commands/tmax/report_cmd.c \
	commands/tmax/verify_cmd.c \
	calibrate/verify/conf_write.c \
	calibrate/verify/conf_write.h \
	calibrate/verify/summary.c \
	calibrate/session/experiment.c \
	calibrate/session/experiment.h \
	calibrate/plan/plan.c \
	calibrate/plan/plan.h \
	results/figures/html.h \
	results/figures/report_page.c \
	results/figures/report_page.h \
	stress/cell/cell_options.c \
	commands/tmax/commands.h \
	stress/placement/cpuid.c \
	results/figures/markup.c \
	results/figures/markup.h \
	commands/report/report.c \
	commands/report/report.h \
	commands/report/report_cells.c \
	commands/report/report_gaps.c \
	commands/report/report_machine.c \
	commands/report/report_protocols.c \
	commands/report/report_rate.c \
	commands/report/report_verdict.c \
	calibrate/session/session.c \
	calibrate/session/session.h \
	calibrate/statistics/bound.c \
	calibrate/statistics/bound.h \
	calibrate/statistics/claim.c \
	calibrate/statistics/estimate.c \
	calibrate/statistics/estimate.h \
	calibrate/statistics/estimate_fields.c \
	calibrate/statistics/evidence.c \
	calibrate/statistics/evidence.h \
	calibrate/statistics/long_wait.c \
	calibrate/statistics/protocol_rows.c \
	calibrate/statistics/protocol_rows.h \
	calibrate/statistics/sums.c \
	calibrate/statistics/sums.h \
	calibrate/verify/verify.c \
	calibrate/verify/verify.h \
	calibrate/verify/verify_print.c \
	calibrate/verify/verify_run.c

dist_pkgdata_DATA += \
	calibrate/session/tail.cells \
	results/figures/page.css \
	commands/report/gaps.gp \
	commands/report/ladder.gp \
	commands/report/protocols.gp

nodist_pkgdata_DATA += calibrate/session/paper.cells
EXTRA_DIST += calibrate/session/paper.awk
CLEANFILES += calibrate/session/paper.cells
calibrate/session/paper.cells: calibrate/session/paper.awk
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
		$(AWK) -f $(srcdir)/calibrate/session/paper.awk >$@.new && mv $@.new $@

calibrate_script_tests = \
	commands/tmax/tests/test_faults.sh \
	commands/tmax/tests/test_foreign.sh \
	commands/tmax/tests/test_interrupted.sh \
	commands/tmax/tests/test_resume.sh \
	commands/tmax/tests/test_run.sh \
	commands/tmax/tests/test_verify.sh \
	calibrate/session/tests/test_shard.sh
calibrate_script_reading = \
	commands/tmax/tests/test_cli.sh \
	commands/tmax/tests/test_completion.sh \
	commands/tmax/tests/test_export.sh \
	commands/tmax/tests/test_json.sh \
	commands/tmax/tests/test_report.sh
calibrate_script_alone = commands/tmax/tests/test_gaps.sh
calibrate_script_computing = commands/tmax/tests/test_hostile.sh
calibrate_script_racing = commands/tmax/tests/test_proof.sh commands/tmax/tests/test_protocols.sh
tests_calibrate += $(calibrate_script_tests)
tests_read += $(calibrate_script_reading)
tests_alone += $(calibrate_script_alone)
tests_compute += $(calibrate_script_computing)
tests_race += $(calibrate_script_racing)
not_asan += $(calibrate_script_tests) $(calibrate_script_computing)
EXTRA_DIST += \
	$(calibrate_script_tests) \
	$(calibrate_script_reading) \
	$(calibrate_script_alone) \
	$(calibrate_script_computing) \
	$(calibrate_script_racing) \
	calibrate/tests/common.sh \
	calibrate/tests/conf_place.h \
	calibrate/tests/experiment_place.h \
	calibrate/tests/hostile.py \
	calibrate/tests/report_place.h \
	calibrate/tests/report_sample.h \
	calibrate/session/tests/climb_machine.h \
	calibrate/tests/session_place.h \
	calibrate/tests/sums_sample.h \
	calibrate/tests/verify_sample.h \
	calibrate/tests/weather_sample.h

check_PROGRAMS += calibrate/session/tests/fuzz_cells
tests_compute += calibrate/session/tests/fuzz_cells
CLEANFILES += calibrate/session/tests/fuzz_cells.crash

calibrate_session_tests_fuzz_cells_CPPFLAGS = $(fuzz_cppflags)
calibrate_session_tests_fuzz_cells_CFLAGS = $(fuzz_cflags)

# It needs the samples that cmocka's tests have, which assert by it.
if HAVE_CMOCKA
check_PROGRAMS += calibrate/statistics/tests/fuzz_evidence
tests_compute += calibrate/statistics/tests/fuzz_evidence
endif
CLEANFILES += calibrate/statistics/tests/fuzz_evidence.crash

calibrate_statistics_tests_fuzz_evidence_CPPFLAGS = $(fuzz_cppflags)
calibrate_statistics_tests_fuzz_evidence_CFLAGS = $(fuzz_cflags)

if HAVE_CMOCKA
calibrate_tests = \
	calibrate/verify/tests/test_conf_target \
	calibrate/verify/tests/test_conf_write \
	calibrate/verify/tests/test_summary \
	calibrate/session/tests/test_cells \
	calibrate/session/tests/test_experiment \
	calibrate/session/tests/test_paper \
	calibrate/session/tests/test_tail \
	calibrate/plan/tests/test_ladder \
	calibrate/plan/tests/test_plan \
	commands/report/tests/test_levels \
	commands/report/tests/test_report \
	commands/report/tests/test_report_parts \
	calibrate/statistics/tests/test_bound \
	calibrate/statistics/tests/test_estimate \
	calibrate/statistics/tests/test_evidence \
	calibrate/statistics/tests/test_long_wait \
	calibrate/statistics/tests/test_sums
calibrate_computing = \
	calibrate/session/tests/test_climb \
	calibrate/session/tests/test_climb_pairs \
	calibrate/session/tests/test_climb_resumed \
	calibrate/session/tests/test_quick \
	calibrate/session/tests/test_schedule \
	commands/tmax/tests/test_options \
	commands/tmax/tests/test_protocols_print \
	calibrate/session/tests/test_session \
	calibrate/statistics/tests/test_coverage \
	calibrate/verify/tests/test_power \
	calibrate/verify/tests/test_verify \
	calibrate/verify/tests/test_verify_print \
	calibrate/verify/tests/test_verify_run
check_PROGRAMS += $(calibrate_tests) $(calibrate_computing)
tests_read += $(calibrate_tests)
tests_compute += $(calibrate_computing)
not_asan += \
	calibrate/session/tests/test_climb \
	calibrate/session/tests/test_climb_pairs \
	calibrate/session/tests/test_climb_resumed \
	calibrate/session/tests/test_quick \
	calibrate/session/tests/test_schedule \
	calibrate/statistics/tests/test_coverage
climb_machine = calibrate/session/tests/climb_machine.c
calibrate_session_tests_test_climb_SOURCES = calibrate/session/tests/test_climb.c $(climb_machine)
calibrate_session_tests_test_climb_pairs_SOURCES = \
	calibrate/session/tests/test_climb_pairs.c $(climb_machine)
calibrate_session_tests_test_climb_resumed_SOURCES = \
	calibrate/session/tests/test_climb_resumed.c $(climb_machine)
calibrate_session_tests_test_climb_LDFLAGS = -Wl,--wrap=gap_run
calibrate_session_tests_test_climb_pairs_LDFLAGS = -Wl,--wrap=gap_run
calibrate_session_tests_test_climb_resumed_LDFLAGS = -Wl,--wrap=gap_run
calibrate_verify_tests_test_verify_run_LDFLAGS = -Wl,--wrap=session_run,--wrap=session_left
endif
