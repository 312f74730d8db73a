#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A short endurance run: no tear, nothing leaked, and as many toggles as were asked for.
# TMAX_STRESS_SCALE lengthens it: 1000 makes a hundred million toggles of each kind.
set -euo pipefail

if [ "${SANITIZERS:-none}" != none ]; then
	echo "a sanitizer's own memory grows"
	exit 77
fi
calls=$(awk -v s="${TMAX_STRESS_SCALE:-1}" 'BEGIN { printf "%d", 100000 * s }')
straddlers=$(awk -v s="${TMAX_STRESS_SCALE:-1}" 'BEGIN { printf "%d", 102400 * s }')
singles=$(awk -v s="${TMAX_STRESS_SCALE:-1}" 'BEGIN { printf "%d", 2000 * s }')
status=0
out=$(patchcore/tests/endurance "$calls" "$straddlers" "$singles") || status=$?
echo "$out"
[ "$status" = 0 ] || exit "$status"
grep -q "^calls: $calls toggles, .* 0 torn" <<<"$out"
grep -q "^batches: $straddlers toggles, .* 0 torn" <<<"$out"
grep -q "^singles: $singles toggles, .* 0 torn" <<<"$out"
