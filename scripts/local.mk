# SPDX-License-Identifier: MIT
# In the package, and enabled by nobody but the administrator.
systemdunitdir = $(prefix)/lib/systemd/system
dist_systemdunit_DATA = scripts/tmax-calibrate.timer
nodist_systemdunit_DATA = scripts/tmax-calibrate.service
CLEANFILES += scripts/tmax-calibrate.service

scripts/tmax-calibrate.service: $(srcdir)/scripts/tmax-calibrate.service.in Makefile
	@$(MKDIR_P) scripts
	$(AM_V_GEN)sed 's|@bindir[@]|$(bindir)|g' $(srcdir)/scripts/tmax-calibrate.service.in >$@

EXTRA_DIST += \
	scripts/tmax-calibrate.service.in \
	.ci/run \
	scripts/bench \
	scripts/calibrate \
	scripts/check \
	scripts/deps \
	scripts/pkeys-in-qemu \
	scripts/tests/tap-run \
	scripts/tests/test_rooms.sh \
	scripts/tests/test_shellcheck.sh
TESTS += scripts/tests/test_rooms.sh scripts/tests/test_shellcheck.sh
