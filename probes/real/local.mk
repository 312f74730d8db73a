# SPDX-License-Identifier: MIT
# Real programs with probes: a script that is run by hand, and tests on small programs.
tests_race += \
	probes/real/tests/test_latencies.sh \
	probes/real/tests/test_overlap.sh \
	probes/real/tests/test_threads.sh
tests_calibrate += probes/real/tests/test_measure.sh
EXTRA_DIST += \
	probes/real/inputs/work.lua \
	probes/real/inputs/work.pl \
	probes/real/inputs/work.sql \
	probes/real/latencies \
	probes/real/measure \
	probes/real/numbers.sh \
	probes/real/overlap.py \
	probes/real/rebuild \
	probes/real/unharmed \
	probes/real/programs/blackscholes.c \
	probes/real/programs/busy.c \
	probes/real/programs/nbody.c \
	probes/real/programs/threads.cc \
	probes/real/programs/toggler.c \
	probes/real/programs/truth.c \
	probes/real/recipes.sh \
	probes/real/tables.sh \
	probes/real/tests/test_latencies.sh \
	probes/real/tests/test_measure.sh \
	probes/real/tests/test_overlap.sh \
	probes/real/tests/test_threads.sh
