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
calibrate_libs = libcalibrate.la libresults.la libstress.la libpatchcore_internal.la

bin_PROGRAMS += tmax
tmax_SOURCES = calibrate/main.c
tmax_LDADD = $(calibrate_libs)

TESTS += calibrate/tests/test_proof.sh
EXTRA_DIST += calibrate/tests/test_proof.sh patchcore/tests/proof.c
