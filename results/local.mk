# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libresults.a
libresults_a_SOURCES = \
	results/figures/figure.c \
	results/figures/figure.h \
	results/figures/gnuplot.c \
	results/figures/gnuplot.h \
	results/figures/tally.c \
	results/figures/tally.h \
	results/journal/fields.h \
	results/journal/journal.c \
	results/journal/journal.h \
	results/journal/record.c

dist_pkgdata_DATA += \
	results/figures/figure.gp \
	results/figures/figure9.gp \
	results/journal/tmax_journal.py \
	results/schema/fastinst-1.json \
	results/schema/journal-2.json

# What a config looks like: of another machine, so that the library refuses it.
dist_examples_DATA += results/runs/amd-25-17-1-kvm-ladder/machine.conf

check_PROGRAMS += \
	results/journal/tests/fuzz_journal \
	results/journal/tests/sample_journal
tests_compute += results/journal/tests/fuzz_journal results/journal/tests/test_schema.sh
tests_read += results/journal/tests/test_reader.sh
not_asan += results/journal/tests/test_schema.sh
EXTRA_DIST += \
	results/tests/figure_place.h \
	results/tests/fuzz.h \
	results/journal/tests/test_reader.sh \
	results/journal/tests/test_schema.sh \
	results/tests/journal_place.h \
	results/tests/junit.xsd \
	results/tests/sample.h \
	results/tests/svg_check.h \
	results/tests/validate.py
CLEANFILES += results/journal/tests/fuzz_journal.crash

results_journal_tests_fuzz_journal_CPPFLAGS = $(fuzz_cppflags)
results_journal_tests_fuzz_journal_CFLAGS = $(fuzz_cflags)

in_dist += \
	results/figures/tests/test_figure \
	results/journal/tests/sample_journal \
	results/journal/tests/test_schema.sh

if HAVE_CMOCKA
results_tests = \
	results/figures/tests/test_caption \
	results/figures/tests/test_figure \
	results/figures/tests/test_figure_drawn \
	results/journal/tests/test_gap_record \
	results/journal/tests/test_lines \
	results/journal/tests/test_record
results_reading = results/journal/tests/test_journal
check_PROGRAMS += $(results_tests) $(results_reading)
tests_compute += $(results_tests)
tests_read += $(results_reading)
not_asan += results/figures/tests/test_figure results/figures/tests/test_figure_drawn
endif
