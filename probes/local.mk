# SPDX-License-Identifier: MIT
# libfastinst: probes on top of libpatchcore. Each room adds its sources.
noinst_LTLIBRARIES += libfastinst_internal.la
libfastinst_internal_la_SOURCES = \
	probes/core/activate.c \
	probes/core/block.c \
	probes/core/core.h \
	probes/core/entry.c \
	probes/core/entry.h \
	probes/core/find.c \
	probes/core/near.c \
	probes/core/object.c \
	probes/core/probe.c \
	probes/core/provider.h \
	probes/core/site.c \
	probes/life/life.c \
	probes/patchable/patchable.c \
	probes/patchable/patchable.h

libfastinst_internal_la_LIBADD = libfastinst_elf.la

noinst_LTLIBRARIES += libfastinst_elf.la
libfastinst_elf_la_SOURCES = \
	probes/elf/elf.c \
	probes/elf/elf.h \
	probes/elf/inside.c \
	probes/elf/slot.c

# The same objects with nothing but the public functions in sight. nodelete: sites call into it.
lib_LTLIBRARIES += libfastinst.la
libfastinst_la_SOURCES =
libfastinst_la_LIBADD = libfastinst_internal.la libpatchcore.la
libfastinst_la_LDFLAGS = -version-info 0:0:0 -Wl,-z,nodelete -Wl,-z,now $(HARDEN_LDFLAGS) \
	-Wl,--version-script=$(top_srcdir)/probes/fastinst.map
EXTRA_libfastinst_la_DEPENDENCIES = libfastinst_internal.la probes/fastinst.map

include_HEADERS = probes/include/fastinst.h
pkgconfig_DATA += probes/fastinst.pc
EXTRA_DIST += probes/fastinst.map

include probes/marker/local.mk
include probes/branch/local.mk
include probes/real/local.mk
include probes/blocks/local.mk
include probes/calls/local.mk
include probes/cyg/local.mk
include probes/keeps/local.mk

# What "fastinst run" puts into a program.
pkglib_LTLIBRARIES = libfastinst-agent.la
libfastinst_agent_la_SOURCES = \
	probes/agent/agent.c \
	probes/agent/agent.h \
	probes/agent/control.c \
	probes/agent/control.h \
	probes/agent/leave.c \
	probes/agent/leave.h \
	probes/agent/load.c \
	probes/agent/report.c
libfastinst_agent_la_LIBADD = libfastinst.la
libfastinst_agent_la_LDFLAGS = -module -avoid-version -Wl,-z,nodelete -Wl,-z,now $(HARDEN_LDFLAGS) \
	-Wl,--version-script=$(top_srcdir)/probes/agent/agent.map
EXTRA_libfastinst_agent_la_DEPENDENCIES = probes/agent/agent.map
EXTRA_DIST += probes/agent/agent.map

bin_PROGRAMS += fastinst
fastinst_SOURCES = \
	probes/command/command.h \
	probes/command/control.c \
	probes/command/counts.c \
	probes/command/counts.h \
	probes/command/fastinst.c \
	probes/command/list.c \
	probes/command/run.c \
	probes/launch/launch.c \
	probes/launch/launch.h
fastinst_CPPFLAGS = $(AM_CPPFLAGS) -DPKGLIBDIR='"$(pkglibdir)"'
fastinst_LDADD = libfastinst_elf.la $(JANSSON_LIBS)
fastinst_LDFLAGS = $(HARDEN_LDFLAGS) $(HARDEN_PIE)

EXTRA_DIST += probes/tests/sample.h
if HAVE_CMOCKA
probes_tests = \
	probes/core/tests/test_entry \
	probes/core/tests/test_probes \
	probes/core/tests/test_probes_crossing
check_PROGRAMS += $(probes_tests)
TESTS += $(probes_tests)
probes_core_tests_test_entry_LDFLAGS = -Wl,--wrap=near_entry,--wrap=keeps_vectors
probes_core_tests_test_entry_LDADD = libfastinst_internal.la $(LDADD)
wrap_probes = -Wl,--wrap=near_entry,--wrap=pc_patch,--wrap=pc_patch_batch,--wrap=pc_deactivate_call
probes_core_tests_test_probes_LDFLAGS = $(wrap_probes)
probes_core_tests_test_probes_crossing_SOURCES = probes/core/tests/test_probes.c
probes_core_tests_test_probes_crossing_CFLAGS = $(AM_CFLAGS) -fcf-protection=branch
probes_core_tests_test_probes_crossing_LDFLAGS = $(wrap_probes)
probes_core_tests_test_probes_crossing_LDADD = libfastinst_internal.la $(LDADD)
probes_core_tests_test_probes_LDADD = libfastinst_internal.la $(LDADD)
endif

TESTS += \
	probes/command/tests/test_fastinst.sh \
	probes/tests/test_pages.sh
EXTRA_DIST += \
	probes/tests/test_pages.sh \
	probes/command/tests/counted.c \
	probes/command/tests/plugin.c \
	probes/command/tests/test_fastinst.sh

check_PROGRAMS += probes/elf/tests/fuzz_elf
TESTS += probes/elf/tests/fuzz_elf
CLEANFILES += probes/elf/tests/fuzz_elf.crash
probes_elf_tests_fuzz_elf_CPPFLAGS = $(fuzz_cppflags)
probes_elf_tests_fuzz_elf_CFLAGS = $(fuzz_cflags)
probes_elf_tests_fuzz_elf_LDFLAGS = -Wl,--wrap=elf_inside
probes_elf_tests_fuzz_elf_LDADD = libfastinst_elf.la

# By hand: what a probe costs.
check_PROGRAMS += probes/tests/costs
probes_tests_costs_LDADD = libfastinst.la libpatchcore.la
