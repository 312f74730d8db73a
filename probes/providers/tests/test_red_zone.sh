#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Leaf functions compiled by each compiler at -O1 to -O3 keep their data in the red zone while their
# markers are turned on and off. With a CALL in place of the jump they do not.
# TMAX_STRESS_SCALE=20000 makes it 1e9 executions.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

source=$top
read -ra compilers <<<"$CC"
executions=$(awk -v scale="${TMAX_STRESS_SCALE:-1}" 'BEGIN { printf "%d", 50000 * scale }')

[ "${SANITIZERS:-none}" = none ] || skip "sanitizers: the leaves would not be leaves"

# try NAME FLAG COMPILER...
try()
{
	local name=$1 level=$2 library=$dir/leaf.so jump call

	shift 2
	"$@" -Wall -Wextra -Werror "$level" -fPIC -shared -I "$source/probes/include" \
		"$source/probes/providers/tests/leaf.c" -o "$library"
	"${OBJDUMP:-objdump}" -d "$library" | awk '/<leaf_0>:/,/ret/' >"$dir/leaf"
	# With part of a frame below the stack pointer, or all of it.
	if ! grep -q -- '[ ,]-0x[0-9a-f]*(%rsp' "$dir/leaf"; then
		wrong "$name $level: the leaf uses no red zone, nothing is tried"
	fi
	jump=$(timeout 300 probes/providers/tests/red_zone "$library" "$executions" jump) ||
		wrong "$name $level: $jump"
	[[ $jump = *' 0 wrong' ]] || wrong "$name $level: $jump"
	[[ $jump != *' 0 hits'* ]] || wrong "$name $level: no marker was ever run: $jump"
	call=$(timeout 300 probes/providers/tests/red_zone "$library" 20000 call) ||
		wrong "$name $level, with a CALL: $call"
	[[ $call != *' 0 wrong' ]] || wrong "$name $level: not even a CALL is seen: $call"
	echo "$name $level: $jump; with a CALL: $call"
}

for level in -O1 -O2 -O3; do
	try "${compilers[*]}" $level "${compilers[@]}"
	if command -v clang >/dev/null && [[ ${compilers[*]} != *clang* ]]; then
		try clang $level clang
	fi
done
exit $failed
