# SPDX-License-Identifier: MIT
# Real programs with probes: a script that is run by hand, and tests on small programs.
tests_race += \
	commands/fastinst/tests/real/tests/test_latencies.sh \
	commands/fastinst/tests/real/tests/test_overlap.sh \
	commands/fastinst/tests/real/tests/test_threads.sh
tests_calibrate += commands/fastinst/tests/real/tests/test_measure.sh
EXTRA_DIST += \
	commands/fastinst/tests/real/inputs/work.lua \
	commands/fastinst/tests/real/inputs/work.pl \
	commands/fastinst/tests/real/inputs/work.sql \
	commands/fastinst/tests/real/latencies \
	commands/fastinst/tests/real/measure \
	commands/fastinst/tests/real/numbers.sh \
	commands/fastinst/tests/real/overlap.py \
	commands/fastinst/tests/real/rebuild \
	commands/fastinst/tests/real/unharmed \
	commands/fastinst/tests/real/programs/blackscholes.c \
	commands/fastinst/tests/real/programs/busy.c \
	commands/fastinst/tests/real/programs/nbody.c \
	commands/fastinst/tests/real/programs/threads.cc \
	commands/fastinst/tests/real/programs/toggler.c \
	commands/fastinst/tests/real/programs/truth.c \
	commands/fastinst/tests/real/recipes.sh \
	commands/fastinst/tests/real/tables.sh \
	commands/fastinst/tests/real/tests/test_latencies.sh \
	commands/fastinst/tests/real/tests/test_measure.sh \
	commands/fastinst/tests/real/tests/test_overlap.sh \
	commands/fastinst/tests/real/tests/test_threads.sh
