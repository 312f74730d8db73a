#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What bpftrace sees of our markers: names, how often they are run, arguments; while ours count the same, if they were
# on first. A marker on which a uprobe stands is refused with that reason.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
command -v bpftrace >/dev/null || skip "no bpftrace"
export HOME=$dir
cat >"$dir/shop.c" <<'END'
#include <fastinst/marker.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) int sell(int item, long price)
{
	FI_MARKER(shop, sold, item, price);
	return item + (int)price;
}

static void thousand(void)
{
	for (int i = 0; i < 1000; i++)
		sell(i, -2L * i);
}

/* Until a uprobe stands on the NOP in front of what the library changes. */
static void wait_for_uprobe(void)
{
	const volatile unsigned char *at = (const volatile unsigned char *)sell;

	while (at[0] != 0x90 || (at[1] != 0x0f && at[1] != 0xe9))
		at++;
	puts("half");
	fflush(stdout);
	for (int i = 0; *at == 0x90 && i < 3000; i++)
		usleep(10000);
}

int main(int argc, char **argv)
{
	(void)argv;
	thousand();
	if (argc > 1) {
		wait_for_uprobe();
		thousand();
	}
	return 0;
}
END
# shellcheck disable=SC2086 # CC may carry options
$CC -O2 -I "$top/probes/include" -o "$dir/shop" "$dir/shop.c"
sold=usdt:$dir/shop:shop:sold

# watch OPTION... - has bpftrace count and add up, in the background, until over()
watch()
{
	timeout 60 bpftrace "$@" -e "$sold { @n = count(); @items = sum(arg0); @prices = sum(arg1); }" >"$dir/seen" 2>&1 &
	watcher=$!
}

# over - timeout(1) hands the signal on
over()
{
	kill -INT $watcher 2>/dev/null || true
	wait $watcher || true
}

# saw WHEN - all of one thousand(), and nothing else; a sum may be shown without its sign
saw()
{
	local sum

	for sum in 'n: 1000' 'items: 499500' 'prices: (-999000|18446744073708552616)'; do
		grep -qE "^@$sum\$" "$dir/seen" || wrong "$1: bpftrace saw $(cat "$dir/seen")"
	done
}

timeout 60 bpftrace -l "usdt:$dir/shop:*" >"$dir/list" 2>&1 || skip "bpftrace cannot: $(tail -1 "$dir/list")"
grep -q 'shop:sold$' "$dir/list" || wrong "bpftrace lists $(cat "$dir/list")"
timeout 60 bpftrace -e "$sold { @n = count(); @items = sum(arg0); @prices = sum(arg1); }" -c "$dir/shop" >"$dir/seen" 2>&1 ||
	skip "bpftrace cannot attach: $(tail -1 "$dir/seen")"
saw "alone"

# Ours first.
timeout 120 "$fastinst" run --on shop.sold --output "$dir/counts" -- "$dir/shop" twice >"$dir/says" 2>"$dir/errors" &
runner=$!
for _ in $(seq 300); do
	! grep -qs half "$dir/says" || break
	sleep 0.1
done
watch -p "$(basename "$dir"/fastinst/*.sock .sock)"
wait $runner || wrong "the program failed: $(cat "$dir/errors")"
over
saw "with ours"
grep -q '^ *2000 *0 *marker *shop.sold' "$dir/counts" || wrong "ours counted $(cat "$dir/counts")"

# The uprobe first. It is in private mappings of the file, that of the command among them.
reason='a debugger or a uprobe has a breakpoint on it'
watch
for _ in $(seq 300); do
	! "$fastinst" list "$dir/shop" | grep -q "$reason" || break
	sleep 0.1
done
timeout 60 "$fastinst" run --on shop.sold --output "$dir/counts" -- "$dir/shop" 2>"$dir/errors" || wrong "the program failed"
over
saw "ours refused"
grep -q "$reason" "$dir/errors" || wrong "why it is refused: $(cat "$dir/errors" "$dir/counts")"
exit $failed
