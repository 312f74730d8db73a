# SPDX-License-Identifier: MIT
# Metrics: what to measure, said in a language, becomes code at probes while a program runs.
noinst_LTLIBRARIES += libfastinst_language.la
libfastinst_language_la_SOURCES = \
	metrics/language/check.c \
	metrics/language/code.h \
	metrics/language/compile.c \
	metrics/language/grammar.y \
	metrics/language/focus.c \
	metrics/language/focus.h \
	metrics/language/plan.c \
	metrics/language/reader.h \
	metrics/language/request.h \
	metrics/language/tree.c \
	metrics/language/tree.h \
	metrics/language/words.l
# Before the first of them is compiled.
metrics/language/tree.lo metrics/language/words.lo: metrics/language/grammar.h

check_PROGRAMS += metrics/language/tests/fuzz_language
tests_compute += metrics/language/tests/fuzz_language
CLEANFILES += metrics/language/tests/fuzz_language.crash
metrics_language_tests_fuzz_language_SOURCES = metrics/language/tests/fuzz_language.c
metrics_language_tests_fuzz_language_CPPFLAGS = $(fuzz_cppflags)
metrics_language_tests_fuzz_language_CFLAGS = $(fuzz_cflags)
metrics_language_tests_fuzz_language_LDADD = libfastinst_language.la libfastinst_text.la

# What runs at probes changes no vector register.
noinst_LTLIBRARIES += libfastinst_snippet.la
libfastinst_snippet_la_SOURCES = \
	metrics/language/code.h \
	metrics/language/run.c \
	metrics/agent/values.h \
	metrics/agent/values_write.c
libfastinst_snippet_la_CFLAGS = $(AM_CFLAGS) -mgeneral-regs-only -fno-sanitize=all

noinst_LTLIBRARIES += libfastinst_values.la
libfastinst_values_la_SOURCES = metrics/agent/values_read.c metrics/agent/values.h

dist_pkgdata_DATA += metrics/library/metrics.mdl

# What "fastinst metrics" puts into a program.
pkglib_LTLIBRARIES += libfastinst-metrics.la
libfastinst_metrics_la_SOURCES = \
	patchcore/life/bind.c \
	patchcore/sigtrap/guard.c \
	agent/counts/base.c \
	agent/counts/base.h \
	agent/counts/exec.c \
	metrics/agent/agent.c \
	metrics/agent/agent.h \
	metrics/agent/program.c \
	metrics/agent/program.h
libfastinst_metrics_la_LIBADD = libfastinst_language.la libfastinst_snippet.la libfastinst_elf.la libfastinst_text.la \
	libfastinst.la libpatchcore.la
libfastinst_metrics_la_LDFLAGS = -module -avoid-version -shared -Wl,-z,nodelete -Wl,-z,now -Wl,-Bsymbolic $(HARDEN_LDFLAGS) \
	-Wl,--version-script=$(top_srcdir)/agent/counts/agent.map
EXTRA_libfastinst_metrics_la_DEPENDENCIES = agent/counts/agent.map

if HAVE_CMOCKA
metrics_tests = \
	metrics/agent/tests/test_values \
	metrics/language/tests/test_code \
	metrics/language/tests/test_request
check_PROGRAMS += $(metrics_tests)
tests_compute += $(metrics_tests)
metrics_agent_tests_test_values_LDADD = libfastinst_values.la libfastinst_snippet.la $(CMOCKA_LIBS)
metrics_language_tests_test_code_LDADD = libfastinst_language.la libfastinst_snippet.la libfastinst_text.la $(CMOCKA_LIBS)
metrics_language_tests_test_request_LDADD = libfastinst_language.la libfastinst_snippet.la libfastinst_text.la $(CMOCKA_LIBS)
endif
EXTRA_DIST += metrics/language/tests/paper.h
tests_race += metrics/tests/test_metrics.sh
EXTRA_DIST += metrics/tests/measured.c metrics/tests/test_metrics.sh
