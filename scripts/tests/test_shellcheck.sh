#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every shell script of the package passes shellcheck. New ones are found by their first line.
set -euo pipefail

if ! command -v shellcheck >/dev/null; then
	echo "shellcheck is not installed (Debian: shellcheck)"
	exit 77
fi
cd "${srcdir:?make check sets it}"
mapfile -t scripts < <(find bootstrap .ci scripts patchcore stress calibrate results bench commands conform fleet docs probes agent profile base \
	-type f -exec awk 'FNR == 1 && /^#!\/.*[\/ ](ba)?sh$/ { print FILENAME } { nextfile }' {} +)
if [ "${#scripts[@]}" -lt 5 ]; then
	echo "only ${#scripts[@]} scripts found below $PWD"
	exit 1
fi
printf '%s\n' "${scripts[@]}"
shellcheck --external-sources "${scripts[@]}"
