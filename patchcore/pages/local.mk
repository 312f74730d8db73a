# SPDX-License-Identifier: MIT
# Pages of code.
libpatchcore_internal_la_SOURCES += \
	patchcore/pages/alias.c \
	patchcore/pages/objects.c \
	patchcore/pages/span.c \
	patchcore/pages/text.c \
	patchcore/pages/text.h \
	patchcore/pages/text_maps.c \
	patchcore/pages/text_page.h

in_tsan += \
	patchcore/pages/tests/test_text \
	patchcore/pages/tests/test_text_alias \
	patchcore/pages/tests/test_text_threads

if HAVE_CMOCKA
patchcore_pages_tests = \
	patchcore/pages/tests/test_pkeys \
	patchcore/pages/tests/test_text \
	patchcore/pages/tests/test_text_alias \
	patchcore/pages/tests/test_text_breakpoint \
	patchcore/pages/tests/test_text_forget \
	patchcore/pages/tests/test_text_fork_locks \
	patchcore/pages/tests/test_text_gone \
	patchcore/pages/tests/test_text_growth \
	patchcore/pages/tests/test_text_kinds \
	patchcore/pages/tests/test_text_loan \
	patchcore/pages/tests/test_text_maps \
	patchcore/pages/tests/test_text_refused \
	patchcore/pages/tests/test_text_shared
patchcore_pages_waiting = patchcore/pages/tests/test_text_fork patchcore/pages/tests/test_text_threads
check_PROGRAMS += $(patchcore_pages_tests) $(patchcore_pages_waiting)
tests_race += $(patchcore_pages_tests)
tests_wait += $(patchcore_pages_waiting)
not_asan += patchcore/pages/tests/test_text_gone
patchcore_pages_tests_test_text_gone_LDFLAGS = -Wl,--wrap=mprotect \
	-Wl,--wrap=mappings_each
patchcore_pages_tests_test_text_growth_LDFLAGS = -Wl,--wrap=table_find
patchcore_pages_tests_test_text_loan_LDFLAGS = -Wl,--wrap=mapping_page_size,--wrap=mprotect \
	-Wl,--wrap=text_end_outside,--wrap=flight_drain
endif
EXTRA_DIST += patchcore/pages/tests/pkeys-in-qemu
