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
	docs/pc_deactivate_call.3 \
	docs/pc_drain.3 \
	docs/pc_fini.3 \
	docs/pc_finish_patch.3 \
	docs/pc_forget.3 \
	docs/pc_get_status.3 \
	docs/pc_init.3 \
	docs/pc_merge.3 \
	docs/pc_patch.3 \
	docs/pc_patch_batch.3 \
	docs/pc_patch_how.3 \
	docs/pc_patch_merge.3 \
	docs/pc_patch_over.3 \
	docs/pc_patch_over_batch.3 \
	docs/pc_patch_starts.3 \
	docs/pc_set_accept_p.3 \
	docs/pc_set_chained_trap.3 \
	docs/pc_set_policy.3 \
	docs/pc_signals.3 \
	docs/pc_start_patch.3 \
	docs/pc_text.3 \
	docs/pc_text_alias.3 \
	docs/pc_text_close.3 \
	docs/pc_text_open.3 \
	docs/pc_text_open_shared.3 \
	docs/pc_text_way.3

TESTS += docs/tests/test_readme.sh
if !LIBRARY_ONLY
dist_man_MANS += docs/tmax.1 \
	docs/fastinst.1 \
	docs/fi_activate.3 \
	docs/fi_activate_batch.3 \
	docs/fi_activate_how.3 \
	docs/fi_branch.3 \
	docs/fi_branch_allow.3 \
	docs/fi_branch_off.3 \
	docs/fi_branch_on.3 \
	docs/fi_branch_settings.3 \
	docs/fi_branch_veto.3 \
	docs/fi_branches.3 \
	docs/fi_call_retarget.3 \
	docs/fi_calls.3 \
	docs/fi_compare.3 \
	docs/fi_compare_arg.3 \
	docs/fi_compare_args.3 \
	docs/fi_compare_float.3 \
	docs/fi_count.3 \
	docs/fi_deactivate.3 \
	docs/fi_deactivate_batch.3 \
	docs/fi_find.3 \
	docs/fi_find_from.3 \
	docs/fi_fini.3 \
	docs/fi_get.3 \
	docs/fi_init.3 \
	docs/fi_lost.3 \
	docs/fi_marker.3 \
	docs/fi_marker_arg.3 \
	docs/fi_marker_args.3 \
	docs/fi_marker_refusal.3 \
	docs/fi_marker_regs.3 \
	docs/fi_own_thread.3 \
	docs/fi_probes.3 \
	docs/fi_register_callback.3 \
	docs/fi_scan.3 \
	docs/fi_set_data.3 \
	docs/fi_set_progress.3 \
	docs/fi_source.3 \
	docs/fi_stubs.3 \
	docs/fi_synchronize.3 \
	docs/fi_take_entries.3 \
	docs/fi_unload.3 \
	docs/fi_unregister_callback.3 \
	docs/libfastinst.3
TESTS += docs/tests/test_commands.sh docs/tests/test_html.sh docs/tests/test_machines.sh docs/tests/test_man.sh \
	docs/tests/test_ci.sh
endif
if HAVE_ZYDIS
dist_man_MANS += docs/pc_check_site.3
endif
EXTRA_DIST += \
	docs/architecture.md \
	docs/ci/github.yml \
	docs/ci/gitlab.yml \
	docs/conform.md \
	docs/costs.md \
	docs/fleet.md \
	docs/guarantees.md \
	docs/README.md \
	docs/install.md \
	docs/lab/programs.md \
	docs/ladder.md \
	docs/machines.md \
	docs/methods.md \
	docs/many-machines.md \
	docs/markers.md \
	docs/peers.md \
	docs/policies.md \
	docs/probes.md \
	docs/profiles.md \
	docs/results.md \
	docs/security.md \
	docs/start.md \
	docs/tail.md \
	docs/tutorial.md \
	docs/tests/test_commands.sh \
	docs/tests/test_html.sh \
	docs/tests/test_machines.sh \
	docs/tests/test_ci.sh \
	docs/tests/test_man.sh \
	docs/tests/test_readme.sh
