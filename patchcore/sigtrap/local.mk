# SPDX-License-Identifier: MIT
# SIGTRAP.
libpatchcore_internal_la_SOURCES += \
	patchcore/sigtrap/guard.h \
	patchcore/sigtrap/probe.c \
	patchcore/sigtrap/signals.c \
	patchcore/sigtrap/trap.c \
	patchcore/sigtrap/trap.h

# For programs that block SIGTRAP or take it themselves.
lib_LTLIBRARIES += libpatchcore_guard.la
libpatchcore_guard_la_SOURCES = patchcore/sigtrap/guard.c
libpatchcore_guard_la_LDFLAGS = -version-info 0:0:0 -Wl,-z,nodelete -Wl,-z,now $(HARDEN_LDFLAGS)

EXTRA_DIST += patchcore/sigtrap/tests/test_guard_preload.sh
tests_race += patchcore/sigtrap/tests/test_guard_preload.sh

in_tsan += patchcore/sigtrap/tests/test_trap

if HAVE_CMOCKA
patchcore_sigtrap_tests = \
	patchcore/sigtrap/tests/test_guard \
	patchcore/sigtrap/tests/test_probe \
	patchcore/sigtrap/tests/test_signals \
	patchcore/sigtrap/tests/test_trap \
	patchcore/sigtrap/tests/test_trap_chain \
	patchcore/sigtrap/tests/test_trap_copies \
	patchcore/sigtrap/tests/test_trap_forbidden \
	patchcore/sigtrap/tests/test_trap_mask \
	patchcore/sigtrap/tests/test_trap_priority \
	patchcore/sigtrap/tests/test_trap_process \
	patchcore/sigtrap/tests/test_trap_rseq \
	patchcore/sigtrap/tests/test_trap_stack
check_PROGRAMS += $(patchcore_sigtrap_tests)
tests_race += $(patchcore_sigtrap_tests)

# The guard comes before libc; -export-dynamic: so that it is found if linked statically.
patchcore_sigtrap_tests_test_guard_LDADD = libpatchcore_guard.la $(LDADD)
patchcore_sigtrap_tests_test_guard_LDFLAGS = -export-dynamic
# Its own functions are in sight of the shared library that it loads.
EXTRA_patchcore_sigtrap_tests_test_trap_copies_DEPENDENCIES = libpatchcore.la
patchcore_sigtrap_tests_test_trap_copies_LDFLAGS = -export-dynamic
patchcore_sigtrap_tests_test_trap_mask_LDFLAGS = -Wl,--wrap=others_keep_off,--wrap=flight_help
patchcore_sigtrap_tests_test_trap_rseq_LDFLAGS = -Wl,--wrap=others_keep_off
patchcore_sigtrap_tests_test_trap_stack_LDFLAGS = -Wl,-z,now
endif
