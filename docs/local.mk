# SPDX-License-Identifier: MIT
dist_man_MANS = \
	docs/machine.conf.5 \
	docs/patchcore.7 \
	docs/pc_fini.3 \
	docs/pc_get_status.3 \
	docs/pc_init.3 \
	docs/pc_patch.3 \
	docs/pc_set_accept_p.3 \
	docs/pc_set_policy.3 \
	docs/pc_text_close.3 \
	docs/pc_text_open.3 \
	docs/tmax.1

TESTS += docs/tests/test_man.sh
EXTRA_DIST += \
	docs/guarantees.md \
	docs/policies.md \
	docs/tail.md \
	docs/tests/test_man.sh
