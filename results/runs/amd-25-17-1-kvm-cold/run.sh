#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: run.sh WAIT STRETCH SECONDS JOURNAL
#
# Makes a journal like those beside this (100 4 240 stretched.jsonl, 400 0 240 constant.jsonl). Root
# alone has the provoker evict, which was in tmax then.
set -euo pipefail
# shellcheck source=results/runs/arms.sh
. "$(dirname "${BASH_SOURCE[0]}")/../arms.sh"

# shellcheck disable=SC2034 # arms.sh reads them
{
	cell=(--placement same-l3 --crossing page --split 3 --pair call-call --first-wait "$1"
		--second-wait "$1" --stretch "$2" --toggles 1000000000 --seconds 0.5)
	names=(--provoker --rest)
	arms=("none 2000" "cold-back 2000" "cold-front 2000" "cold-back+cold-front 2000" "evict 2000"
		"none 20000")
}
run_arms "$3" "$4"
