# SPDX-License-Identifier: MIT
# Markers: a macro that places one, their notes, operands, stubs.
libfastinst_internal_la_SOURCES += \
	probes/marker/entry.c \
	probes/marker/marker.c \
	probes/marker/marker.h \
	probes/marker/notes.c \
	probes/marker/operand.c

fastinstincludedir = $(includedir)/fastinst
fastinstinclude_HEADERS = \
	probes/include/fastinst/args.h \
	probes/include/fastinst/compare.h \
	probes/include/fastinst/marker.h

# In a folder of its own: with -I it comes before the system's.
fastinstcompatdir = $(includedir)/fastinst/compat/sys
fastinstcompat_HEADERS = probes/include/fastinst/compat/sys/sdt.h

# They look inside; libpatchcore is the shared one that libfastinst uses.
probes_ldadd = libfastinst_internal.la libpatchcore.la $(CMOCKA_LIBS)

check_PROGRAMS += probes/marker/tests/red_zone
not_asan += probes/marker/tests/red_zone
probes_marker_tests_red_zone_LDADD = $(probes_ldadd)
probes_marker_tests_red_zone_LDFLAGS = -export-dynamic
probes_script_tests = \
	probes/marker/tests/test_compilers.sh \
	probes/marker/tests/test_consumers.sh \
	probes/marker/tests/test_red_zone.sh
tests_compute += $(probes_script_tests)
EXTRA_DIST += \
	$(probes_script_tests) \
	probes/marker/tests/floating.c \
	probes/marker/tests/leaf.c \
	probes/marker/tests/sample.c \
	probes/marker/tests/sample.h

if HAVE_CMOCKA
probes_marker_tests = \
	probes/marker/tests/test_marker \
	probes/marker/tests/test_operand \
	probes/marker/tests/test_preserve
check_PROGRAMS += $(probes_marker_tests)
tests_compute += $(probes_marker_tests)
probes_marker_tests_test_marker_LDADD = $(probes_ldadd)
probes_marker_tests_test_operand_LDADD = $(probes_ldadd)
probes_marker_tests_test_preserve_LDADD = $(probes_ldadd)
endif

check_PROGRAMS += probes/marker/tests/fuzz_notes
tests_compute += probes/marker/tests/fuzz_notes
CLEANFILES += probes/marker/tests/fuzz_notes.crash
probes_marker_tests_fuzz_notes_CPPFLAGS = $(fuzz_cppflags)
probes_marker_tests_fuzz_notes_CFLAGS = $(fuzz_cflags)
probes_marker_tests_fuzz_notes_LDADD = libfastinst_internal.la libstress.a libpatchcore.la

