# SPDX-License-Identifier: MIT
dist_pkgdata_DATA += \
	scripts/bench-latency.gp \
	scripts/bench-rows.gp \
	scripts/bench-scaling.gp \
	scripts/bench-throughput.gp \
	scripts/figure9.gp \
	scripts/gaps.gp \
	scripts/rate.gp \
	scripts/witnesses.gp

peersdir = $(pkgdatadir)/peers
dist_peers_DATA = \
	scripts/peers/CallSites.java \
	scripts/peers/lines.h \
	scripts/peers/uftrace.c \
	scripts/peers/xray.c

EXTRA_DIST += \
	.ci/run \
	scripts/bench \
	scripts/calibrate \
	scripts/check \
	scripts/deps \
	scripts/tests/tap-run \
	scripts/tests/test_shellcheck.sh
TESTS += scripts/tests/test_shellcheck.sh
