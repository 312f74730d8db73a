# SPDX-License-Identifier: MIT
# What a decoded function does.
noinst_LTLIBRARIES += libfastinst_insn.la
libfastinst_insn_la_SOURCES = \
	probes/insn/branches.c \
	probes/insn/constants.c \
	probes/insn/effects.c \
	probes/insn/function.c \
	probes/insn/insn.c \
	probes/insn/insn.h \
	probes/insn/jump_table.c \
	probes/insn/value.c \
	probes/insn/zydis.c \
	probes/insn/zydis.h
libfastinst_insn_la_LIBADD = $(ZYDIS_LIBS)

if HAVE_CMOCKA
check_PROGRAMS += probes/insn/tests/test_constants
tests_compute += probes/insn/tests/test_constants
probes_insn_tests_test_constants_LDADD = libfastinst_insn.la libfastinst_elf.la $(LDADD)
check_PROGRAMS += probes/insn/tests/test_effects
tests_compute += probes/insn/tests/test_effects
probes_insn_tests_test_effects_LDADD = libfastinst_insn.la $(LDADD)
check_PROGRAMS += probes/insn/tests/test_parts
tests_compute += probes/insn/tests/test_parts
probes_insn_tests_test_parts_LDADD = libfastinst_insn.la libfastinst_elf.la $(LDADD)
endif
