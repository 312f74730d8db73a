# SPDX-License-Identifier: MIT
# Profiles from probes. What computes and writes is used by the program; what samples goes into programs.
noinst_LTLIBRARIES += libfastinst_estimate.la
libfastinst_estimate_la_SOURCES = \
	probes/profile/estimate/duration.c \
	probes/profile/estimate/duration.h \
	probes/profile/estimate/estimate.c \
	probes/profile/estimate/estimate.h \
	probes/profile/estimate/pace.c \
	probes/profile/estimate/pace.h \
	probes/profile/estimate/share.c
libfastinst_estimate_la_LIBADD = -lm

noinst_LTLIBRARIES += libfastinst_writers.la
libfastinst_writers_la_SOURCES = \
	probes/profile/model/profile.c \
	probes/profile/model/profile.h \
	probes/profile/model/sums.h \
	probes/profile/write/format.c \
	probes/profile/write/json.c \
	probes/profile/write/pprof.c \
	probes/profile/write/table.c \
	probes/profile/write/text.c \
	probes/profile/write/write.h \
	probes/json/page.c \
	probes/json/print.c \
	probes/json/print.h
libfastinst_writers_la_LIBADD = libfastinst_estimate.la libfastinst_names.la libfastinst_text.la $(JANSSON_LIBS)

# Pages are strings in the program.
SUFFIXES = .html .inc
.html.inc:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	sed 's/\\/\\\\/g; s/"/\\"/g; s/^/"/; s/$$/\\n"/' $< > $@.tmp && mv $@.tmp $@
probes/json/page.lo: probes/json/head.inc
probes/profile/write/format.lo: probes/profile/write/calls.inc probes/profile/write/edges.inc
page_texts = \
	probes/profile/write/calls.html \
	probes/profile/write/edges.html \
	probes/json/head.html
EXTRA_DIST += $(page_texts)
CLEANFILES += $(page_texts:.html=.inc)

check_PROGRAMS += probes/profile/write/tests/write_sample
probes_profile_write_tests_write_sample_SOURCES = probes/profile/write/tests/write_sample.c
probes_profile_write_tests_write_sample_LDADD = libfastinst_writers.la
tests_read += probes/profile/write/tests/test_writers.sh
EXTRA_DIST += probes/profile/write/tests/test_writers.sh

if HAVE_CMOCKA
profile_tests = \
	probes/profile/estimate/tests/test_duration \
	probes/profile/estimate/tests/test_estimate \
	probes/profile/estimate/tests/test_pace \
	probes/profile/estimate/tests/test_share
check_PROGRAMS += $(profile_tests)
tests_compute += $(profile_tests)
not_asan += probes/profile/estimate/tests/test_estimate
probes_profile_estimate_tests_test_duration_LDADD = libfastinst_writers.la $(CMOCKA_LIBS)
probes_profile_estimate_tests_test_estimate_LDADD = libfastinst_writers.la $(CMOCKA_LIBS)
probes_profile_estimate_tests_test_pace_LDADD = libfastinst_writers.la $(CMOCKA_LIBS)
probes_profile_estimate_tests_test_share_LDADD = libfastinst_writers.la $(CMOCKA_LIBS)
endif

# What both agents have in common.
session_sources = \
	patchcore/life/bind.c \
	patchcore/trap/guard.c \
	probes/agent/alone.c \
	probes/agent/alone.h \
	probes/agent/base.c \
	probes/agent/base.h \
	probes/agent/exec.c \
	probes/agent/pin.c \
	probes/agent/pin.h \
	probes/profile/model/sums.h \
	probes/profile/sample/clock.h \
	probes/profile/sample/pages.c \
	probes/profile/sample/pages.h \
	probes/profile/sample/relaxed.h \
	probes/profile/session/report.c \
	probes/profile/session/report.h \
	probes/profile/session/session.c \
	probes/profile/session/session.h
session_map = probes/profile/session/agent.map
session_ldflags = -module -avoid-version -shared -Wl,-z,nodelete -Wl,-z,now -Wl,-Bsymbolic $(HARDEN_LDFLAGS) \
	-Wl,--version-script=$(top_srcdir)/$(session_map)
EXTRA_DIST += $(session_map)

# What "fastinst profile" puts into a program.
pkglib_LTLIBRARIES += libfastinst-profile.la
libfastinst_profile_la_SOURCES = \
	$(session_sources) \
	probes/profile/epochs/agent.c \
	probes/profile/epochs/clocks.c \
	probes/profile/epochs/epochs.c \
	probes/profile/epochs/epochs.h \
	probes/profile/epochs/functions.c \
	probes/profile/epochs/bursts.c \
	probes/profile/epochs/report.c \
	probes/profile/epochs/windows.c \
	probes/profile/sample/callers.c \
	probes/profile/sample/exits.c \
	probes/profile/sample/frames.c \
	probes/profile/sample/burst.c \
	probes/profile/sample/price.c \
	probes/profile/sample/ring.c \
	probes/profile/sample/sample.h \
	probes/profile/sample/watch.c
libfastinst_profile_la_LIBADD = libfastinst_elf.la libfastinst_estimate.la libfastinst_text.la libfastinst.la libpatchcore.la
libfastinst_profile_la_LDFLAGS = $(session_ldflags)
EXTRA_libfastinst_profile_la_DEPENDENCIES = $(session_map)

if HAVE_CMOCKA
check_PROGRAMS += probes/profile/sample/tests/test_frames
tests_compute += probes/profile/sample/tests/test_frames
probes_profile_sample_tests_test_frames_SOURCES = \
	probes/profile/sample/frames.c \
	probes/profile/sample/tests/test_frames.c
# An object of its own: the agent has one of libtool.
probes_profile_sample_tests_test_frames_CFLAGS = $(AM_CFLAGS)
probes_profile_sample_tests_test_frames_LDADD = $(CMOCKA_LIBS)
check_PROGRAMS += probes/profile/sample/tests/test_watch
tests_compute += probes/profile/sample/tests/test_watch
probes_profile_sample_tests_test_watch_SOURCES = \
	probes/profile/sample/callers.c \
	probes/profile/sample/burst.c \
	probes/profile/sample/ring.c \
	probes/profile/sample/tests/test_watch.c
probes_profile_sample_tests_test_watch_CFLAGS = $(AM_CFLAGS)
probes_profile_sample_tests_test_watch_LDADD = libfastinst_estimate.la $(CMOCKA_LIBS)
check_PROGRAMS += probes/profile/sample/tests/test_burst
tests_compute += probes/profile/sample/tests/test_burst
probes_profile_sample_tests_test_burst_SOURCES = \
	probes/profile/sample/callers.c \
	probes/profile/sample/ring.c \
	probes/profile/sample/tests/test_burst.c
probes_profile_sample_tests_test_burst_CFLAGS = $(AM_CFLAGS)
probes_profile_sample_tests_test_burst_LDADD = libfastinst_estimate.la $(CMOCKA_LIBS)
endif

# What "fastinst profile --edges" puts into a program.
pkglib_LTLIBRARIES += libfastinst-edges.la
libfastinst_edges_la_SOURCES = \
	$(session_sources) \
	probes/profile/edges/agent.c \
	probes/profile/edges/edges.c \
	probes/profile/edges/edges.h \
	probes/profile/edges/report.c \
	probes/profile/edges/weight.c
libfastinst_edges_la_LIBADD = libfastinst_elf.la libfastinst_text.la libfastinst.la libpatchcore.la
libfastinst_edges_la_LDFLAGS = $(session_ldflags)
EXTRA_libfastinst_edges_la_DEPENDENCIES = $(session_map)
tests_race += probes/profile/edges/tests/test_phases.sh
EXTRA_DIST += probes/profile/edges/tests/test_phases.sh
if HAVE_CMOCKA
check_PROGRAMS += probes/profile/edges/tests/test_edges probes/profile/edges/tests/test_weight
tests_race += probes/profile/edges/tests/test_edges probes/profile/edges/tests/test_weight
probes_profile_edges_tests_test_edges_SOURCES = \
	probes/profile/edges/tests/test_edges.c \
	probes/profile/edges/edges.c
# An object of its own: the agent has one of libtool.
probes_profile_edges_tests_test_edges_CFLAGS = $(AM_CFLAGS)
probes_profile_edges_tests_test_edges_LDADD = $(CMOCKA_LIBS)
probes_profile_edges_tests_test_weight_SOURCES = \
	probes/profile/edges/tests/test_weight.c \
	probes/profile/edges/weight.c
probes_profile_edges_tests_test_weight_CFLAGS = $(AM_CFLAGS)
probes_profile_edges_tests_test_weight_LDADD = $(CMOCKA_LIBS) -lm
endif

# The lines that blocks stand on.
noinst_LTLIBRARIES += libfastinst_lines.la
if HAVE_LIBDW
libfastinst_lines_la_SOURCES = \
	probes/profile/lines/body.h \
	probes/profile/lines/gcov.c \
	probes/profile/lines/lines.h \
	probes/profile/lines/llvm.c \
	probes/profile/lines/read.c
libfastinst_lines_la_CFLAGS = $(AM_CFLAGS) $(LIBDW_CFLAGS)
libfastinst_lines_la_LIBADD = libfastinst_writers.la $(LIBDW_LIBS) $(JANSSON_LIBS)
else
libfastinst_lines_la_SOURCES = probes/profile/lines/none.c probes/profile/lines/lines.h
endif
EXTRA_DIST += \
	probes/profile/lines/body.h \
	probes/profile/lines/gcov.c \
	probes/profile/lines/llvm.c \
	probes/profile/lines/none.c \
	probes/profile/lines/read.c
tests_race += probes/profile/lines/tests/test_lines.sh
EXTRA_DIST += probes/profile/lines/tests/lined.c probes/profile/lines/tests/test_lines.sh

fastinst_SOURCES += \
	probes/profile/command/edges.c \
	probes/profile/command/edges.h \
	probes/profile/command/gather.c \
	probes/profile/command/gather.h \
	probes/profile/command/profile_cmd.c \
	probes/profile/command/profile_cmd.h
fastinst_LDADD += libfastinst_lines.la libfastinst_writers.la
if HAVE_CMOCKA
check_PROGRAMS += probes/profile/command/tests/test_gather
tests_race += probes/profile/command/tests/test_gather
probes_profile_command_tests_test_gather_SOURCES = \
	probes/profile/command/gather.c \
	probes/profile/command/tests/test_gather.c
# Objects of its own: the program has some of its flags.
probes_profile_command_tests_test_gather_CFLAGS = $(AM_CFLAGS)
probes_profile_command_tests_test_gather_LDADD = libfastinst_writers.la libfastinst_elf.la $(CMOCKA_LIBS)
endif
tests_race += \
	probes/profile/command/tests/test_profile.sh \
	probes/profile/command/tests/test_times.sh
tests_wait += \
	probes/profile/command/tests/test_profile_attach.sh \
	probes/profile/command/tests/test_profile_sessions.sh \
	probes/profile/command/tests/test_stopped.sh
EXTRA_DIST += \
	probes/profile/command/tests/lasting.c \
	probes/profile/command/tests/profiled.c \
	probes/profile/command/tests/test_profile.sh \
	probes/profile/command/tests/test_profile_attach.sh \
	probes/profile/command/tests/test_profile_sessions.sh \
	probes/profile/command/tests/test_stopped.sh \
	probes/profile/command/tests/test_times.sh
