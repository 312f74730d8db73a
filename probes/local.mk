# SPDX-License-Identifier: MIT
# libfastinst: probes on top of libpatchcore. Each room adds its sources.
noinst_LTLIBRARIES += libfastinst_internal.la
libfastinst_internal_la_SOURCES = \
	probes/core/activate.c \
	probes/core/core.h \
	probes/core/discover.c \
	probes/core/entry.S \
	probes/core/entry_setup.c \
	probes/core/entry.h \
	probes/core/find.c \
	probes/core/leaf.c \
	probes/core/lock.c \
	probes/core/near.c \
	probes/core/object.c \
	probes/core/opened.c \
	probes/core/provider.h \
	probes/core/site.c \
	probes/core/table.c \
	probes/life/life.c \
	probes/patchable/patchable.c

libfastinst_internal_la_LIBADD = libfastinst_bare.la libfastinst_elf.la libfastinst_names.la \
	libfastinst_source.la

# Run by the trampoline before it has saved the vectors, which the runtime of a sanitizer uses.
noinst_LTLIBRARIES += libfastinst_bare.la
libfastinst_bare_la_SOURCES = probes/core/block.c probes/core/stack.c
libfastinst_bare_la_CFLAGS = $(AM_CFLAGS) -mgeneral-regs-only -fno-sanitize=all

noinst_LTLIBRARIES += libfastinst_elf.la
libfastinst_elf_la_SOURCES = \
	probes/elf/array.h \
	probes/elf/elf.c \
	probes/elf/elf.h \
	probes/elf/sorted.h \
	probes/elf/frames.c \
	probes/elf/inside.c \
	probes/elf/preload.c \
	probes/elf/preload.h \
	probes/elf/slot.c

noinst_LTLIBRARIES += libfastinst_source.la
libfastinst_source_la_SOURCES = probes/source/source.h
if HAVE_LIBDW
libfastinst_source_la_SOURCES += \
	probes/source/abi.c \
	probes/source/abi.h \
	probes/source/by_reference.c \
	probes/source/locations.c \
	probes/source/whole.c \
	probes/source/libdw.c \
	probes/source/libdw.h \
	probes/source/source.c
else
libfastinst_source_la_SOURCES += probes/source/no_source.c
endif

# The same objects with nothing but the public functions in sight. Sites call into it: it holds itself.
lib_LTLIBRARIES += libfastinst.la
libfastinst_la_SOURCES = patchcore/life/bind.c
libfastinst_la_LIBADD = libfastinst_internal.la libpatchcore.la
libfastinst_la_LDFLAGS = -version-info 0:0:0 -Wl,-z,now -Wl,-Bsymbolic \
	$(HARDEN_LDFLAGS) -Wl,--version-script=$(top_srcdir)/probes/fastinst.map
EXTRA_libfastinst_la_DEPENDENCIES = libfastinst_internal.la probes/fastinst.map

include_HEADERS = probes/include/fastinst.h
pkgconfig_DATA += probes/fastinst.pc

# How other build systems use it.
examplesprobesdir = $(examplesdir)/probes
dist_examplesprobes_DATA = probes/examples/count.c
examplesprobescmakedir = $(examplesprobesdir)/cmake
dist_examplesprobescmake_DATA = probes/examples/cmake/CMakeLists.txt
examplesprobesmesondir = $(examplesprobesdir)/meson
dist_examplesprobesmeson_DATA = probes/examples/meson/meson.build
EXTRA_DIST += probes/fastinst.abi probes/fastinst.map

include probes/marker/local.mk
include probes/branch/local.mk
include probes/real/local.mk
include probes/insn/local.mk
include probes/calls/local.mk
include probes/inject/local.mk
include probes/entries/local.mk
include probes/text/local.mk

# What "fastinst run" puts into a program.
pkglib_LTLIBRARIES = libfastinst-agent.la
libfastinst_agent_la_SOURCES = \
	patchcore/life/bind.c \
	patchcore/trap/guard.c \
	probes/agent/agent.c \
	probes/agent/agent.h \
	probes/agent/alone.c \
	probes/agent/alone.h \
	probes/agent/base.c \
	probes/agent/base.h \
	probes/agent/control.c \
	probes/agent/control.h \
	probes/agent/exec.c \
	probes/agent/report.c \
	probes/agent/trace.c \
	probes/trace/ring.h
libfastinst_agent_la_LIBADD = libfastinst_elf.la libfastinst_text.la libfastinst.la libpatchcore.la
libfastinst_agent_la_LDFLAGS = -module -avoid-version -Wl,-z,nodelete -Wl,-z,now -Wl,-Bsymbolic $(HARDEN_LDFLAGS) \
	-Wl,--version-script=$(top_srcdir)/probes/agent/agent.map
EXTRA_libfastinst_agent_la_DEPENDENCIES = probes/agent/agent.map
EXTRA_DIST += probes/agent/agent.map

# What "fastinst attach" puts into a process.
pkglib_LTLIBRARIES += libfastinst-attached.la
libfastinst_attached_la_SOURCES = \
	patchcore/life/bind.c \
	probes/agent/agent.h \
	probes/agent/alone.c \
	probes/agent/alone.h \
	probes/agent/base.c \
	probes/agent/base.h \
	probes/agent/attached.c \
	probes/agent/control.c \
	probes/agent/control.h \
	probes/agent/report.c \
	probes/agent/trace.c \
	probes/trace/ring.h
libfastinst_attached_la_LIBADD = libfastinst_text.la libfastinst.la libpatchcore.la
libfastinst_attached_la_LDFLAGS = -module -avoid-version -Wl,-z,now -Wl,-Bsymbolic $(HARDEN_LDFLAGS) \
	-Wl,--version-script=$(top_srcdir)/probes/agent/attached.map
EXTRA_libfastinst_attached_la_DEPENDENCIES = probes/agent/attached.map
EXTRA_DIST += probes/agent/attached.map

bin_PROGRAMS += fastinst
fastinst_SOURCES = \
	probes/command/attach.c \
	probes/command/command.h \
	probes/command/control.c \
	probes/command/counts.c \
	probes/command/counts.h \
	probes/command/fastinst.c \
	probes/command/list.c \
	probes/command/near.c \
	probes/command/run.c \
	probes/command/source_of.c \
	probes/command/source_of.h \
	probes/command/top.c \
	probes/command/trace.c \
	probes/command/trace_filter.c \
	probes/command/trace_filter.h \
	probes/command/trace_read.c \
	probes/command/trace_read.h \
	probes/command/trace_value.c \
	probes/command/trace_write.c \
	probes/command/trace_write.h \
	probes/command/why.c \
	probes/launch/ending.c \
	probes/launch/ending.h \
	probes/launch/folder.c \
	probes/launch/folder.h \
	probes/launch/launch.c \
	probes/launch/launch.h \
	probes/list/sites.c \
	probes/list/sites.h \
	probes/trace/ring.c \
	probes/trace/ring.h
fastinst_CPPFLAGS = $(AM_CPPFLAGS) -DPKGLIBDIR='"$(pkglibdir)"'
fastinst_LDADD = libfastinst_internal.la libfastinst_inject.la libpatchcore_internal.la libresults.a libstress.a $(JANSSON_LIBS)
fastinst_LDFLAGS = $(HARDEN_LDFLAGS) $(HARDEN_PIE)
nodist_bashcompletion_DATA += completion/fastinst
nodist_zshcompletion_DATA += completion/_fastinst

EXTRA_DIST += probes/tests/sample.h probes/core/tests/registers.h
if HAVE_CMOCKA
probes_tests = \
	probes/core/tests/test_entry \
	probes/core/tests/test_lock \
	probes/core/tests/test_probes \
	probes/core/tests/test_probes_crossing \
	probes/core/tests/test_stack
check_PROGRAMS += $(probes_tests)
tests_race += $(probes_tests)
probes_core_tests_test_entry_LDFLAGS = -Wl,--wrap=near_entry,--wrap=effects_read
probes_core_tests_test_entry_LDADD = libfastinst_internal.la $(LDADD)
if HAVE_ZYDIS
check_PROGRAMS += probes/core/tests/test_leaf
tests_race += probes/core/tests/test_leaf
not_asan += probes/core/tests/test_leaf
probes_core_tests_test_leaf_LDFLAGS = -Wl,--wrap=near_entry,--wrap=effects_read,--wrap=leaf_word
probes_core_tests_test_leaf_LDADD = libfastinst_internal.la $(LDADD)
endif
wrap_probes = -Wl,--wrap=near_entry,--wrap=pc_text_close,--wrap=pc_patch,--wrap=pc_patch_batch,--wrap=pc_deactivate_call
probes_core_tests_test_probes_LDFLAGS = $(wrap_probes)
probes_core_tests_test_probes_crossing_SOURCES = probes/core/tests/test_probes.c
probes_core_tests_test_probes_crossing_CFLAGS = $(AM_CFLAGS) -fcf-protection=branch
probes_core_tests_test_probes_crossing_LDFLAGS = $(wrap_probes)
probes_core_tests_test_probes_crossing_LDADD = libfastinst_internal.la $(LDADD)
probes_core_tests_test_lock_LDADD = libfastinst_internal.la $(LDADD)
probes_core_tests_test_stack_LDADD = libfastinst_internal.la $(LDADD)
probes_core_tests_test_probes_LDADD = libfastinst_internal.la $(LDADD)
endif

if HAVE_CMOCKA
check_PROGRAMS += probes/agent/tests/test_pin
tests_compute += probes/agent/tests/test_pin
probes_agent_tests_test_pin_SOURCES = probes/agent/pin.c probes/agent/tests/test_pin.c
# An object of its own: the agents have one of libtool.
probes_agent_tests_test_pin_CFLAGS = $(AM_CFLAGS)
probes_agent_tests_test_pin_LDFLAGS = -Wl,--wrap=dlopen
endif

tests_compute += probes/agent/tests/test_dlopen.sh probes/agent/tests/test_loaders.sh
EXTRA_DIST += probes/agent/tests/opens.c probes/agent/tests/starts.c probes/agent/tests/test_dlopen.sh \
	probes/agent/tests/test_loaders.sh

tests_wait += \
	probes/command/tests/test_attach.sh \
	probes/command/tests/test_leftovers.sh \
	probes/tests/test_last_thread.sh
tests_race += \
	probes/command/tests/test_completion.sh \
	probes/command/tests/test_control.sh \
	probes/command/tests/test_detach.sh \
	probes/command/tests/test_ends.sh \
	probes/command/tests/test_fastinst.sh \
	probes/command/tests/test_filters.sh \
	probes/command/tests/test_floats.sh \
	probes/command/tests/test_handed.sh \
	probes/command/tests/test_odd.sh \
	probes/command/tests/test_limits.sh \
	probes/command/tests/test_masked.sh \
	probes/command/tests/test_others.sh \
	probes/command/tests/test_patterns.sh \
	probes/command/tests/test_refused.sh \
	probes/command/tests/test_waits.sh \
	probes/core/tests/test_coroutine.sh \
	probes/core/tests/test_grace.sh \
	probes/life/tests/test_imports.sh \
	probes/tests/test_exact.sh \
	probes/tests/test_loads.sh \
	probes/tests/test_environment.sh \
	probes/tests/test_pages.sh
tests_compute += \
	probes/command/tests/test_top.sh \
	probes/command/tests/test_trace.sh \
	probes/command/tests/test_usage.sh \
	probes/command/tests/test_why.sh \
	probes/core/tests/test_function.sh \
	probes/core/tests/test_unload.sh \
	probes/list/tests/test_list.sh \
	probes/tests/test_optional.sh \
	probes/tests/test_static.sh \
	probes/tests/test_users.sh
EXTRA_DIST += \
	probes/tests/common.sh \
	probes/tests/exact.cc \
	probes/tests/loads.c \
	probes/tests/test_exact.sh \
	probes/tests/test_loads.sh \
	probes/tests/test_optional.sh \
	probes/tests/test_environment.sh probes/tests/test_last_thread.sh \
	probes/tests/test_pages.sh \
	probes/tests/test_static.sh \
	probes/tests/test_users.sh \
	probes/command/tests/counted.c \
	probes/command/tests/floats.c \
	probes/command/tests/named.c \
	probes/command/tests/compare_args.py \
	probes/command/tests/exported.c \
	probes/command/tests/handed.cc \
	probes/command/tests/odd.c \
	probes/command/tests/odd.cc \
	probes/command/tests/tell.h \
	probes/command/tests/tree.c \
	probes/command/tests/stack.c \
	probes/command/tests/plugin.c \
	probes/command/tests/test_attach.sh \
	probes/command/tests/test_completion.sh \
	probes/command/tests/test_control.sh \
	probes/command/tests/test_detach.sh \
	probes/command/tests/test_ends.sh \
	probes/command/tests/test_fastinst.sh \
	probes/command/tests/filtered.c \
	probes/command/tests/refused.c \
	probes/command/tests/test_leftovers.sh \
	probes/command/tests/test_filters.sh \
	probes/command/tests/test_floats.sh \
	probes/command/tests/test_handed.sh \
	probes/command/tests/test_odd.sh \
	probes/command/tests/test_limits.sh \
	probes/command/tests/masked.c \
	probes/command/tests/test_masked.sh \
	probes/command/tests/test_others.sh \
	probes/command/tests/test_patterns.sh \
	probes/command/tests/test_refused.sh \
	probes/command/tests/test_top.sh \
	probes/command/tests/test_trace.sh \
	probes/command/tests/test_usage.sh \
	probes/command/tests/test_waits.sh \
	probes/command/tests/waits.c \
	probes/command/tests/test_why.sh \
	probes/core/tests/grace.c \
	probes/core/tests/test_coroutine.sh \
	probes/core/tests/test_function.sh \
	probes/core/tests/test_grace.sh \
	probes/core/tests/test_unload.sh \
	probes/core/tests/unload.c \
	probes/command/tests/traced.c \
	probes/life/tests/test_imports.sh \
	probes/list/tests/listed.c \
	probes/list/tests/test_list.sh

check_PROGRAMS += probes/list/tests/fuzz_sites
tests_compute += probes/list/tests/fuzz_sites
CLEANFILES += probes/list/tests/fuzz_sites.crash
probes_list_tests_fuzz_sites_SOURCES = probes/list/sites.c probes/list/tests/fuzz_sites.c
probes_list_tests_fuzz_sites_CPPFLAGS = $(fuzz_cppflags)
probes_list_tests_fuzz_sites_CFLAGS = $(fuzz_cflags)
probes_list_tests_fuzz_sites_LDFLAGS = -Wl,--wrap=elf_inside
probes_list_tests_fuzz_sites_LDADD = libfastinst_internal.la libfastinst_text.la libpatchcore_internal.la

check_PROGRAMS += probes/trace/tests/fuzz_ring
tests_compute += probes/trace/tests/fuzz_ring
CLEANFILES += probes/trace/tests/fuzz_ring.crash
probes_trace_tests_fuzz_ring_SOURCES = probes/trace/tests/fuzz_ring.c probes/trace/ring.c
probes_trace_tests_fuzz_ring_CPPFLAGS = $(fuzz_cppflags)
probes_trace_tests_fuzz_ring_CFLAGS = $(fuzz_cflags)

check_PROGRAMS += probes/elf/tests/fuzz_elf
tests_compute += probes/elf/tests/fuzz_elf
CLEANFILES += probes/elf/tests/fuzz_elf.crash
probes_elf_tests_fuzz_elf_CPPFLAGS = $(fuzz_cppflags)
probes_elf_tests_fuzz_elf_CFLAGS = $(fuzz_cflags)
probes_elf_tests_fuzz_elf_LDFLAGS = -Wl,--wrap=elf_inside
probes_elf_tests_fuzz_elf_LDADD = libfastinst_elf.la

check_PROGRAMS += probes/elf/tests/fuzz_frames
tests_compute += probes/elf/tests/fuzz_frames
CLEANFILES += probes/elf/tests/fuzz_frames.crash
probes_elf_tests_fuzz_frames_CPPFLAGS = $(fuzz_cppflags)
probes_elf_tests_fuzz_frames_CFLAGS = $(fuzz_cflags)
probes_elf_tests_fuzz_frames_LDFLAGS = -Wl,--wrap=elf_left
probes_elf_tests_fuzz_frames_LDADD = libfastinst_elf.la

# By hand: what a probe costs.
check_PROGRAMS += probes/tests/costs
not_asan += probes/tests/costs
probes_tests_costs_LDADD = libfastinst.la libpatchcore.la
