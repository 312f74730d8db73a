# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2154 # run.sh sets cell, names and arms
#
# Sourced by the run.sh of a folder: slices of all arms in random order and then back (A B B A), at one
# place of the site for each round. The script sets
#   cell    what all slices have, as options of tmax stress
#   names   the options in which the arms differ: ("--provoker" "--rest")
#   arms    their values, one arm to a string: ("none 2000" "cold-back 2000")
# TMAX names the program.

# slice PLACE JOURNAL VALUE...
slice()
{
	local place=$1 journal=$2 status=0 i differ=()

	shift 2
	for i in "${!names[@]}"; do
		differ+=("${names[i]}" "${@:i+1:1}")
	done
	"${TMAX:-tmax}" stress "${cell[@]}" "${differ[@]}" --place "$place" --seed "$RANDOM$RANDOM" \
		--journal "$journal" >/dev/null || status=$?
	# 1 is a tear.
	[ $status -le 1 ]
}

# run_arms SECONDS JOURNAL
run_arms()
{
	local end=$((SECONDS + $1)) journal=$2 place order back values i

	while [ $SECONDS -lt "$end" ]; do
		place=$((1 + RANDOM * RANDOM))
		mapfile -t order < <(shuf -i "0-$((${#arms[@]} - 1))")
		mapfile -t back < <(printf '%s\n' "${order[@]}" | tac)
		for i in "${order[@]}" "${back[@]}"; do
			read -ra values <<<"${arms[i]}"
			slice "$place" "$journal" "${values[@]}"
		done
	done
}
