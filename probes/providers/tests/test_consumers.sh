#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What bpftrace sees of our markers: names, how often they are run, arguments; while ours count the same, if they were
# on first. A marker on which a uprobe stands is refused with that reason. A uprobe on a function whose probe is on is
# kept away where the code stays writable; else the program ends, which shows that there is something to keep away.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
command -v bpftrace >/dev/null || skip "no bpftrace"
export HOME=$dir
cat >"$dir/shop.c" <<'END'
#include <fastinst/marker.h>
#include <stdio.h>

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

int main(int argc, char **argv)
{
	(void)argv;
	thousand();
	if (argc > 1) {
		puts("half");
		fflush(stdout);
		getchar();
		thousand();
	}
	return 0;
}
END
# shellcheck disable=SC2086 # CC may carry options
$CC -O2 -I "$top/probes/include" -o "$dir/shop" "$dir/shop.c"
sold=usdt:$dir/shop:shop:sold
script="$sold { @n = count(); @items = sum(arg0); @prices = sum(arg1); } interval:ms:50 { printf(\"attached\\n\"); }"

# until_says FILE WHAT
until_says()
{
	for _ in $(seq 600); do
		! grep -qs "$2" "$1" || return 0
		sleep 0.1
	done
	wrong "no \"$2\" after a minute: $(cat "$1")"
}

# watch OPTION... - has bpftrace count and add up, in the background, until over(). Its INT3 stands before it counts: what it
# prints is read when all of it is attached.
watch()
{
	: >"$dir/seen" # what it printed the last time
	timeout 120 bpftrace -B line "$@" -e "$script" >"$dir/seen" 2>&1 &
	watcher=$!
	until_says "$dir/seen" '^attached'
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
timeout 60 bpftrace -e "$script" -c "$dir/shop" >"$dir/seen" 2>&1 ||
	skip "bpftrace cannot attach: $(tail -1 "$dir/seen")"
saw "alone"

# Ours first.
mkfifo "$dir/go"
timeout 120 "$fastinst" run --on shop.sold --output "$dir/counts" -- "$dir/shop" twice <>"$dir/go" >"$dir/says" 2>"$dir/errors" &
runner=$!
until_says "$dir/says" half
watch -p "$(basename "$dir"/fastinst/*.sock .sock)"
echo 1<>"$dir/go"
wait $runner || wrong "the program failed: $(cat "$dir/errors")"
over
saw "with ours"
grep -q '^ *2000 *0 *marker *shop.sold' "$dir/counts" || wrong "ours counted $(cat "$dir/counts")"

# Entries, ours first.
# shellcheck disable=SC2086
$CC -O2 -fpatchable-function-entry=5 -I "$top/probes/include" -o "$dir/patchable" "$dir/shop.c"
script="uprobe:$dir/patchable:sell { @n = count(); } interval:ms:50 { printf(\"attached\\n\"); }"
for kept in --keep-writable ''; do
	rm -f "$dir/says" "$dir/counts" "$dir/go"
	mkfifo "$dir/go"
	# shellcheck disable=SC2086 # none, or one
	timeout 120 "$fastinst" run $kept --on sell --output "$dir/counts" -- "$dir/patchable" twice <>"$dir/go" >"$dir/says" 2>"$dir/errors" &
	runner=$!
	until_says "$dir/says" half
	watch -p "$(basename "$dir"/fastinst/*.sock .sock)"
	echo 1<>"$dir/go"
	status=0
	wait $runner || status=$?
	over
	case $kept:$status in
	--keep-writable:0) grep -q '^ *2000 *0 *entry *sell' "$dir/counts" || wrong "kept writable: ours counted $(cat "$dir/counts")" ;;
	--keep-writable:*) wrong "kept writable, and yet the program ended with $status: $(cat "$dir/errors")" ;;
	:0) wrong "no uprobe came: nothing was shown" ;;
	esac
done

# The uprobe first. It is in private mappings of the file, that of the command among them.
script="$sold { @n = count(); @items = sum(arg0); @prices = sum(arg1); } interval:ms:50 { printf(\"attached\\n\"); }"
reason='a debugger or a uprobe has a breakpoint on it'
watch
"$fastinst" list "$dir/shop" >"$dir/list"
grep -q "$reason" "$dir/list" || wrong "not listed as refused: $(cat "$dir/list")"
timeout 60 "$fastinst" run --on shop.sold --output "$dir/counts" -- "$dir/shop" 2>"$dir/errors" ||
	[ $? = 1 ] || wrong "the program failed"
over
saw "ours refused"
grep -q "$reason" "$dir/errors" || wrong "why it is refused: $(cat "$dir/errors" "$dir/counts")"
exit $failed
