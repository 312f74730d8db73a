# SPDX-License-Identifier: MIT
# The word protocol.
libpatchcore_internal_la_SOURCES += \
	patchcore/word/flight.c \
	patchcore/word/flight.h \
	patchcore/word/word.c \
	patchcore/word/word.h

if HAVE_CMOCKA
patchcore_word_tests = \
	patchcore/word/tests/test_async \
	patchcore/word/tests/test_async_threads \
	patchcore/word/tests/test_not_owned \
	patchcore/word/tests/test_rescue \
	patchcore/word/tests/test_starts \
	patchcore/word/tests/test_steps
check_PROGRAMS += $(patchcore_word_tests)
TESTS += $(patchcore_word_tests)
endif
