# SPDX-License-Identifier: MIT
# Real programs with probes: a script that is run by hand, and a test of it on small programs.
TESTS += probes/real/tests/test_measure.sh
EXTRA_DIST += \
	probes/real/inputs/work.lua \
	probes/real/inputs/work.sql \
	probes/real/measure \
	probes/real/rebuild \
	probes/real/programs/blackscholes.c \
	probes/real/programs/nbody.c \
	probes/real/programs/toggler.c \
	probes/real/recipes.sh \
	probes/real/tests/test_measure.sh
