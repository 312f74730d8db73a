#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tmax bench: every benchmark runs, what is printed and journalled is what the schema says and what
# the report takes, and what is missing or goes wrong is told. What things cost is no matter here.
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"

mapfile -t benchmarks < <("$tmax" bench --help | awk '/^  [a-z]/ { print $1 }')
[ ${#benchmarks[@]} -ge 7 ] || fail "the help lists ${#benchmarks[@]} benchmarks"

if [ "$cpus" = 1 ]; then
	complains 69 executor "$tmax" bench toggle
	echo "one CPU: no benchmark"
	exit 0
fi

# Waits that no machine is known to tear at: a benchmark that tears ends in a crash.
conf_of_here | sed 's/^first = .*/first = 20000/; s/^second = .*/second = 20000/' >"$dir/machine.conf"
sed 's/^microcode = .*/microcode = 0xbadbad/' "$dir/machine.conf" >"$dir/foreign.conf"
export PATCHCORE_MACHINE_CONF=$dir/machine.conf
waits=none
if can_wait; then
	waits=config
fi

# --- everything, once ---

expect 0 "$tmax" bench all --rounds 1 --no-peers --seed 7 --json --journal "$dir/journal"
[ ! -s "$dir/err" ] || fail "something on stderr"
cp "$dir/out" "$dir/all"
[ "$(wc -l <"$dir/all")" = "${#benchmarks[@]}" ] || fail "not one line per benchmark"
valid "$dir/all"
for benchmark in "${benchmarks[@]}"; do
	grep "\"benchmark\":\"$benchmark\"" "$dir/all" >"$dir/out" || fail "no $benchmark"
	grep -q '"samples":[1-9]' "$dir/out" || fail "$benchmark measured nothing"
	for want in type:bench seed:7 rounds:1 waits_from:$waits; do
		[ "$(member "${want%:*}")" = "${want#*:}" ] || fail "$benchmark without $want"
	done
done
for row in '"name":"aligned","measure":"on"' '"name":"call","measure":"off"' '"split":"4|1"' \
	'"against":"floor"' '"policy":"membarrier"' '"mapping":"protect"' \
	'"name":"ptrace"' '"name":"batch"' '"batch":10000' '"name":"pc_init"' \
	'"against":"untouched"' '"rate":10000000' '"balance":' \
	'"against":"empty"' '"against":"idle"' '"against":"direct"' '"peer":true' \
	'"name":"keeps"[^}]*"site":"marker"' '"name":"branch"[^}]*"mapping":"open"' '"against":"hand"' \
	'"name":"ifunc"[^}]*"site":"call"' '"against":"guard"' '"sites":16753' \
	'"name":"uprobe"[^}]*},"skipped":"not asked for"'; do
	grep -q -- "$row" "$dir/all" || fail "bench without $row"
done

# The journal has a line that tells the machine, and what was printed.
sed -n 1p "$dir/journal" | grep -q '"type":"run".*"plan":"bench"' || fail "no run line"
valid "$dir/journal"
strip()
{
	sed -E 's/"(date|tool)":"[^"]*",//g; s/,"identity":\{[^}]*\}//' "$1"
}
strip "$dir/all" >"$dir/printed"
sed 1d "$dir/journal" >"$dir/kept"
strip "$dir/kept" >"$dir/written"
cmp -s "$dir/printed" "$dir/written" || fail "another result in the journal"

TMAX_GNUPLOT=/nonexistent expect 0 "$tmax" report --output "$dir/page" "$dir/journal"
! grep -q 'could not be read' "$dir/err" || fail "the report cannot read the journal"
for benchmark in "${benchmarks[@]}"; do
	grep -q "$benchmark" "$dir/page/index.html" || fail "no $benchmark in the report"
done

# --- as text ---

expect 0 "$tmax" bench invoke latent probes --rounds 2 --no-peers
[ ! -s "$dir/err" ] || fail "something on stderr"
for line in ', TSC [0-9.]* GHz, Linux ' '^invoke: 2 rounds in ' '^latent: 2 rounds in ' \
	'^patcher on CPU [0-9]*, executor' 'ratio to direct .*  [nu]s$' 'ratio to empty .*  [nu]s$' \
	'^skipped$' '^  .*uprobe.* (peer).*not asked for$' '^meanwhile: '; do
	grep -q -- "$line" "$dir/out" || fail "text without $line"
done
[ "$(grep -nm1 '^invoke:' "$dir/out" | cut -d: -f1)" -lt "$(grep -nm1 '^latent:' "$dir/out" | cut -d: -f1)" ] ||
	fail "not in the order asked for"
seed=$(sed -nE 's/^invoke: .* seed ([0-9]+)$/\1/p' "$dir/out")
expect 0 "$tmax" bench invoke --rounds 1 --no-peers --json
[ "$(member seed)" != "$seed" ] || fail "the same seed twice"

# --- a benchmark builds the peers that it measures, and no others ---

mkdir "$dir/bin"
for compiler in cc clang javac; do
	printf '#!/bin/sh\necho %s >>"%s"\nexit 1\n' $compiler "$dir/built" >"$dir/bin/$compiler"
done
chmod +x "$dir"/bin/*
for builds in invoke: toggle:javac 'probes:cc clang'; do
	: >"$dir/built"
	PATH=$dir/bin:$PATH expect 0 "$tmax" bench "${builds%:*}" --rounds 1
	[ "$(sort -u "$dir/built" | xargs)" = "${builds#*:}" ] ||
		fail "bench ${builds%:*} builds with $(sort -u "$dir/built" | xargs)"
done

# --- policy wait ---

export PATCHCORE_MACHINE_CONF=$dir/foreign.conf
expect 0 "$tmax" bench toggle --rounds 1 --no-peers --json
valid "$dir/out"
grep -q '"policy":"wait"[^}]*},"skipped":"[^"]*microcode differs' "$dir/out" ||
	fail "bench does not say why it skipped policy wait"
for want in waits_from:none first_wait:0 second_wait:0; do
	[ "$(member "${want%:*}")" = "${want#*:}" ] || fail "not $want with a foreign config"
done

if [ $waits = config ]; then
	expect 0 "$tmax" bench toggle --rounds 1 --no-peers --json --waits 20000,21000
	valid "$dir/out"
	grep -q '"policy":"wait"[^}]*},"samples":' "$dir/out" || fail "assumed waits measure nothing"
	for want in waits_from:assumed first_wait:20000 second_wait:21000 stretch:4; do
		[ "$(member "${want%:*}")" = "${want#*:}" ] || fail "not $want with assumed waits"
	done
	expect 0 "$tmax" bench latent --rounds 1 --no-peers --waits 20000,20000,0
	grep -q '^policy wait: [0-9.]* us and [0-9.]* us$' "$dir/out" || fail "waits as text"
	grep -q 'waits are assumed.*Nothing is claimed' "$dir/out" || fail "not told that they are assumed"
fi
export PATCHCORE_MACHINE_CONF=$dir/machine.conf

# --- what goes wrong ---

begin=$SECONDS
complains 73 "cannot open journal" "$tmax" bench all --no-peers --journal "$dir/no/journal"
if [ -w /dev/full ]; then
	complains 74 "cannot write journal" "$tmax" bench all --no-peers --journal /dev/full
fi
complains 69 executors "$tmax" bench all --no-peers --executors 1024
complains 69 "HWLOC_" env HWLOC_SYNTHETIC="pu:4" "$tmax" bench all
if command -v taskset >/dev/null; then
	complains 69 "a patcher and an executor" taskset -c "${allowed[0]}" "$tmax" bench all
fi
[ $((SECONDS - begin)) -lt 20 ] || fail "refused only after it was measured"
if [ -w /dev/full ]; then
	rc=0
	"$tmax" bench invoke --rounds 1 --no-peers >/dev/full 2>"$dir/err" || rc=$?
	[ "$rc" = 74 ] || fail "status $rc where nothing can be printed"
fi

# Interrupted: what had ended is in the journal, and only that.
rm -f "$dir/journal"
"$tmax" bench invoke throughput latent --rounds 5 --no-peers --journal "$dir/journal" \
	>"$dir/out" 2>"$dir/err" &
pid=$!
started+=("$pid")
wait_for grep -qs '"benchmark":"invoke"' "$dir/journal" || fail "nothing in the journal"
sleep 1
kill -INT "$pid"
rc=0
wait "$pid" || rc=$?
[ "$rc" = 130 ] || fail "status $rc when interrupted"
[ "$(grep -o '"benchmark":"[a-z]*"' "$dir/journal")" = '"benchmark":"invoke"' ] ||
	fail "not what had ended is in the journal"
grep -q '^invoke: ' "$dir/out" || fail "what had ended is not told"
valid "$dir/journal"
