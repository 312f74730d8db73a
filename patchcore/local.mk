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
	patchcore/call_store.h \
	patchcore/finisher.c \
	patchcore/finisher.h \
	patchcore/flight.c \
	patchcore/flight.h \
	patchcore/forget.c \
	patchcore/forget.h \
	patchcore/forklock.h \
	patchcore/frames.c \
	patchcore/frames.h \
	patchcore/guard.h \
	patchcore/identity.c \
	patchcore/identity.h \
	patchcore/library.c \
	patchcore/library.h \
	patchcore/machine_conf.c \
	patchcore/machine_conf.h \
	patchcore/merge.c \
	patchcore/merge_check.h \
	patchcore/merge_steps.h \
	patchcore/patch.c \
	patchcore/patch.h \
	patchcore/objects.c \
	patchcore/objects.h \
	patchcore/policy.c \
	patchcore/policy.h \
	patchcore/signals.c \
	patchcore/site.c \
	patchcore/site.h \
	patchcore/stub.c \
	patchcore/stub.h \
	patchcore/stub_place.c \
	patchcore/stub_place.h \
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
	patchcore/tests/call_site.h \
	patchcore/tests/child.h \
	patchcore/tests/code.h \
	patchcore/tests/conf_check.h \
	patchcore/tests/conf_sample.h \
	patchcore/tests/fixtures \
	patchcore/tests/flights.h \
	patchcore/tests/installcheck.sh \
	patchcore/tests/model.h \
	patchcore/tests/model_check.h \
	patchcore/tests/model_protocol.h \
	patchcore/tests/model_state.h \
	patchcore/tests/proof.c \
	patchcore/tests/scale.h \
	patchcore/tests/step.h \
	patchcore/tests/storm.h \
	patchcore/tests/test_endurance.sh \
	patchcore/tests/test_guard_preload.sh \
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
	patchcore/tests/test_valgrind.sh
CLEANFILES += patchcore/tests/fuzz_conf.crash valgrind.log

# With nothing but the public functions.
patchcore_tests_endurance_LDADD = libpatchcore.la -lm

patchcore_tests_fuzz_conf_CPPFLAGS = $(fuzz_cppflags)
patchcore_tests_fuzz_conf_CFLAGS = $(fuzz_cflags)

if HAVE_CMOCKA
patchcore_tests = \
	patchcore/tests/test_async \
	patchcore/tests/test_async_threads \
	patchcore/tests/test_batch \
	patchcore/tests/test_call \
	patchcore/tests/test_call_threads \
	patchcore/tests/test_call_turns \
	patchcore/tests/test_conf \
	patchcore/tests/test_conf_file \
	patchcore/tests/test_conf_form \
	patchcore/tests/test_faults \
	patchcore/tests/test_guard \
	patchcore/tests/test_frames \
	patchcore/tests/test_identity \
	patchcore/tests/test_identity_fields \
	patchcore/tests/test_merge \
	patchcore/tests/test_model_async \
	patchcore/tests/test_model_batch \
	patchcore/tests/test_model_call \
	patchcore/tests/test_model_word \
	patchcore/tests/test_patch \
	patchcore/tests/test_policy \
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
	patchcore/tests/test_text_threads \
	patchcore/tests/test_thread \
	patchcore/tests/test_threads_look \
	patchcore/tests/test_trap \
	patchcore/tests/test_trap_chain \
	patchcore/tests/test_trap_priority \
	patchcore/tests/test_trap_process \
	patchcore/tests/test_trap_self \
	patchcore/tests/test_trap_stack \
	patchcore/tests/test_unload \
	patchcore/tests/test_wait
check_PROGRAMS += $(patchcore_tests)
TESTS += $(patchcore_tests)

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

patchcore_tests_test_faults_LDFLAGS = -Wl,--wrap=mmap,--wrap=mprotect,--wrap=syscall \
	-Wl,--wrap=memfd_create,--wrap=malloc,--wrap=calloc,--wrap=realloc \
	-Wl,--wrap=aligned_alloc,--wrap=pthread_create
patchcore_tests_test_batch_LDFLAGS = -Wl,--wrap=calloc
# The guard comes before libc; -export-dynamic: so that it is found if linked statically.
patchcore_tests_test_guard_LDADD = libpatchcore_guard.la $(LDADD)
patchcore_tests_test_guard_LDFLAGS = -export-dynamic
patchcore_tests_test_trap_stack_LDFLAGS = -Wl,-z,now
# It loads the shared library, and must not have those symbols itself.
EXTRA_patchcore_tests_test_unload_DEPENDENCIES = libpatchcore.la
patchcore_tests_test_policy_LDFLAGS = -Wl,--wrap=identity_read
endif

# An installed copy must serve a user who knows nothing but pkg-config.
installcheck-local:
	CC='$(CC)' PKG_CONFIG='$(PKG_CONFIG)' SANITIZERS='$(SANITIZERS)' \
		PKG_CONFIG_PATH='$(DESTDIR)$(pkgconfigdir)'"$${PKG_CONFIG_PATH:+:$$PKG_CONFIG_PATH}" \
		PKG_CONFIG_SYSROOT_DIR='$(DESTDIR)' \
		bash $(top_srcdir)/patchcore/tests/installcheck.sh
