# SPDX-License-Identifier: MIT
# Profiles from probes. What computes and writes is used by the program; what samples goes into programs.
noinst_LTLIBRARIES += libfastinst_estimate.la
libfastinst_estimate_la_SOURCES = \
	profile/estimate/duration.c \
	profile/estimate/estimate.c \
	profile/estimate/estimate.h \
	profile/estimate/pace.c
libfastinst_estimate_la_LIBADD = -lm

noinst_LTLIBRARIES += libfastinst_writers.la
libfastinst_writers_la_SOURCES = \
	profile/estimate/profile.c \
	profile/estimate/profile.h \
	profile/command/command.h \
	profile/command/edges.c \
	profile/command/format.c \
	profile/command/json.c \
	profile/command/lines.c \
	profile/command/lines.h \
	profile/command/pprof.c \
	profile/command/table.c \
	profile/command/text.c
libfastinst_writers_la_LIBADD = libfastinst_estimate.la libfastinst_lines.la libfastinst_internal.la libfastinst_names.la \
	libfastinst_text.la $(JANSSON_LIBS)

# The lines that blocks stand on.
noinst_LTLIBRARIES += libfastinst_lines.la
libfastinst_lines_la_SOURCES = profile/command/read.c
libfastinst_lines_la_CFLAGS = $(AM_CFLAGS) $(LIBDW_CFLAGS)
libfastinst_lines_la_LIBADD = $(LIBDW_LIBS)

# Pages are strings in the program.
SUFFIXES = .html .inc
.html.inc:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	sed 's/\\/\\\\/g; s/"/\\"/g; s/^/"/; s/$$/\\n"/' $< > $@.tmp && mv $@.tmp $@
profile/command/format.lo: profile/command/head.inc profile/command/calls.inc profile/command/edges.inc
page_texts = \
	profile/command/calls.html \
	profile/command/edges.html \
	profile/command/head.html
EXTRA_DIST += $(page_texts)
CLEANFILES += $(page_texts:.html=.inc)

check_PROGRAMS += profile/command/tests/write_sample
profile_command_tests_write_sample_SOURCES = profile/command/tests/write_sample.c
profile_command_tests_write_sample_LDADD = libfastinst_writers.la libpatchcore_internal.la libstress.a
tests_read += profile/command/tests/test_writers.sh
EXTRA_DIST += \
	profile/command/tests/profile-judge \
	profile/command/tests/profile-short \
	profile/command/tests/test_writers.sh

if HAVE_CMOCKA
profile_tests = \
	profile/estimate/tests/test_duration \
	profile/estimate/tests/test_estimate \
	profile/estimate/tests/test_pace \
	profile/estimate/tests/test_share
check_PROGRAMS += $(profile_tests)
tests_compute += $(profile_tests)
not_asan += profile/estimate/tests/test_estimate
profile_estimate_tests_test_duration_LDADD = libfastinst_writers.la $(CMOCKA_LIBS)
profile_estimate_tests_test_estimate_LDADD = libfastinst_writers.la $(CMOCKA_LIBS)
profile_estimate_tests_test_pace_LDADD = libfastinst_writers.la $(CMOCKA_LIBS)
profile_estimate_tests_test_share_LDADD = libfastinst_writers.la $(CMOCKA_LIBS)
endif

# What both agents have in common.
session_sources = \
	patchcore/life/bind.c \
	patchcore/sigtrap/guard.c \
	agent/counts/alone.c \
	agent/counts/base.c \
	agent/counts/base.h \
	agent/counts/exec.c \
	agent/counts/pin.c \
	profile/sample/sample.h \
	profile/sampler/session.c \
	profile/sampler/session.h
session_map = profile/sampler/agent.map
session_ldflags = -module -avoid-version -shared -Wl,-z,nodelete -Wl,-z,now -Wl,-Bsymbolic $(HARDEN_LDFLAGS) \
	-Wl,--version-script=$(top_srcdir)/$(session_map)
EXTRA_DIST += $(session_map)

# What "fastinst profile" puts into a program.
pkglib_LTLIBRARIES += libfastinst-profile.la
libfastinst_profile_la_SOURCES = \
	$(session_sources) \
	profile/sampler/agent.c \
	profile/sampler/epochs.c \
	profile/sampler/epochs.h \
	profile/sampler/bursts.c \
	profile/sampler/windows.c \
	profile/sample/callers.c \
	profile/sample/exits.c \
	profile/sample/burst.c \
	profile/sample/price.c \
	profile/sample/ring.c \
	profile/sample/sample.h \
	profile/sample/watch.c
libfastinst_profile_la_LIBADD = libfastinst_elf.la libfastinst_estimate.la libfastinst_text.la libfastinst.la libpatchcore.la
libfastinst_profile_la_LDFLAGS = $(session_ldflags)
EXTRA_libfastinst_profile_la_DEPENDENCIES = $(session_map)

if HAVE_CMOCKA
check_PROGRAMS += profile/sample/tests/test_frames
tests_compute += profile/sample/tests/test_frames
profile_sample_tests_test_frames_SOURCES = \
	profile/sample/ring.c \
	profile/sample/tests/test_frames.c
# An object of its own: the agent has one of libtool.
profile_sample_tests_test_frames_CFLAGS = $(AM_CFLAGS)
profile_sample_tests_test_frames_LDADD = $(CMOCKA_LIBS)
check_PROGRAMS += profile/sample/tests/test_watch
tests_compute += profile/sample/tests/test_watch
profile_sample_tests_test_watch_SOURCES = \
	profile/sample/callers.c \
	profile/sample/burst.c \
	profile/sample/tests/test_watch.c
profile_sample_tests_test_watch_CFLAGS = $(AM_CFLAGS)
profile_sample_tests_test_watch_LDADD = libfastinst_estimate.la $(CMOCKA_LIBS)
check_PROGRAMS += profile/sample/tests/test_burst
tests_compute += profile/sample/tests/test_burst
profile_sample_tests_test_burst_SOURCES = \
	profile/sample/callers.c \
	profile/sample/tests/test_burst.c
profile_sample_tests_test_burst_CFLAGS = $(AM_CFLAGS)
profile_sample_tests_test_burst_LDADD = libfastinst_estimate.la $(CMOCKA_LIBS)
endif

# What "fastinst profile --edges" puts into a program.
pkglib_LTLIBRARIES += libfastinst-edges.la
libfastinst_edges_la_SOURCES = \
	$(session_sources) \
	profile/sampler/edges_agent.c \
	profile/sampler/edges.c \
	profile/sampler/edges.h
libfastinst_edges_la_LIBADD = libfastinst_elf.la libfastinst_text.la libfastinst.la libpatchcore.la
libfastinst_edges_la_LDFLAGS = $(session_ldflags)
EXTRA_libfastinst_edges_la_DEPENDENCIES = $(session_map)
tests_race += profile/sampler/tests/test_phases.sh
EXTRA_DIST += profile/sampler/tests/test_phases.sh
if HAVE_CMOCKA
check_PROGRAMS += profile/sampler/tests/test_edges profile/sampler/tests/test_weight
tests_race += profile/sampler/tests/test_edges
tests_compute += profile/sampler/tests/test_weight
profile_sampler_tests_test_edges_SOURCES = \
	profile/sampler/tests/test_edges.c \
	profile/sampler/edges.c
# An object of its own: the agent has one of libtool.
profile_sampler_tests_test_edges_CFLAGS = $(AM_CFLAGS)
profile_sampler_tests_test_edges_LDADD = $(CMOCKA_LIBS)
profile_sampler_tests_test_weight_SOURCES = \
	profile/sampler/tests/test_weight.c \
	profile/sampler/edges.c
profile_sampler_tests_test_weight_CFLAGS = $(AM_CFLAGS)
profile_sampler_tests_test_weight_LDADD = $(CMOCKA_LIBS) -lm
endif

tests_race += profile/command/tests/test_lines.sh
EXTRA_DIST += profile/command/tests/lined.c profile/command/tests/test_lines.sh

fastinst_SOURCES += \
	profile/command/gather.c \
	profile/command/profile_cmd.c
fastinst_LDADD += libfastinst_writers.la
if HAVE_CMOCKA
check_PROGRAMS += profile/command/tests/test_gather
tests_compute += profile/command/tests/test_gather
profile_command_tests_test_gather_SOURCES = \
	profile/command/gather.c \
	profile/command/tests/test_gather.c
# Objects of its own: the program has some of its flags.
profile_command_tests_test_gather_CFLAGS = $(AM_CFLAGS)
profile_command_tests_test_gather_LDADD = libfastinst_writers.la libpatchcore_internal.la libstress.a $(CMOCKA_LIBS)
endif
tests_race += \
	profile/command/tests/test_profile.sh \
	profile/command/tests/test_times.sh
tests_wait += \
	profile/command/tests/test_profile_attach.sh \
	profile/command/tests/test_profile_sessions.sh \
	profile/command/tests/test_stopped.sh
EXTRA_DIST += \
	profile/command/tests/lasting.c \
	profile/command/tests/profiled.c \
	profile/command/tests/test_profile.sh \
	profile/command/tests/test_profile_attach.sh \
	profile/command/tests/test_profile_sessions.sh \
	profile/command/tests/test_stopped.sh \
	profile/command/tests/test_times.sh
