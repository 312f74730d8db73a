# SPDX-License-Identifier: MIT
dist_pkgdata_DATA += \
	scripts/figure9.gp \
	scripts/gaps.gp \
	scripts/rate.gp \
	scripts/witnesses.gp

EXTRA_DIST += \
	.ci/run \
	scripts/calibrate \
	scripts/check \
	scripts/deps \
	scripts/tests/tap-run \
	scripts/tests/test_shellcheck.sh
TESTS += scripts/tests/test_shellcheck.sh
