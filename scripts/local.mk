# SPDX-License-Identifier: MIT
EXTRA_DIST += \
	.ci/run \
	scripts/bench \
	scripts/build-here \
	scripts/calibrate \
	scripts/check \
	scripts/deps \
	scripts/html \
	scripts/machines \
	scripts/quick-libtool \
	scripts/tests/one-test \
	scripts/tests/reproducible \
	scripts/tests/tap-run \
	scripts/tests/test_abi.sh \
	scripts/tests/test_hostile_names.sh \
	scripts/tests/test_rooms.sh \
	scripts/tests/test_shellcheck.sh \
	scripts/tests/test_spdx.sh \
	scripts/tests/test_version.sh \
	scripts/tests/test_words.sh
tests_compute += scripts/tests/test_abi.sh scripts/tests/test_version.sh
not_asan += scripts/tests/%
in_dist += scripts/tests/test_spdx.sh
tests_compute += \
	scripts/tests/test_hostile_names.sh \
	scripts/tests/test_rooms.sh \
	scripts/tests/test_shellcheck.sh \
	scripts/tests/test_spdx.sh \
	scripts/tests/test_words.sh
