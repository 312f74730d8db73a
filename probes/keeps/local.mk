# SPDX-License-Identifier: MIT
# Whether a probe function changes vector registers, as far as a decoder can tell.
libfastinst_internal_la_SOURCES += probes/keeps/keeps.h
if HAVE_ZYDIS
libfastinst_internal_la_SOURCES += probes/keeps/keeps.c
if HAVE_CMOCKA
check_PROGRAMS += probes/keeps/tests/test_keeps
TESTS += probes/keeps/tests/test_keeps
probes_keeps_tests_test_keeps_LDADD = libfastinst_internal.la $(LDADD)
probes_keeps_tests_test_keeps_LDFLAGS = -Wl,--wrap=ZydisDecoderDecodeFull
endif
else
libfastinst_internal_la_SOURCES += probes/keeps/no_keeps.c
endif
