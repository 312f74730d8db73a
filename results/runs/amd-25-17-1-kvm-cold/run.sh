#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: run.sh WAIT STRETCH SECONDS JOURNAL
#
# Makes a journal like those beside this (100 4 240 stretched.jsonl, 400 0 240 constant.jsonl): slices
# of all arms in random order and then back, at one place of the site for each round. TMAX names the
# program. Root alone has the provoker evict.
set -euo pipefail

tmax=${TMAX:-tmax} end=$((SECONDS + $3)) journal=$4
cell=(--placement same-l3 --crossing page --split 3 --pair call-call --first-wait "$1"
	--second-wait "$1" --stretch "$2" --toggles 1000000000 --seconds 0.5)
arms=("none 2000" "cold-back 2000" "cold-front 2000" "cold-back+cold-front 2000" "evict 2000"
	"none 20000")

# slice PROVOKERS REST PLACE
slice()
{
	local status=0

	"$tmax" stress "${cell[@]}" --provoker "$1" --rest "$2" --place "$3" \
		--seed "$RANDOM$RANDOM" --journal "$journal" >/dev/null || status=$?
	# 1 is a tear.
	[ $status -le 1 ]
}

while [ $SECONDS -lt "$end" ]; do
	place=$((1 + RANDOM * RANDOM))
	mapfile -t order < <(shuf -i "0-$((${#arms[@]} - 1))")
	mapfile -t back < <(printf '%s\n' "${order[@]}" | tac)
	for i in "${order[@]}" "${back[@]}"; do
		read -r provokers rest <<<"${arms[i]}"
		slice "$provokers" "$rest" $place
	done
done
