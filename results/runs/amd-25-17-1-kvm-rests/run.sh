#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: run.sh SECONDS JOURNAL
#
# Makes a journal like that beside this (560 rests.jsonl).
set -euo pipefail
# shellcheck source=results/runs/arms.sh
. "$(dirname "${BASH_SOURCE[0]}")/../arms.sh"

# shellcheck disable=SC2034 # arms.sh reads them
{
	cell=(--placement same-l3 --split 3 --pair call-call --first-wait 0 --second-wait 0 --stretch 4
		--toggles 1000000000 --seconds 0.5)
	names=(--crossing --rest)
	arms=("page 500" "page 1000" "page 2000" "page 3000" "page 5000" "page 8000" "line 1000"
		"line 2000" "line 5000")
}
run_arms "$1" "$2"
