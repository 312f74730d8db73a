#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every function of libc that the library imports is patched while others use the library, as a
# tracer would do it; and so are fork(), and what handlers of libc return to.
# TMAX_STRESS_SCALE lengthens it.
set -euo pipefail

lib=.libs/libpatchcore.so
program=patchcore/tests/real/libc_sites
if [ ! -e "$lib" ]; then
	echo "built without a shared library"
	exit 77
fi
if [ "${SANITIZERS:-none}" != none ]; then
	echo "a sanitizer takes the place of functions of libc"
	exit 77
fi

# shellcheck disable=SC2086 # NM may carry options
mapfile -t imported < <(${NM:-nm} -D --undefined-only "$lib" |
	awk '{ sub(/@.*/, "", $NF); print $NF }' | sort -u)
if [ ${#imported[@]} -lt 10 ]; then
	echo "only ${#imported[@]} functions imported: this proves nothing"
	exit 1
fi
# of NUMBER - milliseconds, as the scale has it
of()
{
	awk -v n="$1" -v s="${TMAX_STRESS_SCALE:-1}" 'BEGIN { print n * s }'
}

out=$(mktemp)
trap 'rm -f "$out"' EXIT
status=0
for policy in "" -w; do
	# shellcheck disable=SC2086 # none or one
	$program $policy -m "$(of 20)" "${imported[@]}" fork >>"$out" 2>&1 || status=$?
	# A thread that runs into that one must come back from another trap meanwhile.
	# shellcheck disable=SC2086
	$program $policy -m "$(of 400)" restorer >>"$out" 2>&1 || status=$?
	[ $status != 77 ] || { cat "$out" && exit 77; }
done
grep -vE 'INT3 seen$|: no function$|: nothing crosses there$' "$out" || true
tried=$(grep -c ' INT3 seen$' "$out" || true)
echo "$tried times a function was patched under its users"
[ $status = 0 ] || exit 1
if [ "$tried" -lt 60 ]; then
	echo "too few had anything to patch: this proves nothing"
	exit 1
fi
