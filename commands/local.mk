# SPDX-License-Identifier: MIT
# The programs, a file per command.
bin_PROGRAMS += tmax
tmax_SOURCES = commands/tmax/main.c
tmax_LDADD = $(package_libs)
tmax_LDFLAGS = $(HARDEN_LDFLAGS) $(HARDEN_PIE)

# What the shells complete, of the program's own tables.
bashcompletiondir = $(datadir)/bash-completion/completions
zshcompletiondir = $(datadir)/zsh/site-functions
nodist_bashcompletion_DATA = completion/tmax
nodist_zshcompletion_DATA = completion/_tmax
EXTRA_DIST += commands/tmax/completion.awk
CLEANFILES += completion/tmax completion/_tmax completion/fastinst completion/_fastinst
completion/tmax completion/_tmax: tmax$(EXEEXT)
completion/fastinst completion/_fastinst: fastinst$(EXEEXT)
completion/tmax completion/_tmax completion/fastinst completion/_fastinst: commands/tmax/completion.awk
	$(AM_V_GEN)$(MKDIR_P) $(@D) && program=$(@F) && ./$${program#_}$(EXEEXT) completion >$@.new && \
		$(AWK) -v file=$(@F) -f $(srcdir)/commands/tmax/completion.awk $@.new >$@.script && \
		rm $@.new && mv $@.script $@

# Programs that read what tmax exports.
dist_examples_DATA += commands/examples/staleness.c commands/examples/staleness.rs

bin_PROGRAMS += fastinst
fastinst_SOURCES = \
	commands/fastinst/attach.c \
	commands/fastinst/command.h \
	commands/fastinst/control.c \
	commands/fastinst/counts.c \
	commands/fastinst/fastinst.c \
	commands/fastinst/list.c \
	commands/fastinst/metrics.c \
	commands/fastinst/metrics.h \
	commands/fastinst/metrics_print.c \
	commands/fastinst/metrics_text.c \
	commands/fastinst/run.c \
	commands/fastinst/source_of.c \
	commands/fastinst/top.c \
	commands/fastinst/trace.c \
	commands/fastinst/trace_filter.c \
	commands/fastinst/trace_read.c \
	commands/fastinst/trace_value.c \
	commands/fastinst/trace_write.c \
	commands/fastinst/trace.h \
	commands/fastinst/why.c \
	agent/launch/launch.c \
	agent/launch/launch.h \
	commands/fastinst/sites.c \
	commands/fastinst/sites.h \
	agent/counts/ring.c \
	agent/counts/ring.h
fastinst_CPPFLAGS = $(AM_CPPFLAGS) -DPKGLIBDIR='"$(pkglibdir)"'
fastinst_LDADD = libfastinst_language.la libfastinst_values.la libfastinst_internal.la libfastinst_inject.la libpatchcore_internal.la libresults.a libstress.a $(JANSSON_LIBS) $(LZMA_LIBS)
fastinst_LDFLAGS = $(HARDEN_LDFLAGS) $(HARDEN_PIE)
nodist_bashcompletion_DATA += completion/fastinst
nodist_zshcompletion_DATA += completion/_fastinst

include commands/fastinst/tests/real/local.mk

tests_wait += \
	commands/fastinst/tests/test_attach.sh \
	commands/fastinst/tests/test_leftovers.sh
tests_race += \
	commands/fastinst/tests/test_control.sh \
	commands/fastinst/tests/test_detach.sh \
	commands/fastinst/tests/test_ends.sh \
	commands/fastinst/tests/test_fastinst.sh \
	commands/fastinst/tests/test_filters.sh \
	commands/fastinst/tests/test_limits.sh \
	commands/fastinst/tests/test_masked.sh \
	commands/fastinst/tests/test_others.sh \
	commands/fastinst/tests/test_patterns.sh \
	commands/fastinst/tests/test_refused.sh \
	commands/fastinst/tests/test_waits.sh
tests_compute += \
	commands/fastinst/tests/test_completion.sh \
	commands/fastinst/tests/test_floats.sh \
	commands/fastinst/tests/test_handed.sh \
	commands/fastinst/tests/test_odd.sh \
	commands/fastinst/tests/test_top.sh \
	commands/fastinst/tests/test_trace.sh \
	commands/fastinst/tests/test_usage.sh \
	commands/fastinst/tests/test_why.sh \
	commands/fastinst/tests/test_list.sh
EXTRA_DIST += \
	commands/fastinst/tests/counted.c \
	commands/fastinst/tests/floats.c \
	commands/fastinst/tests/named.c \
	commands/fastinst/tests/compare_args.py \
	commands/fastinst/tests/exported.c \
	commands/fastinst/tests/handed.cc \
	commands/fastinst/tests/odd.c \
	commands/fastinst/tests/odd.cc \
	commands/fastinst/tests/tell.h \
	commands/fastinst/tests/tree.c \
	commands/fastinst/tests/stack.c \
	commands/fastinst/tests/plugin.c \
	commands/fastinst/tests/test_attach.sh \
	commands/fastinst/tests/test_completion.sh \
	commands/fastinst/tests/test_control.sh \
	commands/fastinst/tests/test_detach.sh \
	commands/fastinst/tests/test_ends.sh \
	commands/fastinst/tests/test_fastinst.sh \
	commands/fastinst/tests/filtered.c \
	commands/fastinst/tests/refused.c \
	commands/fastinst/tests/test_leftovers.sh \
	commands/fastinst/tests/test_filters.sh \
	commands/fastinst/tests/test_floats.sh \
	commands/fastinst/tests/test_handed.sh \
	commands/fastinst/tests/test_odd.sh \
	commands/fastinst/tests/test_limits.sh \
	commands/fastinst/tests/masked.c \
	commands/fastinst/tests/test_masked.sh \
	commands/fastinst/tests/test_others.sh \
	commands/fastinst/tests/test_patterns.sh \
	commands/fastinst/tests/test_refused.sh \
	commands/fastinst/tests/test_top.sh \
	commands/fastinst/tests/test_trace.sh \
	commands/fastinst/tests/test_usage.sh \
	commands/fastinst/tests/test_waits.sh \
	commands/fastinst/tests/waits.c \
	commands/fastinst/tests/test_why.sh \
	commands/fastinst/tests/traced.c \
	commands/fastinst/tests/listed.c \
	commands/fastinst/tests/test_list.sh
check_PROGRAMS += commands/fastinst/tests/fuzz_sites
tests_compute += commands/fastinst/tests/fuzz_sites
CLEANFILES += commands/fastinst/tests/fuzz_sites.crash
commands_fastinst_tests_fuzz_sites_SOURCES = commands/fastinst/sites.c commands/fastinst/tests/fuzz_sites.c
commands_fastinst_tests_fuzz_sites_CPPFLAGS = $(fuzz_cppflags)
commands_fastinst_tests_fuzz_sites_CFLAGS = $(fuzz_cflags)
commands_fastinst_tests_fuzz_sites_LDFLAGS = -Wl,--wrap=elf_inside
commands_fastinst_tests_fuzz_sites_LDADD = libfastinst_internal.la libfastinst_text.la libpatchcore_internal.la
check_PROGRAMS += commands/report/tests/report_journal
tests_race += commands/tmax/tests/test_litmus.sh
EXTRA_DIST += commands/tmax/tests/test_litmus.sh
tests_calibrate += commands/tmax/tests/test_conform.sh
not_asan += commands/tmax/%
EXTRA_DIST += commands/tmax/tests/test_conform.sh
tests_read += commands/tmax/tests/test_fleet.sh
EXTRA_DIST += commands/tmax/tests/test_fleet.sh
tests_read += commands/report/tests/test_page_fits.sh
EXTRA_DIST += commands/report/tests/test_page_fits.sh
