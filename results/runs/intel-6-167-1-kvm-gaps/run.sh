#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: run.sh SECONDS JOURNAL
#
# Makes a journal like that beside this (3200 gaps.jsonl): slices of ten seconds of the gap oracle, one
# executor on a CPU of its own, all kinds in random order. One in three has the chain provoker.
set -euo pipefail

kinds=()
for crossing in line page; do
	for split in 2 3 4; do
		for rest in 200 500; do
			for loop in 0 64; do
				for provoker in none none chain; do
					kinds+=("--crossing $crossing --split $split --rest $rest --loop $loop --provoker $provoker")
				done
			done
		done
	done
done

end=$((SECONDS + $1))
while [ $SECONDS -lt $end ]; do
	while read -r kind && [ $SECONDS -lt $end ]; do
		# shellcheck disable=SC2086 # words
		"${TMAX:-tmax}" gaps --placement same-l3 --seconds 10 $kind --seed "$RANDOM$RANDOM$RANDOM" \
			--journal "$2" >/dev/null
	done < <(printf '%s\n' "${kinds[@]}" | shuf)
done
