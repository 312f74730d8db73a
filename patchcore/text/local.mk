# SPDX-License-Identifier: MIT
# Pages of code.
libpatchcore_internal_la_SOURCES += \
	patchcore/text/alias.c \
	patchcore/text/objects.c \
	patchcore/text/span.c \
	patchcore/text/text.c \
	patchcore/text/text.h \
	patchcore/text/text_maps.c \
	patchcore/text/text_maps.h \
	patchcore/text/text_page.h \
	patchcore/text/text_way.c

in_tsan += \
	patchcore/text/tests/test_text \
	patchcore/text/tests/test_text_alias \
	patchcore/text/tests/test_text_threads

if HAVE_CMOCKA
patchcore_text_tests = \
	patchcore/text/tests/test_pkeys \
	patchcore/text/tests/test_text \
	patchcore/text/tests/test_text_alias \
	patchcore/text/tests/test_text_breakpoint \
	patchcore/text/tests/test_text_forget \
	patchcore/text/tests/test_text_fork_locks \
	patchcore/text/tests/test_text_gone \
	patchcore/text/tests/test_text_growth \
	patchcore/text/tests/test_text_kinds \
	patchcore/text/tests/test_text_loan \
	patchcore/text/tests/test_text_maps \
	patchcore/text/tests/test_text_refused \
	patchcore/text/tests/test_text_shared
patchcore_text_waiting = patchcore/text/tests/test_text_fork patchcore/text/tests/test_text_threads
check_PROGRAMS += $(patchcore_text_tests) $(patchcore_text_waiting)
tests_race += $(patchcore_text_tests)
tests_wait += $(patchcore_text_waiting)
patchcore_text_tests_test_text_gone_LDFLAGS = -Wl,--wrap=mprotect \
	-Wl,--wrap=mappings_each
patchcore_text_tests_test_text_growth_LDFLAGS = -Wl,--wrap=table_find
patchcore_text_tests_test_text_loan_LDFLAGS = -Wl,--wrap=mapping_page_size,--wrap=mprotect \
	-Wl,--wrap=text_end_outside,--wrap=flight_drain
endif
