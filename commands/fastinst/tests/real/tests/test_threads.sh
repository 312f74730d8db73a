#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Threads that start and end under a profile, and while all probes are on, leave no memory behind; what
# loses some for each thread shows that this is seen. TMAX_STRESS_SCALE=1 makes them 5,000.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-profile.so
needs_patchable
CXX=${CXX:-g++}
command -v "${CXX%% *}" >/dev/null || skip "no compiler for C++"
threads=$(awk -v scale="${TMAX_STRESS_SCALE:-1}" 'BEGIN { n = int(5000 * scale); print n < 400 ? 400 : n }')
# shellcheck disable=SC2086 # CXX may carry options
$CXX -O1 -fpatchable-function-entry=5 -pthread -o "$dir/threads" "$top/commands/fastinst/tests/real/programs/threads.cc"

# grown COMMAND... - in KiB, beyond 64 and 64 bytes per thread
grown()
{
	"$@" >"$dir/out" 2>"$dir/err" || wrong "$*: exit status $?, $(cat "$dir/err")"
	[ "$(cat "$dir/out")" -ge "$threads" ] || wrong "$*: $(cat "$dir/out") threads have caught what was thrown"
	echo "$threads threads: $(grep '^grown' "$dir/err") KiB" >&2
	awk -v n="$threads" '/^grown/ { exit !($2 > 64 + n / 16) }' "$dir/err"
}

! grown timeout 60 "$fastinst" profile --output "$dir/profile" -- "$dir/threads" "$threads" ||
	wrong "memory grows under a profile"
grep -q 'caught' "$dir/profile" || wrong "nothing was profiled: $(cat "$dir/profile")"
! grown timeout 60 "$fastinst" run --output "$dir/counts" -- "$dir/threads" "$threads" ||
	wrong "memory grows where all probes are on"
grown timeout 60 "$fastinst" profile --output "$dir/profile" -- "$dir/threads" "$threads" 1024 ||
	wrong "a kilobyte that each thread loses is not seen"
exit $failed
