# SPDX-License-Identifier: MIT
noinst_LTLIBRARIES += libresults.la
libresults_la_SOURCES = \
	results/bench_data.h \
	results/bench_figure.c \
	results/bench_figure.h \
	results/bench_latency.c \
	results/bench_record.c \
	results/bench_record.h \
	results/bench_rows.c \
	results/bench_scaling.c \
	results/bench_throughput.c \
	results/bench_words.c \
	results/bench_words.h \
	results/caption.c \
	results/caption.h \
	results/figure.c \
	results/figure.h \
	results/gap_record.c \
	results/gap_record.h \
	results/gnuplot.c \
	results/gnuplot.h \
	results/journal.c \
	results/journal.h \
	results/json_text.h \
	results/record.c
libresults_la_LIBADD = $(JANSSON_LIBS)

dist_pkgdata_DATA += results/schema/journal-2.json

check_PROGRAMS += \
	results/tests/fuzz_journal \
	results/tests/sample_journal
TESTS += \
	results/tests/fuzz_journal \
	results/tests/test_schema.sh
EXTRA_DIST += \
	results/tests/figure_place.h \
	results/tests/fuzz_driver.h \
	results/tests/journal_place.h \
	results/tests/sample.h \
	results/tests/sample_bench.h \
	results/tests/svg_check.h \
	results/tests/test_schema.sh \
	results/tests/validate.py
CLEANFILES += results/tests/fuzz_journal.crash

results_tests_fuzz_journal_CPPFLAGS = $(fuzz_cppflags)
results_tests_fuzz_journal_CFLAGS = $(fuzz_cflags)

if HAVE_CMOCKA
results_tests = \
	results/tests/test_bench_figure \
	results/tests/test_bench_record \
	results/tests/test_caption \
	results/tests/test_figure \
	results/tests/test_figure_drawn \
	results/tests/test_gap_record \
	results/tests/test_journal \
	results/tests/test_lines \
	results/tests/test_record
check_PROGRAMS += $(results_tests)
TESTS += $(results_tests)
endif
