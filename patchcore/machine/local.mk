# SPDX-License-Identifier: MIT
# What is known of the machine, and what it allows.
libpatchcore_internal_la_SOURCES += \
	patchcore/machine/conf_file.c \
	patchcore/machine/conf_read.c \
	patchcore/machine/conf_rules.c \
	patchcore/machine/cpus.c \
	patchcore/machine/cpus.h \
	patchcore/machine/identity.c \
	patchcore/machine/identity.h \
	patchcore/machine/kinds.c \
	patchcore/machine/kinds.h \
	patchcore/machine/machine_conf.h \
	patchcore/machine/policy.c \
	patchcore/machine/policy.h \
	patchcore/machine/rest.c \
	patchcore/machine/rest.h \
	patchcore/machine/sync.c \
	patchcore/machine/sync.h \
	patchcore/machine/tsc.c \
	patchcore/machine/wait.h

CLEANFILES += patchcore/machine/tests/fuzz_conf.crash
check_PROGRAMS += patchcore/machine/tests/fuzz_conf
tests_compute += patchcore/machine/tests/fuzz_conf
patchcore_machine_tests_fuzz_conf_CPPFLAGS = $(fuzz_cppflags)
patchcore_machine_tests_fuzz_conf_CFLAGS = $(fuzz_cflags)
patchcore_machine_tests_fuzz_conf_LDFLAGS = -Wl,--wrap=conf_rule
patchcore_machine_tests_fuzz_conf_LDADD = $(LDADD) -lm

in_tsan += patchcore/machine/tests/test_sync
in_dist += patchcore/machine/tests/test_conf_file patchcore/machine/tests/test_conf_places
EXTRA_DIST += \
	patchcore/machine/tests/conf_folder.h \
	patchcore/machine/tests/levels.h \
	patchcore/machine/tests/policy_case.h

if HAVE_CMOCKA
patchcore_machine_tests = \
	patchcore/machine/tests/test_level_sites \
	patchcore/machine/tests/test_levels \
	patchcore/machine/tests/test_policy \
	patchcore/machine/tests/test_policy_conf \
	patchcore/machine/tests/test_policy_start \
	patchcore/machine/tests/test_sync \
	patchcore/machine/tests/test_tsc \
	patchcore/machine/tests/test_wait \
	patchcore/machine/tests/test_wait_moves
patchcore_machine_computing = \
	patchcore/machine/tests/test_choices \
	patchcore/machine/tests/test_conf \
	patchcore/machine/tests/test_conf_file \
	patchcore/machine/tests/test_conf_form \
	patchcore/machine/tests/test_conf_places \
	patchcore/machine/tests/test_conf_rules \
	patchcore/machine/tests/test_cpus \
	patchcore/machine/tests/test_identity \
	patchcore/machine/tests/test_identity_fields
check_PROGRAMS += $(patchcore_machine_tests) $(patchcore_machine_computing)
tests_race += $(patchcore_machine_tests)
tests_compute += $(patchcore_machine_computing)

patchcore_machine_tests_test_choices_LDADD = $(LDADD) -lm
wrap_policy = -Wl,--wrap=identity_read,--wrap=tsc_problem
patchcore_machine_tests_test_policy_LDFLAGS = $(wrap_policy)
patchcore_machine_tests_test_policy_conf_LDFLAGS = $(wrap_policy)
patchcore_machine_tests_test_policy_start_LDFLAGS = $(wrap_policy)
endif
