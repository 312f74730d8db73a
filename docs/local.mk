# SPDX-License-Identifier: MIT
dist_man_MANS = \
	docs/machine.conf.5 \
	docs/patchcore.7 \
	docs/pc_activate_call.3 \
	docs/pc_async.3 \
	docs/pc_batch.3 \
	docs/pc_call.3 \
	docs/pc_call_fini.3 \
	docs/pc_call_get.3 \
	docs/pc_call_init.3 \
	docs/pc_check_signals.3 \
	docs/pc_check_site.3 \
	docs/pc_choose.3 \
	docs/pc_deactivate_call.3 \
	docs/pc_drain.3 \
	docs/pc_fini.3 \
	docs/pc_finish_patch.3 \
	docs/pc_finisher_start.3 \
	docs/pc_finisher_stop.3 \
	docs/pc_forget.3 \
	docs/pc_get_site.3 \
	docs/pc_get_status.3 \
	docs/pc_init.3 \
	docs/pc_merge.3 \
	docs/pc_patch.3 \
	docs/pc_patch_batch.3 \
	docs/pc_patch_batch_by.3 \
	docs/pc_patch_how.3 \
	docs/pc_patch_merge.3 \
	docs/pc_patch_over.3 \
	docs/pc_patch_starts.3 \
	docs/pc_set_accept_p.3 \
	docs/pc_set_accept_rate.3 \
	docs/pc_set_chained_trap.3 \
	docs/pc_set_policy.3 \
	docs/pc_signals.3 \
	docs/pc_start_patch.3 \
	docs/pc_text.3 \
	docs/pc_text_alias.3 \
	docs/pc_text_close.3 \
	docs/pc_text_open.3 \
	docs/pc_text_open_shared.3 \
	docs/pc_text_use_alias.3 \
	docs/pc_text_way.3 \
	docs/tmax.1

TESTS += docs/tests/test_man.sh docs/tests/test_readme.sh
EXTRA_DIST += \
	docs/architecture.md \
	docs/costs.md \
	docs/guarantees.md \
	docs/ladder.md \
	docs/peers.md \
	docs/policies.md \
	docs/results.md \
	docs/start.md \
	docs/tail.md \
	docs/tests/test_man.sh \
	docs/tests/test_readme.sh
