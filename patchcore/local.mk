# SPDX-License-Identifier: MIT

# The private symbols, for the program and for tests that look inside.
noinst_LTLIBRARIES += libpatchcore_internal.la
libpatchcore_internal_la_SOURCES = \
	patchcore/alias.c \
	patchcore/alias.h \
	patchcore/batch.c \
	patchcore/call.c \
	patchcore/call_form.c \
	patchcore/call_form.h \
	patchcore/call_init.c \
	patchcore/call_own.h \
	patchcore/call_place.c \
	patchcore/call_place.h \
	patchcore/call_store.h \
	patchcore/cancel.h \
	patchcore/clock.h \
	patchcore/conf_open.c \
	patchcore/conf_open.h \
	patchcore/conf_rules.c \
	patchcore/conf_rules.h \
	patchcore/cpus.c \
	patchcore/cpus.h \
	patchcore/finisher.c \
	patchcore/finisher.h \
	patchcore/flight.c \
	patchcore/flight.h \
	patchcore/forget.c \
	patchcore/forget.h \
	patchcore/fork.c \
	patchcore/fork.h \
	patchcore/frames.c \
	patchcore/frames.h \
	patchcore/guard.h \
	patchcore/identity.c \
	patchcore/identity.h \
	patchcore/kernel_signal.c \
	patchcore/kernel_signal.h \
	patchcore/library.c \
	patchcore/library.h \
	patchcore/lock.c \
	patchcore/lock.h \
	patchcore/machine_conf.c \
	patchcore/machine_conf.h \
	patchcore/merge.c \
	patchcore/merge_check.h \
	patchcore/merge_steps.c \
	patchcore/merge_steps.h \
	patchcore/own.c \
	patchcore/own.h \
	patchcore/patch.c \
	patchcore/patch.h \
	patchcore/objects.c \
	patchcore/objects.h \
	patchcore/pkeys.c \
	patchcore/pkeys.h \
	patchcore/policy.c \
	patchcore/policy.h \
	patchcore/proc_text.c \
	patchcore/proc_text.h \
	patchcore/signals.c \
	patchcore/site.c \
	patchcore/site.h \
	patchcore/stub.c \
	patchcore/stub.h \
	patchcore/stub_place.c \
	patchcore/stub_place.h \
	patchcore/sys.h \
	patchcore/sync.c \
	patchcore/sync.h \
	patchcore/table.c \
	patchcore/table.h \
	patchcore/text.c \
	patchcore/text.h \
	patchcore/text_forget.c \
	patchcore/text_fork.c \
	patchcore/text_maps.c \
	patchcore/text_maps.h \
	patchcore/text_page.h \
	patchcore/text_read.c \
	patchcore/text_way.c \
	patchcore/thread.c \
	patchcore/thread.h \
	patchcore/threads.c \
	patchcore/threads.h \
	patchcore/threads_proc.c \
	patchcore/threads_proc.h \
	patchcore/trap.c \
	patchcore/trap.h \
	patchcore/trap_chain.c \
	patchcore/trap_chain.h \
	patchcore/trap_install.c \
	patchcore/trap_test.c \
	patchcore/trap_test.h \
	patchcore/wait.h \
	patchcore/tsc.c \
	patchcore/tsc.h \
	patchcore/word.c \
	patchcore/word.h
libpatchcore_internal_la_LIBADD = $(INIH_LIBS)

# The same objects with nothing but the public functions in sight.
lib_LTLIBRARIES += libpatchcore.la
libpatchcore_la_SOURCES =
libpatchcore_la_LIBADD = libpatchcore_internal.la
# now: binding a symbol late would happen on the stack of whoever met an INT3.
libpatchcore_la_LDFLAGS = -version-info 0:0:0 -Wl,-z,nodelete -Wl,-z,now \
	-Wl,--version-script=$(top_srcdir)/patchcore/patchcore.map
EXTRA_libpatchcore_la_DEPENDENCIES = libpatchcore_internal.la patchcore/patchcore.map

# For programs that block SIGTRAP or take it themselves.
lib_LTLIBRARIES += libpatchcore_guard.la
libpatchcore_guard_la_SOURCES = patchcore/guard.c
libpatchcore_guard_la_LDFLAGS = -version-info 0:0:0 -Wl,-z,nodelete -Wl,-z,now

patchcoreincludedir = $(includedir)/patchcore
patchcoreinclude_HEADERS = \
	patchcore/include/patchcore/async.h \
	patchcore/include/patchcore/batch.h \
	patchcore/include/patchcore/call.h \
	patchcore/include/patchcore/mapping.h \
	patchcore/include/patchcore/merge.h \
	patchcore/include/patchcore/patchcore.h \
	patchcore/include/patchcore/signals.h
pkgconfig_DATA = patchcore/patchcore.pc

EXTRA_DIST += \
	patchcore/patchcore.map \
	patchcore/tests/barrier.h \
	patchcore/tests/call_site.h \
	patchcore/tests/child.h \
	patchcore/tests/code.h \
	patchcore/tests/conf_check.h \
	patchcore/tests/conf_sample.h \
	patchcore/tests/day.h \
	patchcore/tests/fixtures \
	patchcore/tests/flights.h \
	patchcore/tests/installcheck.sh \
	patchcore/tests/io_worker.h \
	patchcore/tests/life.h \
	patchcore/tests/life_cell.h \
	patchcore/tests/model.h \
	patchcore/tests/model_check.h \
	patchcore/tests/model_protocol.h \
	patchcore/tests/model_state.h \
	patchcore/tests/own_code.awk \
	patchcore/tests/proof.c \
	patchcore/tests/recorded.h \
	patchcore/tests/scale.h \
	patchcore/tests/stand.h \
	patchcore/tests/step.h \
	patchcore/tests/storm.h \
	patchcore/tests/test_day.sh \
	patchcore/tests/test_endurance.sh \
	patchcore/tests/test_guard_preload.sh \
	patchcore/tests/test_own_code.sh \
	patchcore/tests/test_life_table.sh \
	patchcore/tests/test_valgrind.sh \
	patchcore/tests/trap_case.h \
	patchcore/tests/test_exports.sh \
	patchcore/tests/text_fork.h \
	patchcore/tests/text_library.h \
	patchcore/tests/text_pages.h
check_PROGRAMS += patchcore/tests/endurance patchcore/tests/fuzz_conf
TESTS += \
	patchcore/tests/fuzz_conf \
	patchcore/tests/test_endurance.sh \
	patchcore/tests/test_exports.sh \
	patchcore/tests/test_guard_preload.sh \
	patchcore/tests/test_own_code.sh \
	patchcore/tests/test_valgrind.sh
CLEANFILES += patchcore/tests/fuzz_conf.crash valgrind.log

# With nothing but the public functions.
patchcore_tests_endurance_LDADD = libpatchcore.la -lm

patchcore_tests_fuzz_conf_CPPFLAGS = $(fuzz_cppflags)
patchcore_tests_fuzz_conf_CFLAGS = $(fuzz_cflags)
patchcore_tests_fuzz_conf_LDFLAGS = -Wl,--wrap=conf_rule
patchcore_tests_fuzz_conf_LDADD = $(LDADD) -lm

if HAVE_CMOCKA
patchcore_tests = \
	patchcore/tests/test_async \
	patchcore/tests/test_async_threads \
	patchcore/tests/test_batch \
	patchcore/tests/test_call \
	patchcore/tests/test_call_get \
	patchcore/tests/test_call_place \
	patchcore/tests/test_call_threads \
	patchcore/tests/test_call_turns \
	patchcore/tests/test_tsc \
	patchcore/tests/test_cancel \
	patchcore/tests/test_conf \
	patchcore/tests/test_conf_file \
	patchcore/tests/test_conf_form \
	patchcore/tests/test_cpus \
	patchcore/tests/test_faults \
	patchcore/tests/test_guard \
	patchcore/tests/test_fork_gate \
	patchcore/tests/test_frames \
	patchcore/tests/test_identity \
	patchcore/tests/test_identity_fields \
	patchcore/tests/test_levels \
	patchcore/tests/test_life_broken \
	patchcore/tests/test_life_fault \
	patchcore/tests/test_life_fork \
	patchcore/tests/test_life_matrix \
	patchcore/tests/test_life_vfork \
	patchcore/tests/test_merge \
	patchcore/tests/test_merge_libc \
	patchcore/tests/test_merge_signal \
	patchcore/tests/test_model_async \
	patchcore/tests/test_model_batch \
	patchcore/tests/test_model_call \
	patchcore/tests/test_model_word \
	patchcore/tests/test_own_text \
	patchcore/tests/test_patch \
	patchcore/tests/test_patch_over \
	patchcore/tests/test_pkeys \
	patchcore/tests/test_policy \
	patchcore/tests/test_reload \
	patchcore/tests/test_rescue \
	patchcore/tests/test_signal_safe \
	patchcore/tests/test_signals \
	patchcore/tests/test_starts \
	patchcore/tests/test_steps \
	patchcore/tests/test_storm \
	patchcore/tests/test_storm_broken \
	patchcore/tests/test_stub \
	patchcore/tests/test_sync \
	patchcore/tests/test_text \
	patchcore/tests/test_text_alias \
	patchcore/tests/test_text_forget \
	patchcore/tests/test_text_fork \
	patchcore/tests/test_text_fork_locks \
	patchcore/tests/test_text_kinds \
	patchcore/tests/test_text_refused \
	patchcore/tests/test_text_shared \
	patchcore/tests/test_text_threads \
	patchcore/tests/test_thread \
	patchcore/tests/test_threads_look \
	patchcore/tests/test_threads_proc \
	patchcore/tests/test_trap \
	patchcore/tests/test_trap_chain \
	patchcore/tests/test_trap_priority \
	patchcore/tests/test_trap_process \
	patchcore/tests/test_trap_self \
	patchcore/tests/test_trap_stack \
	patchcore/tests/test_unload \
	patchcore/tests/test_wait \
	patchcore/tests/test_wait_moves
check_PROGRAMS += $(patchcore_tests)
TESTS += $(patchcore_tests) patchcore/tests/test_life_table.sh

life_sources = \
	patchcore/tests/life_cell.c \
	patchcore/tests/life_event.c \
	patchcore/tests/life_expected.c \
	patchcore/tests/life_fork.c \
	patchcore/tests/life_point.c \
	patchcore/tests/life_protocol.c \
	patchcore/tests/life_visit.c
patchcore_tests_test_life_broken_SOURCES = patchcore/tests/test_life_broken.c $(life_sources)
patchcore_tests_test_life_broken_LDFLAGS = -Wl,--wrap=thread_is_gone \
	-Wl,--wrap=thread_is_interrupted,--wrap=thread_adopt,--wrap=text_before_fork
patchcore_tests_test_life_matrix_SOURCES = patchcore/tests/test_life_matrix.c $(life_sources)

# Random life around patching, and a library that comes and goes in it.
check_PROGRAMS += patchcore/tests/day
TESTS += patchcore/tests/test_day.sh
patchcore_tests_day_SOURCES = \
	patchcore/tests/day.c \
	patchcore/tests/day_change.c \
	patchcore/tests/day_code.c \
	patchcore/tests/day_life.c
patchcore_tests_day_LDADD = $(LDADD) -lm
check_LTLIBRARIES += patchcore/tests/day_library.la
patchcore_tests_day_library_la_SOURCES = patchcore/tests/day_library.c
patchcore_tests_day_library_la_LIBADD =
patchcore_tests_day_library_la_LDFLAGS = -module -avoid-version -rpath /nowhere

model_sources = \
	patchcore/tests/model.c \
	patchcore/tests/model_check.c \
	patchcore/tests/model_memory.c \
	patchcore/tests/model_steps.c
patchcore_tests_test_model_async_SOURCES = patchcore/tests/test_model_async.c $(model_sources)
patchcore_tests_test_model_batch_SOURCES = patchcore/tests/test_model_batch.c $(model_sources)
patchcore_tests_test_model_call_SOURCES = patchcore/tests/test_model_call.c $(model_sources)
patchcore_tests_test_model_word_SOURCES = patchcore/tests/test_model_word.c $(model_sources)

storm_sources = \
	patchcore/tests/storm.c \
	patchcore/tests/storm_code.c \
	patchcore/tests/storm_noise.c \
	patchcore/tests/storm_way.c
patchcore_tests_test_storm_SOURCES = patchcore/tests/test_storm.c $(storm_sources)
patchcore_tests_test_storm_LDADD = $(LDADD) -lm
patchcore_tests_test_storm_broken_SOURCES = patchcore/tests/test_storm_broken.c $(storm_sources)
patchcore_tests_test_storm_broken_LDADD = $(LDADD) -lm

patchcore_tests_test_faults_LDFLAGS = -Wl,--wrap=mmap,--wrap=mprotect,--wrap=membarrier_sync \
	-Wl,--wrap=memfd_create,--wrap=malloc,--wrap=calloc,--wrap=realloc \
	-Wl,--wrap=aligned_alloc,--wrap=pthread_create
patchcore_tests_test_batch_LDFLAGS = -Wl,--wrap=calloc
# The guard comes before libc; -export-dynamic: so that it is found if linked statically.
patchcore_tests_test_guard_LDADD = libpatchcore_guard.la $(LDADD)
patchcore_tests_test_guard_LDFLAGS = -export-dynamic
patchcore_tests_test_trap_stack_LDFLAGS = -Wl,-z,now
# It loads the shared library, and must not have those symbols itself.
EXTRA_patchcore_tests_test_unload_DEPENDENCIES = libpatchcore.la
EXTRA_patchcore_tests_test_reload_DEPENDENCIES = patchcore/tests/day_library.la
patchcore_tests_test_policy_LDFLAGS = -Wl,--wrap=identity_read,--wrap=tsc_problem
endif

# An installed copy must serve a user who knows nothing but pkg-config.
installcheck-local:
	CC='$(CC)' PKG_CONFIG='$(PKG_CONFIG)' SANITIZERS='$(SANITIZERS)' \
		PKG_CONFIG_PATH='$(DESTDIR)$(pkgconfigdir)'"$${PKG_CONFIG_PATH:+:$$PKG_CONFIG_PATH}" \
		PKG_CONFIG_SYSROOT_DIR='$(DESTDIR)' \
		bash $(top_srcdir)/patchcore/tests/installcheck.sh
