# SPDX-License-Identifier: MIT
# The manual pages. A page of one line is another name of the page that it names.
dist_man_MANS = \
	docs/man/machine.conf.5 \
	docs/man/patchcore.7 \
	docs/man/pc_activate_call.3 \
	docs/man/pc_async.3 \
	docs/man/pc_batch.3 \
	docs/man/pc_call.3 \
	docs/man/pc_call_fini.3 \
	docs/man/pc_call_get.3 \
	docs/man/pc_call_init.3 \
	docs/man/pc_check_signals.3 \
	docs/man/pc_deactivate_call.3 \
	docs/man/pc_drain.3 \
	docs/man/pc_fini.3 \
	docs/man/pc_finish_patch.3 \
	docs/man/pc_forget.3 \
	docs/man/pc_get_status.3 \
	docs/man/pc_init.3 \
	docs/man/pc_merge.3 \
	docs/man/pc_patch.3 \
	docs/man/pc_patch_batch.3 \
	docs/man/pc_patch_how.3 \
	docs/man/pc_patch_merge.3 \
	docs/man/pc_patch_over.3 \
	docs/man/pc_patch_over_batch.3 \
	docs/man/pc_patch_starts.3 \
	docs/man/pc_set_accept_p.3 \
	docs/man/pc_set_chained_trap.3 \
	docs/man/pc_set_policy.3 \
	docs/man/pc_signals.3 \
	docs/man/pc_start_patch.3 \
	docs/man/pc_strerror.3 \
	docs/man/pc_text.3 \
	docs/man/pc_text_alias.3 \
	docs/man/pc_text_close.3 \
	docs/man/pc_text_open.3 \
	docs/man/pc_text_open_shared.3 \
	docs/man/pc_text_way.3
if !LIBRARY_ONLY
dist_man_MANS += \
	docs/man/fastinst.1 \
	docs/man/fi_activate.3 \
	docs/man/fi_activate_batch.3 \
	docs/man/fi_activate_how.3 \
	docs/man/fi_branch.3 \
	docs/man/fi_branch_allow.3 \
	docs/man/fi_branch_off.3 \
	docs/man/fi_branch_on.3 \
	docs/man/fi_branch_settings.3 \
	docs/man/fi_branch_veto.3 \
	docs/man/fi_branches.3 \
	docs/man/fi_call_retarget.3 \
	docs/man/fi_calls.3 \
	docs/man/fi_compare.3 \
	docs/man/fi_compare_arg.3 \
	docs/man/fi_compare_args.3 \
	docs/man/fi_compare_float.3 \
	docs/man/fi_count.3 \
	docs/man/fi_deactivate.3 \
	docs/man/fi_deactivate_batch.3 \
	docs/man/fi_find.3 \
	docs/man/fi_find_from.3 \
	docs/man/fi_fini.3 \
	docs/man/fi_get.3 \
	docs/man/fi_init.3 \
	docs/man/fi_lost.3 \
	docs/man/fi_marker.3 \
	docs/man/fi_marker_arg.3 \
	docs/man/fi_marker_args.3 \
	docs/man/fi_marker_refusal.3 \
	docs/man/fi_marker_regs.3 \
	docs/man/fi_own_thread.3 \
	docs/man/fi_probes.3 \
	docs/man/fi_register_callback.3 \
	docs/man/fi_scan.3 \
	docs/man/fi_set_data.3 \
	docs/man/fi_set_progress.3 \
	docs/man/fi_source.3 \
	docs/man/fi_stubs.3 \
	docs/man/fi_synchronize.3 \
	docs/man/fi_take_entries.3 \
	docs/man/fi_unload.3 \
	docs/man/fi_unregister_callback.3 \
	docs/man/libfastinst.3 \
	docs/man/tmax.1
endif
if HAVE_ZYDIS
dist_man_MANS += docs/man/pc_check_site.3
endif
