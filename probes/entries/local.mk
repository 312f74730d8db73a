# SPDX-License-Identifier: MIT
# Entries of functions that nothing was compiled into.
libfastinst_internal_la_SOURCES += \
	probes/entries/entries.c
noinst_LTLIBRARIES += libfastinst_survey.la
libfastinst_survey_la_SOURCES = \
	probes/entries/survey.c \
	probes/entries/survey.h
libfastinst_internal_la_LIBADD += libfastinst_survey.la libfastinst_insn.la

if HAVE_CMOCKA
check_PROGRAMS += probes/entries/tests/test_entries
tests_race += probes/entries/tests/test_entries
probes_entries_tests_test_entries_LDFLAGS = -Wl,--wrap=survey_move,--wrap=object_is_own
probes_entries_tests_test_entries_LDADD = libfastinst_internal.la $(LDADD)
endif

tests_compute += probes/entries/tests/test_beside.sh probes/entries/tests/test_tables.sh
tests_race += probes/entries/tests/test_go.sh
EXTRA_DIST += probes/entries/tests/test_beside.sh probes/entries/tests/test_go.sh probes/entries/tests/test_tables.sh

check_PROGRAMS += probes/entries/tests/fuzz_survey
tests_compute += probes/entries/tests/fuzz_survey
CLEANFILES += probes/entries/tests/fuzz_survey.crash
probes_entries_tests_fuzz_survey_CPPFLAGS = $(fuzz_cppflags)
probes_entries_tests_fuzz_survey_CFLAGS = $(fuzz_cflags)
probes_entries_tests_fuzz_survey_LDFLAGS = -Wl,--wrap=elf_constant
probes_entries_tests_fuzz_survey_LDADD = libfastinst_survey.la libfastinst_insn.la libfastinst_elf.la

# By hand.
check_PROGRAMS += probes/entries/tests/costs
not_asan += probes/entries/tests/costs
probes_entries_tests_costs_LDADD = libfastinst.la

check_PROGRAMS += probes/entries/tests/many
not_asan += probes/entries/tests/many
probes_entries_tests_many_LDADD = libfastinst.la
tests_race += probes/entries/tests/test_many.sh
EXTRA_DIST += probes/entries/tests/test_many.sh

check_PROGRAMS += probes/entries/tests/uprobed
tests_race += probes/entries/tests/uprobed
probes_entries_tests_uprobed_LDADD = libfastinst.la libpatchcore.la
