# SPDX-License-Identifier: MIT
# Built and run as a user of the library would; installed to be read.
examples = \
	patchcore/examples/patch \
	patchcore/examples/policy \
	patchcore/examples/text_open
check_PROGRAMS += $(examples)
TESTS += $(examples)

patchcore_examples_patch_LDADD = libpatchcore.la
patchcore_examples_policy_LDADD = libpatchcore.la
patchcore_examples_text_open_LDADD = libpatchcore.la

examplesdir = $(docdir)/examples
dist_examples_DATA = \
	patchcore/examples/patch.c \
	patchcore/examples/policy.c \
	patchcore/examples/text_open.c
