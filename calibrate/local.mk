# SPDX-License-Identifier: MIT
noinst_LTLIBRARIES += libcalibrate.la
libcalibrate_la_SOURCES = \
	calibrate/bench_cmd.c \
	calibrate/bound.c \
	calibrate/bound.h \
	calibrate/calibrate_cmd.c \
	calibrate/commands.h \
	calibrate/conf_write.c \
	calibrate/conf_write.h \
	calibrate/estimate.c \
	calibrate/estimate.h \
	calibrate/exit_status.h \
	calibrate/here.c \
	calibrate/here.h \
	calibrate/info.c \
	calibrate/options.c \
	calibrate/options.h \
	calibrate/plan.c \
	calibrate/plan.h \
	calibrate/progress.c \
	calibrate/progress.h \
	calibrate/search.c \
	calibrate/search.h \
	calibrate/session.c \
	calibrate/session.h \
	calibrate/stress_cmd.c \
	calibrate/summary.c \
	calibrate/summary.h
libcalibrate_la_LIBADD = $(GSL_LIBS) $(LIBCPUID_LIBS)

bin_PROGRAMS += tmax
tmax_SOURCES = calibrate/main.c
tmax_LDADD = $(package_libs)

calibrate_script_tests = \
	calibrate/tests/test_cli.sh \
	calibrate/tests/test_faults.sh \
	calibrate/tests/test_proof.sh \
	calibrate/tests/test_run.sh
TESTS += $(calibrate_script_tests)
EXTRA_DIST += \
	$(calibrate_script_tests) \
	calibrate/tests/common.sh

if HAVE_CMOCKA
calibrate_tests = \
	calibrate/tests/test_bound \
	calibrate/tests/test_conf_write \
	calibrate/tests/test_estimate \
	calibrate/tests/test_options \
	calibrate/tests/test_plan \
	calibrate/tests/test_search
check_PROGRAMS += $(calibrate_tests)
TESTS += $(calibrate_tests)
endif
