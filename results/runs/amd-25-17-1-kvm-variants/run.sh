#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: run.sh SECONDS JOURNAL
#
# Makes a journal like the one beside this: slices of all arms in random order and then back, at
# one place of the site for each round. TMAX names the program.
set -euo pipefail

tmax=${TMAX:-tmax} end=$((SECONDS + $1)) journal=$2
cell=(--placement same-l3 --crossing page --split 3 --pair call-call --first-wait 100
	--second-wait 100 --stretch 4 --toggles 1000000000 --seconds 0.5)
arms=("wait 2000" "wait 20000" "wait 500" "touch 2000" "halves 2000" "read 2000" "again 2000")

# slice PROTOCOL REST PLACE
slice()
{
	local status=0

	"$tmax" stress "${cell[@]}" --protocol "$1" --rest "$2" --place "$3" \
		--seed "$RANDOM$RANDOM" --journal "$journal" >/dev/null || status=$?
	# 1 is a tear.
	[ $status -le 1 ]
}

while [ $SECONDS -lt $end ]; do
	place=$((1 + RANDOM * RANDOM))
	mapfile -t order < <(shuf -i "0-$((${#arms[@]} - 1))")
	mapfile -t back < <(printf '%s\n' "${order[@]}" | tac)
	for i in "${order[@]}" "${back[@]}"; do
		read -r protocol rest <<<"${arms[i]}"
		slice "$protocol" "$rest" $place
	done
done
