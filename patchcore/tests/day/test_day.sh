#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A day in the life of a program that is patched, under each policy and mapping: nothing torn,
# nothing hung, nothing leaked. The same with bare stores is torn. TMAX_STRESS_SCALE lengthens it:
# 1 is some ten seconds, 360 an hour. TMAX_SEED chooses what is done.
set -euo pipefail

program=patchcore/tests/day/day
library=patchcore/tests/day/.libs/day_library.so
if [ "${SANITIZERS:-none}" != none ]; then
	echo "a sanitizer's own memory grows, and it does not know of children that share it"
	exit 77
fi
seconds=$(awk -v s="${TMAX_STRESS_SCALE:-1}" 'BEGIN { print 1.5 * s }')
seed=${TMAX_SEED:-1}
failed=0 lived=0

# live WORD... - a day; what was not to be had is no failure
live()
{
	local status=0

	$program -s "$seconds" -r "$seed" -l "$library" "$@" || status=$?
	case $status in
	0) lived=$((lived + 1)) ;;
	77) echo "not here: $*" ;;
	*) echo "FAILED: $program -s $seconds -r $seed $*" && failed=1 ;;
	esac
}

for policy in membarrier wait; do
	for mapping in protect open alias; do
		live -p "$policy" -m "$mapping"
	done
done

# What a patch without the library does is seen by the same judges.
status=0
out=$($program -s 1 -r "$seed" -b -l "$library" 2>&1) || status=$?
echo "broken on purpose:"
echo "$out"
torn=$(sed -n 's/.* \([0-9]*\) torn .*/\1/p' <<<"$out")
if [ $status != 1 ] || [ "${torn:-0}" -lt 100 ]; then
	echo "FAILED: bare stores were not seen, status $status"
	failed=1
fi

[ $failed = 0 ] || exit 1
[ $lived -gt 0 ] || exit 77
