# SPDX-License-Identifier: MIT
# What runs inside a program, and what puts it there.
# What "fastinst run" puts into a program.
pkglib_LTLIBRARIES = libfastinst-agent.la
libfastinst_agent_la_SOURCES = \
	patchcore/life/bind.c \
	patchcore/sigtrap/guard.c \
	agent/counts/agent.c \
	agent/counts/agent.h \
	agent/counts/alone.c \
	agent/counts/base.c \
	agent/counts/base.h \
	agent/counts/control.c \
	agent/counts/control.h \
	agent/counts/exec.c \
	agent/counts/report.c \
	agent/counts/trace.c \
	agent/counts/ring.h
libfastinst_agent_la_LIBADD = libfastinst_elf.la libfastinst_text.la libfastinst.la libpatchcore.la
libfastinst_agent_la_LDFLAGS = -module -avoid-version -Wl,-z,nodelete -Wl,-z,now -Wl,-Bsymbolic $(HARDEN_LDFLAGS) \
	-Wl,--version-script=$(top_srcdir)/agent/counts/agent.map
EXTRA_libfastinst_agent_la_DEPENDENCIES = agent/counts/agent.map

# What "fastinst attach" puts into a process.
pkglib_LTLIBRARIES += libfastinst-attached.la
libfastinst_attached_la_SOURCES = \
	patchcore/life/bind.c \
	agent/counts/agent.h \
	agent/counts/alone.c \
	agent/counts/base.c \
	agent/counts/base.h \
	agent/counts/attached.c \
	agent/counts/control.c \
	agent/counts/control.h \
	agent/counts/report.c \
	agent/counts/trace.c \
	agent/counts/ring.h
libfastinst_attached_la_LIBADD = libfastinst_text.la libfastinst.la libpatchcore.la
libfastinst_attached_la_LDFLAGS = -module -avoid-version -Wl,-z,now -Wl,-Bsymbolic $(HARDEN_LDFLAGS) \
	-Wl,--version-script=$(top_srcdir)/agent/counts/attached.map
EXTRA_libfastinst_attached_la_DEPENDENCIES = agent/counts/attached.map

# A library put into a process that runs, by ptrace(2).
noinst_LTLIBRARIES += libfastinst_inject.la
libfastinst_inject_la_LIBADD = libfastinst_text.la
libfastinst_inject_la_SOURCES = \
	agent/launch/answer.c \
	agent/launch/inject.c \
	agent/launch/inject.h \
	agent/launch/steps.h \
	agent/launch/stop.c \
	agent/launch/stub.c \
	agent/launch/target.c \
	agent/launch/target.h \
	agent/launch/waits.c

check_PROGRAMS += agent/launch/tests/injector agent/launch/tests/victim
not_asan += agent/launch/tests/injector agent/launch/tests/victim
agent_launch_tests_injector_LDFLAGS = -Wl,--wrap=ptrace,--wrap=pwrite,--wrap=pwrite64
agent_launch_tests_injector_LDADD = libfastinst_inject.la libfastinst_elf.la libstress.a
agent_launch_tests_victim_LDADD = -lpthread
tests_wait += agent/launch/tests/test_inject.sh
EXTRA_DIST += agent/launch/tests/guest.c agent/launch/tests/test_inject.sh

EXTRA_DIST += agent/counts/agent.map
EXTRA_DIST += agent/counts/attached.map
if HAVE_CMOCKA
check_PROGRAMS += agent/counts/tests/test_pin
tests_compute += agent/counts/tests/test_pin
agent_counts_tests_test_pin_SOURCES = agent/counts/pin.c agent/counts/tests/test_pin.c
agent_counts_tests_test_pin_CFLAGS = $(AM_CFLAGS)
agent_counts_tests_test_pin_LDFLAGS = -Wl,--wrap=dlopen
endif
tests_compute += \
	agent/counts/tests/test_dlopen.sh \
	agent/counts/tests/test_loaders.sh
EXTRA_DIST += \
	agent/counts/tests/opens.c \
	agent/counts/tests/starts.c \
	agent/counts/tests/test_dlopen.sh \
	agent/counts/tests/test_loaders.sh
check_PROGRAMS += agent/counts/tests/fuzz_ring
tests_compute += agent/counts/tests/fuzz_ring
CLEANFILES += agent/counts/tests/fuzz_ring.crash
agent_counts_tests_fuzz_ring_SOURCES = agent/counts/tests/fuzz_ring.c agent/counts/ring.c
agent_counts_tests_fuzz_ring_CPPFLAGS = $(fuzz_cppflags)
agent_counts_tests_fuzz_ring_CFLAGS = $(fuzz_cflags)
