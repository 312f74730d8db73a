#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: run.sh SECONDS JOURNAL
#
# Makes a journal like the one beside this. Protocols touch, halves, read and again were in tmax then.
set -euo pipefail
# shellcheck source=results/runs/arms.sh
. "$(dirname "${BASH_SOURCE[0]}")/../arms.sh"

# shellcheck disable=SC2034 # arms.sh reads them
{
	cell=(--placement same-l3 --crossing page --split 3 --pair call-call --first-wait 100
		--second-wait 100 --stretch 4 --toggles 1000000000 --seconds 0.5)
	names=(--protocol --rest)
	arms=("wait 2000" "wait 20000" "wait 500" "touch 2000" "halves 2000" "read 2000" "again 2000")
}
run_arms "$1" "$2"
