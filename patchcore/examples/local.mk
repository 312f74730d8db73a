# SPDX-License-Identifier: MIT
# Built and run as a user of the library would; installed to be read.
examples = \
	patchcore/examples/async \
	patchcore/examples/batch \
	patchcore/examples/call \
	patchcore/examples/forget \
	patchcore/examples/how \
	patchcore/examples/merge \
	patchcore/examples/over \
	patchcore/examples/patch \
	patchcore/examples/policy \
	patchcore/examples/signals \
	patchcore/examples/text
check_PROGRAMS += $(examples)
tests_wait += $(examples)

patchcore_examples_async_LDADD = libpatchcore.la
patchcore_examples_batch_LDADD = libpatchcore.la
patchcore_examples_call_LDADD = libpatchcore.la
patchcore_examples_forget_LDADD = libpatchcore.la
patchcore_examples_how_LDADD = libpatchcore.la
patchcore_examples_merge_LDADD = libpatchcore.la
patchcore_examples_over_LDADD = libpatchcore.la
patchcore_examples_patch_LDADD = libpatchcore.la
patchcore_examples_policy_LDADD = libpatchcore.la
patchcore_examples_signals_LDADD = libpatchcore.la
patchcore_examples_text_LDADD = libpatchcore.la

examplesdir = $(docdir)/examples
dist_examples_DATA = \
	patchcore/examples/async.c \
	patchcore/examples/batch.c \
	patchcore/examples/call.c \
	patchcore/examples/example.h \
	patchcore/examples/forget.c \
	patchcore/examples/how.c \
	patchcore/examples/merge.c \
	patchcore/examples/over.c \
	patchcore/examples/patch.c \
	patchcore/examples/policy.c \
	patchcore/examples/signals.c \
	patchcore/examples/text.c

# Of other languages and builds.
examplescmakedir = $(examplesdir)/cmake
dist_examplescmake_DATA = patchcore/examples/cmake/CMakeLists.txt
examplesmesondir = $(examplesdir)/meson
dist_examplesmeson_DATA = patchcore/examples/meson/meson.build
exampleswrapdir = $(examplesdir)/meson/subprojects
dist_exampleswrap_DATA = patchcore/examples/meson/subprojects/patchcore.wrap
examplesrustdir = $(examplesdir)/rust
dist_examplesrust_DATA = \
	patchcore/examples/rust/budget.rs \
	patchcore/examples/rust/patchcore.rs
