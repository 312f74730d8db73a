#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Leaf functions compiled by each compiler at -O1 to -O3 keep their data in the red zone while their
# markers are turned on and off, by the library's own NOPs and those of libbpf. With a CALL in place of the jump they do
# not.
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
	# Behind the five bytes of a CALL a longer NOP has no instruction to return to.
	[[ $* != *nop10* ]] || return 0
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

# Those of libbpf's usdt.h, where they cannot be taken for padding. The label is of the NOPs.
nops='".p2align 4\n990:\t nop\n\t.byte '
try nop5 -O2 "${compilers[@]}" "-DMARKER_CODE=${nops}0x0f, 0x1f, 0x44, 0, 0\n\""
try nop10 -O2 "${compilers[@]}" "-DMARKER_CODE=${nops}0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0 # nop10\n\""
exit $failed
