#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A profile by phases of a program whose lines are run in the same proportions all the time has nearly all in common
# with clang's counters. One in which a line is told too high, or an inlined function is left out, has less.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-edges.so
for need in clang llvm-profdata llvm-cov llvm-dwarfdump objdump python3; do
	command -v $need >/dev/null || skip "$need is not here"
done
libs=$build/.libs overlap=$(realpath "$top/commands/fastinst/tests/real/overlap.py")
cd "$dir"
cp "$top/profile/command/tests/lined.c" program.c
lines="-O2 -gline-tables-only -fdebug-info-for-profiling"
# shellcheck disable=SC2086 # flags
{
	clang $lines -fsanitize-coverage=trace-pc,no-prune -c -o blocks.o program.c
	$CC -o blocks blocks.o -L"$libs" -Wl,-rpath,"$libs" -lfastinst -lpatchcore
	clang $lines -fprofile-instr-generate -fcoverage-mapping -o counted program.c 2>log || skip "clang has no counters: $(tail -n 1 log)"
}
LLVM_PROFILE_FILE=raw ./counted 100000 >/dev/null
llvm-profdata merge -o counts raw
"$fastinst" profile --edges --format llvm --output told -- ./blocks 100000 >/dev/null

# similarity PROFILE - in percent
similarity()
{
	python3 "$overlap" blocks "$1" counted counts >said 2>&1 || wrong "exit status $?: $(cat said)"
	sed -nE 's/.*similarity ([0-9.]+) %.*/\1/p' said
}

like=$(similarity told)
awk -v like="$like" 'BEGIN { exit !(like > 98) }' || wrong "similarity is '$like' %: $(cat said told)"
sed -E 's/^ 7: ([0-9]+)/ 7: \10/' told >high
like=$(similarity high)
awk -v like="$like" 'BEGIN { exit !(like > 10 && like < 90) }' || wrong "a line ten times too high: similarity is '$like' %: $(cat said high)"
sed -E '/inlined/,$d' told >without
like=$(similarity without)
awk -v like="$like" 'BEGIN { exit !(like > 10 && like < 90) }' || wrong "no inlined function: similarity is '$like' %: $(cat said without)"
echo nothing >damaged
! python3 "$overlap" damaged told counted counts >said 2>&1 || wrong "a program that is none is compared"
status=0
python3 "$overlap" blocks told 2>/dev/null || status=$?
[ $status = 64 ] || wrong "too few arguments: exit status $status"
exit $failed
