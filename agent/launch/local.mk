# SPDX-License-Identifier: MIT
# A library put into a process that runs, by ptrace(2).
noinst_LTLIBRARIES += libfastinst_inject.la
libfastinst_inject_la_LIBADD = libfastinst_text.la
libfastinst_inject_la_SOURCES = \
	agent/launch/inject.c \
	agent/launch/inject.h \
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
