# SPDX-License-Identifier: MIT
# Several instructions for several, and the look at all threads that it takes.
libpatchcore_internal_la_SOURCES += \
	patchcore/merge/frames.c \
	patchcore/merge/frames.h \
	patchcore/merge/look_signal.c \
	patchcore/merge/look_signal.h \
	patchcore/merge/merge.c \
	patchcore/merge/merge.h \
	patchcore/merge/merge_check.h \
	patchcore/merge/others.c \
	patchcore/merge/others.h \
	patchcore/merge/restart.c

if HAVE_CMOCKA
patchcore_merge_tests = \
	patchcore/merge/tests/test_frames \
	patchcore/merge/tests/test_look_denied \
	patchcore/merge/tests/test_look_exec \
	patchcore/merge/tests/test_look_stacks \
	patchcore/merge/tests/test_merge \
	patchcore/merge/tests/test_merge_libc \
	patchcore/merge/tests/test_merge_signal
patchcore_merge_waiting = patchcore/merge/tests/test_others
patchcore_merge_alone = \
	patchcore/merge/tests/test_over_batch \
	patchcore/merge/tests/test_over_fork \
	patchcore/merge/tests/test_over_undone \
	patchcore/merge/tests/test_patch_over
check_PROGRAMS += $(patchcore_merge_tests) $(patchcore_merge_waiting) $(patchcore_merge_alone)
tests_race += $(patchcore_merge_tests)
tests_wait += $(patchcore_merge_waiting)
tests_alone += $(patchcore_merge_alone)
endif
EXTRA_DIST += patchcore/merge/tests/over.h
