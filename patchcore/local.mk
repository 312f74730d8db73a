# SPDX-License-Identifier: MIT

# The private symbols, for the program and for tests that look inside.
noinst_LTLIBRARIES += libpatchcore_internal.la
libpatchcore_internal_la_SOURCES = \
	patchcore/batch.c \
	patchcore/finisher.c \
	patchcore/finisher.h \
	patchcore/flight.c \
	patchcore/flight.h \
	patchcore/identity.c \
	patchcore/identity.h \
	patchcore/library.c \
	patchcore/library.h \
	patchcore/machine_conf.c \
	patchcore/machine_conf.h \
	patchcore/patch.c \
	patchcore/patch.h \
	patchcore/policy.c \
	patchcore/policy.h \
	patchcore/site.c \
	patchcore/site.h \
	patchcore/sync.c \
	patchcore/sync.h \
	patchcore/table.c \
	patchcore/table.h \
	patchcore/text.c \
	patchcore/text.h \
	patchcore/thread.c \
	patchcore/thread.h \
	patchcore/trap.c \
	patchcore/trap.h \
	patchcore/wait.h \
	patchcore/word.c \
	patchcore/word.h
libpatchcore_internal_la_LIBADD = $(INIH_LIBS)

# The same objects with nothing but the public functions in sight.
lib_LTLIBRARIES += libpatchcore.la
libpatchcore_la_SOURCES =
libpatchcore_la_LIBADD = libpatchcore_internal.la
libpatchcore_la_LDFLAGS = -version-info 0:0:0 -Wl,-z,nodelete \
	-Wl,--version-script=$(top_srcdir)/patchcore/patchcore.map
EXTRA_libpatchcore_la_DEPENDENCIES = libpatchcore_internal.la patchcore/patchcore.map

patchcoreincludedir = $(includedir)/patchcore
patchcoreinclude_HEADERS = \
	patchcore/include/patchcore/async.h \
	patchcore/include/patchcore/batch.h \
	patchcore/include/patchcore/patchcore.h
pkgconfig_DATA = patchcore/patchcore.pc

EXTRA_DIST += \
	patchcore/patchcore.map \
	patchcore/tests/child.h \
	patchcore/tests/code.h \
	patchcore/tests/conf_sample.h \
	patchcore/tests/fixtures \
	patchcore/tests/installcheck.sh \
	patchcore/tests/proof.c \
	patchcore/tests/step.h \
	patchcore/tests/test_exports.sh
check_PROGRAMS += patchcore/tests/fuzz_conf
TESTS += \
	patchcore/tests/fuzz_conf \
	patchcore/tests/test_exports.sh
CLEANFILES += patchcore/tests/fuzz_conf.crash

patchcore_tests_fuzz_conf_CPPFLAGS = $(fuzz_cppflags)
patchcore_tests_fuzz_conf_CFLAGS = $(fuzz_cflags)

if HAVE_CMOCKA
patchcore_tests = \
	patchcore/tests/test_conf \
	patchcore/tests/test_conf_file \
	patchcore/tests/test_identity \
	patchcore/tests/test_identity_fields \
	patchcore/tests/test_patch \
	patchcore/tests/test_policy \
	patchcore/tests/test_steps \
	patchcore/tests/test_text \
	patchcore/tests/test_text_threads \
	patchcore/tests/test_trap
check_PROGRAMS += $(patchcore_tests)
TESTS += $(patchcore_tests)

patchcore_tests_test_policy_LDFLAGS = -Wl,--wrap=identity_read
endif

# An installed copy must serve a user who knows nothing but pkg-config.
installcheck-local:
	CC='$(CC)' PKG_CONFIG='$(PKG_CONFIG)' SANITIZERS='$(SANITIZERS)' \
		PKG_CONFIG_PATH='$(DESTDIR)$(pkgconfigdir)'"$${PKG_CONFIG_PATH:+:$$PKG_CONFIG_PATH}" \
		PKG_CONFIG_SYSROOT_DIR='$(DESTDIR)' \
		bash $(top_srcdir)/patchcore/tests/installcheck.sh
