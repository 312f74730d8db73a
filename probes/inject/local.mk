# SPDX-License-Identifier: MIT
# A library put into a process that runs, by ptrace(2).
noinst_LTLIBRARIES += libfastinst_inject.la
libfastinst_inject_la_LIBADD = libfastinst_text.la
libfastinst_inject_la_SOURCES = \
	probes/inject/inject.c \
	probes/inject/inject.h \
	probes/inject/stub.c \
	probes/inject/target.c \
	probes/inject/target.h \
	probes/inject/waits.c

check_PROGRAMS += probes/inject/tests/injector probes/inject/tests/victim
not_asan += probes/inject/tests/injector probes/inject/tests/victim
probes_inject_tests_injector_LDFLAGS = -Wl,--wrap=ptrace,--wrap=pwrite,--wrap=pwrite64
probes_inject_tests_injector_LDADD = libfastinst_inject.la libfastinst_elf.la libstress.a
probes_inject_tests_victim_LDADD = -lpthread
tests_wait += probes/inject/tests/test_inject.sh
EXTRA_DIST += probes/inject/tests/guest.c probes/inject/tests/test_inject.sh
