#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Switches by tables, as compilers here make them, at each level and for each place that a program may be
# at: functions that have them are taken, do what they did, and are counted as the program says.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so

cat >"$dir/tables.c" <<'END'
#include <stdio.h>
#include <stdlib.h>

#define CASES(x)                                                                                   \
	case 1: return x * 3; case 2: return x ^ 77; case 3: return x - 9; case 4: return x + 1000;   \
	case 5: return x * x; case 6: return 5 - x; case 7: return ~x; case 8: return x << 2;         \
	case 9: return x / 3; default: return 1

struct thing { int kind; int value; unsigned char small; };

__attribute__((noinline)) long by_number(unsigned x) { switch (x) { CASES((long)x); } }
__attribute__((noinline)) long by_byte(unsigned char x) { switch (x) { CASES((long)x); } }
__attribute__((noinline)) long by_memory(const struct thing *thing)
{
	switch (thing->kind) { CASES((long)thing->value); }
}
__attribute__((noinline)) long in_loop(const char *text)
{
	long sum = 0;

	for (; *text; text++) {
		switch (*text) {
		case 'a': sum += 3; break;
		case 'b': sum *= 2; break;
		case 'c': sum -= 1; break;
		case 'd': sum ^= 55; break;
		case 'e': sum += sum; break;
		case 'f': sum /= 2; break;
		case 'g': sum += text[1]; break;
		case 'z': return sum;
		default: abort();
		}
	}
	return sum;
}

int main(void)
{
	unsigned long sum = 0;

	for (unsigned i = 0; i < 3000; i++) {
		struct thing thing = { (int)(i % 13), (int)i, 0 };

		sum = sum * 31 + (unsigned long)by_number(i % 12);
		sum = sum * 31 + (unsigned long)by_byte((unsigned char)i);
		sum = sum * 31 + (unsigned long)by_memory(&thing);
		sum = sum * 31 + (unsigned long)in_loop(&"abcdefgfedcbagz"[i % 15]);
	}
	printf("%lx\n", sum);
	return 0;
}
END
printf '%s 3000\n' by_byte by_memory by_number in_loop >"$dir/says"
tables=0

# try FLAG... - with the compiler $cc
try()
{
	# shellcheck disable=SC2086 # CC may carry options
	$cc -w "$@" -o "$dir/tables" "$dir/tables.c" 2>/dev/null || return 0
	"$fastinst" list --entries "$dir/tables" >"$dir/list" || wrong "list: $cc $*"
	! grep -E '(by_[a-z]+|in_loop)  refused' "$dir/list" || wrong "$cc $*: a switch is refused"
	"$dir/tables" >"$dir/is"
	timeout 60 "$fastinst" run --entries --output "$dir/counts" -- "$dir/tables" >"$dir/out" 2>"$dir/errors" ||
		wrong "$cc $*: $(cat "$dir/errors")"
	cmp -s "$dir/is" "$dir/out" || wrong "$cc $*: it computes something else"
	awk '$4 ~ /^(by_|in_loop)/ { print $4, $1 }' "$dir/counts" | sort | diff "$dir/says" - ||
		wrong "$cc $*: the program says <, fastinst >"
	tables=$((tables + $("${OBJDUMP:-objdump}" -d "$dir/tables" | grep -cE 'jmp +\*(%r|0x[0-9a-f]+\(,%r)')))
}

for cc in "$CC" clang; do
	command -v "${cc%% *}" >/dev/null || continue
	for level in -O1 -O2 -O3; do
		try $level
		try $level -fcf-protection=full
		try $level -fno-pie -no-pie
	done
done
[ $tables -gt 10 ] || wrong "$tables jumps by tables: nothing is tried"
echo "$tables jumps by tables"

exit $failed
