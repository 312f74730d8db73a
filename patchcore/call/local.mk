# SPDX-License-Identifier: MIT
# Calls that are turned on and off.
libpatchcore_internal_la_SOURCES += \
	patchcore/call/call.c \
	patchcore/call/call_form.h \
	patchcore/call/call_init.c \
	patchcore/call/stub.c \
	patchcore/call/stub.h

if HAVE_CMOCKA
patchcore_call_tests = \
	patchcore/call/tests/test_call \
	patchcore/call/tests/test_call_growth \
	patchcore/call/tests/test_call_place \
	patchcore/call/tests/test_call_threads \
	patchcore/call/tests/test_stub
patchcore_call_computing = patchcore/call/tests/test_call_get patchcore/call/tests/test_call_turns
check_PROGRAMS += $(patchcore_call_tests) $(patchcore_call_computing)
tests_race += $(patchcore_call_tests)
tests_compute += $(patchcore_call_computing)
not_asan += $(patchcore_call_computing)
endif
