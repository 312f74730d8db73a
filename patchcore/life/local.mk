# SPDX-License-Identifier: MIT
# Start and end, forks, and code that goes.
libpatchcore_internal_la_SOURCES += \
	patchcore/life/forget.c \
	patchcore/life/fork.c \
	patchcore/life/library.c \
	patchcore/life/strerror.c

EXTRA_DIST += \
	patchcore/life/tests/life.h \
	patchcore/life/tests/life_cell.h \
	patchcore/life/tests/test_life_table.sh

if HAVE_CMOCKA
patchcore_life_tests = \
	patchcore/life/tests/test_ends \
	patchcore/life/tests/test_fork_amid \
	patchcore/life/tests/test_fork_gate \
	patchcore/life/tests/test_fork_rest \
	patchcore/life/tests/test_life_broken \
	patchcore/life/tests/test_life_fault \
	patchcore/life/tests/test_life_fork \
	patchcore/life/tests/test_life_matrix \
	patchcore/life/tests/test_life_vfork \
	patchcore/life/tests/test_reload \
	patchcore/life/tests/test_signal_safe \
	patchcore/life/tests/test_strerror \
	patchcore/life/tests/test_unload
check_PROGRAMS += $(patchcore_life_tests)
tests_wait += $(patchcore_life_tests)
not_asan += patchcore/life/tests/test_life_broken patchcore/life/tests/test_life_matrix
tests_wait += patchcore/life/tests/test_life_table.sh
not_asan += patchcore/life/tests/test_life_table.sh
patchcore_life_tests_test_fork_amid_LDFLAGS = -Wl,--wrap=text_follow_alias
patchcore_life_tests_test_fork_rest_LDFLAGS = -Wl,--wrap=thread_any_inside \
	-Wl,--wrap=text_give_back_borrowed,--wrap=membarrier_sync

life_sources = \
	patchcore/life/tests/life_cell.c \
	patchcore/life/tests/life_event.c \
	patchcore/life/tests/life_expected.c \
	patchcore/life/tests/life_fork.c \
	patchcore/life/tests/life_point.c \
	patchcore/life/tests/life_protocol.c \
	patchcore/life/tests/life_visit.c
patchcore_life_tests_test_life_broken_SOURCES = patchcore/life/tests/test_life_broken.c \
	$(life_sources)
patchcore_life_tests_test_life_broken_LDFLAGS = -Wl,--wrap=thread_is_gone,--wrap=thread_ask_end \
	-Wl,--wrap=thread_is_interrupted,--wrap=thread_adopt,--wrap=text_before_fork
patchcore_life_tests_test_life_matrix_SOURCES = patchcore/life/tests/test_life_matrix.c \
	$(life_sources)
# It loads the shared library, and must not have those symbols itself.
EXTRA_patchcore_life_tests_test_unload_DEPENDENCIES = libpatchcore.la
EXTRA_patchcore_life_tests_test_reload_DEPENDENCIES = patchcore/tests/day/day_library.la
endif
