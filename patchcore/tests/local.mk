# SPDX-License-Identifier: MIT
# Tests of the library as a whole, and what the tests of its rooms have in common.
EXTRA_DIST += \
	patchcore/tests/asleep.h \
	patchcore/tests/barrier.h \
	patchcore/tests/call_site.h \
	patchcore/tests/child.h \
	patchcore/tests/code.h \
	patchcore/tests/conf_check.h \
	patchcore/tests/conf_sample.h \
	patchcore/tests/day/day.h \
	patchcore/tests/day/test_day.sh \
	patchcore/tests/fixtures \
	patchcore/tests/flights.h \
	patchcore/tests/installcheck.sh \
	patchcore/tests/io_worker.h \
	patchcore/tests/model/model.h \
	patchcore/tests/model/model_check.h \
	patchcore/tests/model/model_protocol.h \
	patchcore/tests/model/model_state.h \
	patchcore/tests/own_code.awk \
	patchcore/tests/proof.c \
	patchcore/tests/recorded.h \
	patchcore/tests/scale.h \
	patchcore/tests/stand.h \
	patchcore/tests/start.h \
	patchcore/tests/step.h \
	patchcore/tests/storm/storm.h \
	patchcore/tests/test_endurance.sh \
	patchcore/tests/test_exports.sh \
	patchcore/tests/test_hardened.sh \
	patchcore/tests/test_library_only.sh \
	patchcore/tests/test_own_code.sh \
	patchcore/tests/test_rust.sh \
	patchcore/tests/test_users.sh \
	patchcore/tests/test_valgrind.sh \
	patchcore/tests/text_fork.h \
	patchcore/tests/text_library.h \
	patchcore/tests/text_pages.h \
	patchcore/tests/trap_case.h
tests_race += patchcore/tests/test_endurance.sh
tests_compute += \
	patchcore/tests/test_exports.sh \
	patchcore/tests/test_own_code.sh \
	patchcore/tests/test_hardened.sh \
	patchcore/tests/test_rust.sh \
	patchcore/tests/test_users.sh
tests_wait += patchcore/tests/test_valgrind.sh
not_asan += patchcore/tests/test_rust.sh
if !LIBRARY_ONLY
tests_compute += patchcore/tests/test_library_only.sh
not_asan += patchcore/tests/test_library_only.sh
endif
CLEANFILES += valgrind.log

# With nothing but the public functions.
check_PROGRAMS += patchcore/tests/endurance
not_asan += patchcore/tests/endurance
patchcore_tests_endurance_LDADD = libpatchcore.la -lm

if HAVE_CMOCKA
patchcore_tests = \
	patchcore/tests/model/test_model_async \
	patchcore/tests/model/test_model_batch \
	patchcore/tests/model/test_model_call \
	patchcore/tests/model/test_model_word
patchcore_alone = patchcore/tests/storm/test_storm patchcore/tests/storm/test_storm_broken
patchcore_racing = patchcore/tests/test_faults
check_PROGRAMS += $(patchcore_tests) $(patchcore_alone) $(patchcore_racing)
tests_compute += $(patchcore_tests)
tests_alone += $(patchcore_alone)
tests_race += $(patchcore_racing)
not_asan += patchcore/tests/model/% patchcore/tests/storm/%

# Random life around patching, and a library that comes and goes in it.
check_PROGRAMS += patchcore/tests/day/day
not_asan += patchcore/tests/day/day
tests_race += patchcore/tests/day/test_day.sh
patchcore_tests_day_day_SOURCES = \
	patchcore/tests/day/day.c \
	patchcore/tests/day/day_change.c \
	patchcore/tests/day/day_code.c \
	patchcore/tests/day/day_life.c
patchcore_tests_day_day_LDADD = $(LDADD) -lm
check_LTLIBRARIES += patchcore/tests/day/day_library.la
patchcore_tests_day_day_library_la_SOURCES = patchcore/tests/day/day_library.c
patchcore_tests_day_day_library_la_LIBADD =
patchcore_tests_day_day_library_la_LDFLAGS = -module -avoid-version -rpath /nowhere

model_sources = \
	patchcore/tests/model/model.c \
	patchcore/tests/model/model_check.c \
	patchcore/tests/model/model_memory.c \
	patchcore/tests/model/model_steps.c
patchcore_tests_model_test_model_async_SOURCES = patchcore/tests/model/test_model_async.c \
	$(model_sources)
patchcore_tests_model_test_model_batch_SOURCES = patchcore/tests/model/test_model_batch.c \
	$(model_sources)
patchcore_tests_model_test_model_call_SOURCES = patchcore/tests/model/test_model_call.c \
	$(model_sources)
patchcore_tests_model_test_model_word_SOURCES = patchcore/tests/model/test_model_word.c \
	$(model_sources)

storm_sources = \
	patchcore/tests/storm/storm.c \
	patchcore/tests/storm/storm_code.c \
	patchcore/tests/storm/storm_noise.c \
	patchcore/tests/storm/storm_way.c
patchcore_tests_storm_test_storm_SOURCES = patchcore/tests/storm/test_storm.c $(storm_sources)
patchcore_tests_storm_test_storm_LDADD = $(LDADD) -lm
patchcore_tests_storm_test_storm_broken_SOURCES = patchcore/tests/storm/test_storm_broken.c \
	$(storm_sources)
patchcore_tests_storm_test_storm_broken_LDADD = $(LDADD) -lm

patchcore_tests_test_faults_LDFLAGS = -Wl,--wrap=mmap,--wrap=mprotect,--wrap=membarrier_sync \
	-Wl,--wrap=memfd_create,--wrap=malloc,--wrap=calloc,--wrap=realloc \
	-Wl,--wrap=aligned_alloc
endif

# An installed copy must serve a user who knows nothing but pkg-config.
installcheck-local:
	CC='$(CC)' PKG_CONFIG='$(PKG_CONFIG)' SANITIZERS='$(SANITIZERS)' \
		PKG_CONFIG_PATH='$(DESTDIR)$(pkgconfigdir)'"$${PKG_CONFIG_PATH:+:$$PKG_CONFIG_PATH}" \
		PKG_CONFIG_SYSROOT_DIR='$(DESTDIR)' \
		bash $(top_srcdir)/patchcore/tests/installcheck.sh
