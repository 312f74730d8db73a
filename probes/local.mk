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
	probes/providers/life.c \
	probes/providers/patchable.c

libfastinst_internal_la_LIBADD = libfastinst_bare.la libfastinst_elf.la libfastinst_names.la \
	libfastinst_source.la

# Run by the trampoline before it has saved the vectors, which the runtime of a sanitizer uses.
noinst_LTLIBRARIES += libfastinst_bare.la
libfastinst_bare_la_SOURCES = probes/core/block.c probes/core/stack.c
libfastinst_bare_la_CFLAGS = $(AM_CFLAGS) -mgeneral-regs-only -fno-sanitize=all

noinst_LTLIBRARIES += libfastinst_elf.la
libfastinst_elf_la_SOURCES = \
	probes/elf/elf.c \
	probes/elf/elf.h \
	probes/elf/frames.c \
	probes/elf/inside.c \
	probes/elf/preload.c \
	probes/elf/preload.h \
	probes/elf/slot.c

noinst_LTLIBRARIES += libfastinst_source.la
libfastinst_source_la_SOURCES = \
	probes/dwarf/abi.c \
	probes/dwarf/abi.h \
	probes/dwarf/by_reference.c \
	probes/dwarf/locations.c \
	probes/dwarf/whole.c \
	probes/dwarf/libdw.c \
	probes/dwarf/source.c \
	probes/dwarf/source.h

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

include probes/providers/local.mk
include probes/insn/local.mk
include probes/entries/local.mk

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
check_PROGRAMS += probes/core/tests/test_leaf
tests_race += probes/core/tests/test_leaf
not_asan += probes/core/tests/test_leaf
probes_core_tests_test_leaf_LDFLAGS = -Wl,--wrap=near_entry,--wrap=effects_read,--wrap=leaf_word
probes_core_tests_test_leaf_LDADD = libfastinst_internal.la $(LDADD)
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

tests_wait += probes/tests/test_last_thread.sh
tests_race += \
	probes/core/tests/test_coroutine.sh \
	probes/core/tests/test_grace.sh \
	probes/providers/tests/test_imports.sh \
	probes/tests/test_loads.sh \
	probes/tests/test_environment.sh \
	probes/tests/test_pages.sh
tests_compute += \
	probes/core/tests/test_function.sh \
	probes/tests/test_exact.sh \
	probes/core/tests/test_unload.sh \
	probes/tests/test_static.sh \
	probes/tests/test_users.sh
EXTRA_DIST += \
	probes/tests/common.sh \
	probes/tests/exact.cc \
	probes/tests/loads.c \
	probes/tests/no_insn.c \
	probes/tests/test_exact.sh \
	probes/tests/test_loads.sh \
	probes/tests/test_environment.sh \
	probes/tests/test_last_thread.sh \
	probes/tests/test_pages.sh \
	probes/tests/test_static.sh \
	probes/tests/test_users.sh \
	probes/core/tests/grace.c \
	probes/core/tests/test_coroutine.sh \
	probes/core/tests/test_function.sh \
	probes/core/tests/test_grace.sh \
	probes/core/tests/test_unload.sh \
	probes/core/tests/unload.c \
	probes/providers/tests/test_imports.sh

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
