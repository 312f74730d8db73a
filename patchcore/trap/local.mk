# SPDX-License-Identifier: MIT
# SIGTRAP.
libpatchcore_internal_la_SOURCES += \
	patchcore/trap/guard.h \
	patchcore/trap/probe.c \
	patchcore/trap/signals.c \
	patchcore/trap/trap.c \
	patchcore/trap/trap.h

# For programs that block SIGTRAP or take it themselves.
lib_LTLIBRARIES += libpatchcore_guard.la
libpatchcore_guard_la_SOURCES = patchcore/trap/guard.c
libpatchcore_guard_la_LDFLAGS = -version-info 0:0:0 -Wl,-z,nodelete -Wl,-z,now $(HARDEN_LDFLAGS)

EXTRA_DIST += patchcore/trap/tests/test_guard_preload.sh
tests_race += patchcore/trap/tests/test_guard_preload.sh

in_tsan += patchcore/trap/tests/test_trap

if HAVE_CMOCKA
patchcore_trap_tests = \
	patchcore/trap/tests/test_guard \
	patchcore/trap/tests/test_probe \
	patchcore/trap/tests/test_signals \
	patchcore/trap/tests/test_trap \
	patchcore/trap/tests/test_trap_chain \
	patchcore/trap/tests/test_trap_copies \
	patchcore/trap/tests/test_trap_forbidden \
	patchcore/trap/tests/test_trap_mask \
	patchcore/trap/tests/test_trap_priority \
	patchcore/trap/tests/test_trap_process \
	patchcore/trap/tests/test_trap_rseq \
	patchcore/trap/tests/test_trap_stack
check_PROGRAMS += $(patchcore_trap_tests)
tests_race += $(patchcore_trap_tests)

# The guard comes before libc; -export-dynamic: so that it is found if linked statically.
patchcore_trap_tests_test_guard_LDADD = libpatchcore_guard.la $(LDADD)
patchcore_trap_tests_test_guard_LDFLAGS = -export-dynamic
# Its own functions are in sight of the shared library that it loads.
EXTRA_patchcore_trap_tests_test_trap_copies_DEPENDENCIES = libpatchcore.la
patchcore_trap_tests_test_trap_copies_LDFLAGS = -export-dynamic
patchcore_trap_tests_test_trap_mask_LDFLAGS = -Wl,--wrap=others_keep_off,--wrap=flight_help
patchcore_trap_tests_test_trap_rseq_LDFLAGS = -Wl,--wrap=others_keep_off
patchcore_trap_tests_test_trap_stack_LDFLAGS = -Wl,-z,now
endif
