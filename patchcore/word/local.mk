# SPDX-License-Identifier: MIT
# The word protocol.
libpatchcore_internal_la_SOURCES += \
	patchcore/word/await_rest.c \
	patchcore/word/flight.c \
	patchcore/word/flight.h \
	patchcore/word/word.c \
	patchcore/word/word.h

in_tsan += patchcore/word/tests/test_async_threads

if HAVE_CMOCKA
patchcore_word_tests = \
	patchcore/word/tests/test_async \
	patchcore/word/tests/test_async_threads \
	patchcore/word/tests/test_not_owned \
	patchcore/word/tests/test_rescue \
	patchcore/word/tests/test_rest \
	patchcore/word/tests/test_starts
patchcore_word_computing = patchcore/word/tests/test_steps
check_PROGRAMS += $(patchcore_word_tests) $(patchcore_word_computing)
tests_race += $(patchcore_word_tests)
tests_compute += $(patchcore_word_computing)
not_asan += $(patchcore_word_computing) patchcore/word/tests/test_not_owned
endif
