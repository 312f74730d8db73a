# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libfleet.a
libfleet_a_SOURCES = \
	commands/tmax/fleet_cmd.c \
	commands/tmax/merge_cmd.c \
	fleet/export/export.h \
	fleet/export/prior.c \
	fleet/export/prior.h \
	fleet/export/table.c \
	fleet/export/textfile.c \
	fleet/judge/changes.c \
	fleet/judge/changes.h \
	fleet/judge/judge.c \
	fleet/judge/judge.h \
	fleet/judge/ladder_of.c \
	fleet/judge/ladder_of.h \
	commands/report/fleet_report.c \
	fleet/store/intake.c \
	fleet/store/intake.h \
	fleet/store/store.c \
	fleet/store/store.h

dist_pkgdata_DATA += \
	fleet/export/tmax-fleet.rules.yml \
	results/schema/fleet.sql

check_PROGRAMS += fleet/tests/simulate
fleet_tests_simulate_SOURCES = fleet/tests/simulate.c fleet/tests/world.h
tests_compute += fleet/export/tests/test_scrape.sh
EXTRA_DIST += \
	fleet/export/tests/rules-test.yml \
	fleet/export/tests/test_scrape.sh

if HAVE_CMOCKA
fleet_tests = fleet/judge/tests/test_judge
fleet_reading = fleet/store/tests/test_intake
check_PROGRAMS += $(fleet_tests) $(fleet_reading)
tests_compute += $(fleet_tests)
tests_read += $(fleet_reading)
not_asan += $(fleet_tests)
endif

# How to run on many machines: scripts, used in place or from where they are installed.
enginesdir = $(pkgdatadir)/engines
dist_engines_SCRIPTS = fleet/engines/collect fleet/engines/part fleet/engines/slurm fleet/engines/ssh \
	fleet/engines/verify-changed
dist_engines_DATA = fleet/engines/prepare.sh
engines_tests = \
	fleet/engines/tests/test_ansible.sh \
	fleet/engines/tests/test_part.sh \
	fleet/engines/tests/test_slurm.sh \
	fleet/engines/tests/test_ssh.sh
engines_computing = fleet/engines/tests/test_units.sh
tests_calibrate += $(engines_tests)
tests_compute += $(engines_computing)
not_asan += fleet/engines/%
EXTRA_DIST += $(engines_tests) \
	$(engines_computing) \
	fleet/engines/ansible/roles/tmax/defaults/main.yml \
	fleet/engines/ansible/roles/tmax/meta/main.yml \
	fleet/engines/ansible/roles/tmax/tasks/collect.yml \
	fleet/engines/ansible/roles/tmax/tasks/install.yml \
	fleet/engines/ansible/roles/tmax/tasks/main.yml \
	fleet/engines/ansible/roles/tmax/tasks/run.yml \
	fleet/engines/ansible/tmax.yml

# In the package; only the administrator enables them.
units = fleet/engines/systemd/tmax-calibrate.service fleet/engines/systemd/tmax-verify.service
if SYSTEMD_UNITS
systemdsystemunit_DATA = $(units)
dist_systemdsystemunit_DATA = fleet/engines/systemd/tmax-calibrate.timer fleet/engines/systemd/tmax-verify.timer
else
EXTRA_DIST += fleet/engines/systemd/tmax-calibrate.timer fleet/engines/systemd/tmax-verify.timer
noinst_DATA = $(units)
endif
CLEANFILES += $(units)
EXTRA_DIST += $(units:=.in)

$(units): %: $(srcdir)/%.in Makefile
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)sed -e 's|@bindir[@]|$(bindir)|g' -e 's|@enginesdir[@]|$(enginesdir)|g' \
		-e 's|@localstatedir[@]|$(localstatedir)|g' $(srcdir)/$@.in >$@
