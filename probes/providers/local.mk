# SPDX-License-Identifier: MIT
# Static branches and static calls.
libfastinst_internal_la_SOURCES += \
	probes/providers/branch.c \
	probes/providers/branch.h
fastinstinclude_HEADERS = probes/include/fastinst/branch.h

if HAVE_CMOCKA
probes_providers_tests = \
	probes/providers/tests/test_branch \
	probes/providers/tests/test_call
check_PROGRAMS += $(probes_providers_tests)
tests_compute += $(probes_providers_tests)
probes_providers_tests_test_branch_LDADD = $(probes_ldadd)
probes_providers_tests_test_call_LDADD = $(probes_ldadd)
endif
tests_compute += probes/providers/tests/test_outside.sh
EXTRA_DIST += probes/providers/tests/test_outside.sh

# Calls that the compiler has put into functions, and lists nowhere.
libfastinst_internal_la_SOURCES += \
	probes/providers/calls.c \
	probes/providers/calls.h
libfastinst_internal_la_LIBADD += libfastinst_find.la

# For "fastinst list", too.
noinst_LTLIBRARIES += libfastinst_find.la
libfastinst_find_la_SOURCES = probes/providers/calls_find.c

calls_script_tests = \
	probes/providers/tests/test_compares.sh \
	probes/providers/tests/test_compiled.sh \
	probes/providers/tests/test_counts.sh \
	probes/providers/tests/test_jumps.sh
tests_compute += $(calls_script_tests)
tests_race += probes/providers/tests/test_toggled.sh
EXTRA_DIST += \
	$(calls_script_tests) \
	probes/providers/tests/test_toggled.sh \
	probes/providers/tests/blocked.c \
	probes/providers/tests/compared.c \
	probes/providers/tests/compares.c \
	probes/providers/tests/reference.c
if HAVE_CMOCKA
check_PROGRAMS += probes/providers/tests/test_blocks
tests_race += probes/providers/tests/test_blocks
probes_providers_tests_test_blocks_LDFLAGS = -Wl,--wrap=function_index
probes_providers_tests_test_blocks_LDADD = $(probes_ldadd)
endif

check_PROGRAMS += probes/providers/tests/test_hooks
tests_race += probes/providers/tests/test_hooks
probes_providers_tests_test_hooks_SOURCES = \
	probes/providers/tests/hooked.c \
	probes/providers/tests/hooked.h \
	probes/providers/tests/test_hooks.c
probes_providers_tests_test_hooks_CPPFLAGS = $(AM_CPPFLAGS) -DBREAKABLE
probes_providers_tests_test_hooks_CFLAGS = $(AM_CFLAGS) -finstrument-functions
probes_providers_tests_test_hooks_LDFLAGS = -Wl,--wrap=function_index
probes_providers_tests_test_hooks_LDADD = libfastinst_internal.la libpatchcore.la

# Markers: a macro that places one, their notes, operands, stubs.
libfastinst_internal_la_SOURCES += \
	probes/providers/marker.c \
	probes/providers/marker.h \
	probes/providers/marker_note.c

fastinstincludedir = $(includedir)/fastinst
fastinstinclude_HEADERS += \
	probes/include/fastinst/args.h \
	probes/include/fastinst/compare.h \
	probes/include/fastinst/marker.h

# In a folder of its own: with -I it comes before the system's.
fastinstcompatdir = $(includedir)/fastinst/compat/sys
fastinstcompat_HEADERS = probes/include/fastinst/compat/sys/sdt.h

# They look inside; libpatchcore is the shared one that libfastinst uses.
probes_ldadd = libfastinst_internal.la libpatchcore.la $(CMOCKA_LIBS)

check_PROGRAMS += probes/providers/tests/red_zone
not_asan += probes/providers/tests/red_zone
probes_providers_tests_red_zone_LDADD = $(probes_ldadd)
probes_providers_tests_red_zone_LDFLAGS = -export-dynamic
probes_script_tests = \
	probes/providers/tests/test_compilers.sh \
	probes/providers/tests/test_consumers.sh \
	probes/providers/tests/test_red_zone.sh
tests_compute += $(probes_script_tests)
EXTRA_DIST += \
	$(probes_script_tests) \
	probes/providers/tests/floating.c \
	probes/providers/tests/leaf.c \
	probes/providers/tests/marker_sample.c \
	probes/providers/tests/marker_sample.h

if HAVE_CMOCKA
probes_providers_tests += \
	probes/providers/tests/test_marker \
	probes/providers/tests/test_operand \
	probes/providers/tests/test_preserve
probes_providers_tests_test_marker_LDADD = $(probes_ldadd)
probes_providers_tests_test_operand_LDADD = $(probes_ldadd)
probes_providers_tests_test_preserve_LDADD = $(probes_ldadd)
endif

check_PROGRAMS += probes/providers/tests/fuzz_notes
tests_compute += probes/providers/tests/fuzz_notes
CLEANFILES += probes/providers/tests/fuzz_notes.crash
probes_providers_tests_fuzz_notes_CPPFLAGS = $(fuzz_cppflags)
probes_providers_tests_fuzz_notes_CFLAGS = $(fuzz_cflags)
probes_providers_tests_fuzz_notes_LDADD = libfastinst_internal.la libstress.a libpatchcore.la

