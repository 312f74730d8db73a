# SPDX-License-Identifier: MIT

# The private symbols, for the program and for tests that look inside. Each room adds its own.
noinst_LTLIBRARIES += libpatchcore_internal.la
libpatchcore_internal_la_SOURCES =
libpatchcore_internal_la_LIBADD = $(INIH_LIBS) -lm

# The same objects with nothing but the public functions in sight.
lib_LTLIBRARIES += libpatchcore.la
# First: nothing of the library may run before its calls are bound.
libpatchcore_la_SOURCES = patchcore/life/bind.c patchcore/site/own.c
libpatchcore_la_LIBADD = libpatchcore_internal.la
# now: late binding would take place on the stack of an executor that met an INT3. Bsymbolic: it
# calls itself, also where a program has a copy of its own in sight.
libpatchcore_la_LDFLAGS = -version-info 0:0:0 -Wl,-z,now -Wl,-Bsymbolic \
	$(HARDEN_LDFLAGS) -Wl,--version-script=$(top_srcdir)/patchcore/patchcore.map
EXTRA_libpatchcore_la_DEPENDENCIES = libpatchcore_internal.la patchcore/patchcore.map

patchcoreincludedir = $(includedir)/patchcore
patchcoreinclude_HEADERS = \
	patchcore/include/patchcore/async.h \
	patchcore/include/patchcore/batch.h \
	patchcore/include/patchcore/call.h \
	patchcore/include/patchcore/mapping.h \
	patchcore/include/patchcore/merge.h \
	patchcore/include/patchcore/patchcore.h \
	patchcore/include/patchcore/signals.h
pkgconfig_DATA = patchcore/patchcore.pc
dist_pkgdata_DATA += results/kinds.tsv
cmakedir = $(libdir)/cmake/patchcore
dist_cmake_DATA = patchcore/bindings/patchcoreConfig.cmake
nodist_cmake_DATA = patchcore/bindings/patchcoreConfigVersion.cmake
EXTRA_DIST += meson.build results/kinds.py patchcore/patchcore.abi patchcore/patchcore.map

include patchcore/syscall/local.mk
include patchcore/machine/local.mk
include patchcore/site/local.mk
include patchcore/pages/local.mk
include patchcore/merge/local.mk
include patchcore/word/local.mk
include patchcore/sigtrap/local.mk
include patchcore/patch/local.mk
include patchcore/call/local.mk
include patchcore/life/local.mk
include patchcore/tests/local.mk
