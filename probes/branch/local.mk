# SPDX-License-Identifier: MIT
# Static branches and static calls.
libfastinst_internal_la_SOURCES += \
	probes/branch/branch.c \
	probes/branch/branch.h \
	probes/branch/call.c
fastinstinclude_HEADERS += probes/include/fastinst/branch.h

if HAVE_CMOCKA
probes_branch_tests = \
	probes/branch/tests/test_branch \
	probes/branch/tests/test_call
check_PROGRAMS += $(probes_branch_tests)
tests_compute += $(probes_branch_tests)
probes_branch_tests_test_branch_LDADD = $(probes_ldadd)
probes_branch_tests_test_call_LDADD = $(probes_ldadd)
endif
tests_compute += probes/branch/tests/test_outside.sh
EXTRA_DIST += probes/branch/tests/test_outside.sh
