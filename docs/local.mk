# SPDX-License-Identifier: MIT
dist_man_MANS = \
	doc/machine.conf.5 \
	doc/patchcore.7 \
	doc/pc_fini.3 \
	doc/pc_get_status.3 \
	doc/pc_init.3 \
	doc/pc_patch.3 \
	doc/pc_set_accept_p.3 \
	doc/pc_set_policy.3 \
	doc/pc_text_close.3 \
	doc/pc_text_open.3 \
	doc/tmax.1

TESTS += doc/tests/test_man.sh
EXTRA_DIST += doc/tests/test_man.sh
