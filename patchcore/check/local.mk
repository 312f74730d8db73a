# SPDX-License-Identifier: MIT
# The checking layer, a library beside the other one, and what else takes a decoder.
if HAVE_ZYDIS
noinst_LTLIBRARIES += libpatchcore_check_internal.la
libpatchcore_check_internal_la_SOURCES = \
	patchcore/check/check.c \
	patchcore/check/decode.c \
	patchcore/check/decode.h
libpatchcore_check_internal_la_LIBADD = $(ZYDIS_LIBS)

lib_LTLIBRARIES += libpatchcore_check.la
libpatchcore_check_la_SOURCES =
libpatchcore_check_la_LIBADD = libpatchcore_check_internal.la libpatchcore.la
libpatchcore_check_la_LDFLAGS = -version-info 0:0:0 $(HARDEN_LDFLAGS) \
	-Wl,--version-script=$(top_srcdir)/patchcore/check/patchcore_check.map
EXTRA_libpatchcore_check_la_DEPENDENCIES = patchcore/check/patchcore_check.map

patchcoreinclude_HEADERS += patchcore/include/patchcore/check.h
pkgconfig_DATA += patchcore/check/patchcore_check.pc

examples += patchcore/examples/check
dist_examples_DATA += patchcore/examples/check.c
patchcore_examples_check_LDADD = libpatchcore_check.la libpatchcore.la

tests_compute += patchcore/check/tests/test_check_exports.sh
if HAVE_CMOCKA
check_PROGRAMS += patchcore/check/tests/test_check
tests_compute += patchcore/check/tests/test_check
patchcore_check_tests_test_check_LDADD = libpatchcore_check_internal.la $(LDADD)

# Functions of libc, patched under the library.
check_PROGRAMS += patchcore/tests/real/libc_sites
not_asan += patchcore/tests/real/libc_sites
tests_wait += patchcore/tests/real/test_libc_sites.sh
patchcore_tests_real_libc_sites_LDADD = libpatchcore_check_internal.la $(LDADD)
endif

# Real programs with their calls changed under them.
check_LTLIBRARIES += patchcore/tests/real/preload.la
patchcore_tests_real_preload_la_SOURCES = \
	patchcore/tests/real/functions.c \
	patchcore/tests/real/functions.h \
	patchcore/tests/real/preload.c \
	patchcore/tests/real/sites.c \
	patchcore/tests/real/sites.h
patchcore_tests_real_preload_la_LIBADD = libpatchcore_internal.la $(ZYDIS_LIBS)
patchcore_tests_real_preload_la_LDFLAGS = -module -avoid-version -rpath /nowhere \
	-Wl,--version-script=$(top_srcdir)/patchcore/tests/real/preload.map
tests_race += patchcore/tests/real/test_real.sh
endif

EXTRA_DIST += \
	patchcore/check/patchcore_check.map \
	patchcore/tests/real/load.lua \
	patchcore/tests/real/load.sql \
	patchcore/tests/real/preload.map \
	patchcore/tests/real/test_real.sh \
	patchcore/check/tests/test_check_exports.sh \
	patchcore/tests/real/test_libc_sites.sh
