#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What tmax export writes is the wait of the library itself, in each form; it writes none that the config does
# not carry; and programs in the languages of its readers are built with it, where their compilers are here.
home=${HOME:-/}
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"

if ! can_wait; then
	echo "this machine has no TSC to wait by"
	exit 77
fi
conf=$dir/machine.conf
export PATCHCORE_MACHINE_CONF=$conf

# conf_with LEVEL... - a config of here; a level: first,second,stretch,line_p,page_p
conf_with()
{
	local n=0 first second stretch line page

	conf_of_here | sed "s/^levels = .*/levels = $#/; /^\[level 1\]/,/^page_p/d" >"$conf"
	for level; do
		n=$((n + 1))
		IFS=, read -r first second stretch line page <<<"$level"
		printf '[level %d]\nfirst = %s\nsecond = %s\nstretch = %s\nticks = 0\n' $n "$first" "$second" "$stretch"
		printf '%s_toggles = 100000000000\n%s_tears = 0\n%s_p = %s\n' line line line "$line" page page page "$page"
	done >>"$conf"
}

# exports WHAT - the budget for each reader has these members: constant first second stretch upper_p
exports()
{
	local constant first second stretch p

	read -r constant first second stretch p <<<"$1"
	shift
	expect 0 "$tmax" export --for json "$@"
	valid "$dir/out"
	[ "$(member constant_ticks) $(member first) $(member second) $(member stretch)" = "$constant $first $second $stretch" ] ||
		fail "another budget than $constant"
	awk -v a="$(member upper_p)" -v b="$p" 'BEGIN { exit a != b }' || fail "another bound than $p"
	expect 0 "$tmax" export --for reverie "$@"
	[ "$(grep -v '^# ' "$dir/out")" = "REVERIE_LITEINST_STRADDLER_STALENESS_TICKS=$constant" ] || fail "another line for reverie"
	for word in 'bound: at most' 'evidence: 1 run here' 'scope: CPUs' 'machine: ' 'topology: '; do
		grep -q "^# $word" "$dir/out" || fail "no comment with $word"
	done
	expect 0 "$tmax" export --for env "$@"
	# shellcheck disable=SC2016 # that shell's own
	[ "$(bash -c '. "$1" && echo "$TMAX_STALENESS_CONSTANT_TICKS $TMAX_STALENESS_FIRST_TICKS $TMAX_STALENESS_STRETCH"' bash "$dir/out")" = \
		"$constant $first $stretch" ] || fail "another budget in the environment"
	expect 0 "$tmax" export --for c-header "$@"
	grep -qx "#define TMAX_STALENESS_CONSTANT_TICKS $constant" "$dir/out" || fail "another budget in C"
	expect 0 "$tmax" export --for liteinst2 "$@"
	grep -qx "pub const CONSTANT_TICKS: u64 = $constant;" "$dir/out" || fail "another budget in Rust"
}

# --- the library's own choice ---

conf_with 0,0,4,1e-5,1e-6 3000,2000,0,1e-8,1e-4 6000,6000,4,1e-10,1e-10
exports "400000 6000 6000 4 1e-10"
# Without stretch a constant is as long as the longer of the two waits.
conf_with 3000,2000,0,1e-10,1e-10
exports "3000 3000 2000 0 1e-10"
# Sites of the two kinds by two levels: the longer waits, the worse bound.
conf_with 0,0,4,2e-5,1e-3 3000,2000,0,1e-10,3e-5
exports "400000 3000 2000 4 3e-05" --accept 1e-4

# What pc_get_status() says is in use.
conf_with 100,50,2,1e-10,1e-10
expect 0 "$tmax" info --json
[ "$(member first_wait) $(member second_wait) $(member stretch) $(member upper_p)" = "100 50 2 1e-10" ] ||
	fail "the library does not take this level"
exports "200000 100 50 2 1e-10"

# --- refused ---

# refused STATUS WORDS OPTION... - no form of it, and a budget of before is removed
refused()
{
	local status=$1 words=$2

	shift 2
	for name in reverie liteinst2 env json c-header; do
		echo old >"$dir/budget"
		complains "$status" "$words" "$tmax" export --for $name --output "$dir/budget" "$@"
		[ ! -s "$dir/out" ] || fail "$name: something is printed"
		[ ! -e "$dir/budget" ] || fail "$name: the old budget is left"
	done
}

conf_with 100,50,2,1e-10,1e-6
refused 2 "bounds tears only by 1e-6 per change, above 1e-9"
refused 2 "above 1e-7" --accept 1e-7
expect 0 "$tmax" export --for env --accept 1e-6
for verdict in inconclusive fail; do
	conf_with 100,50,2,1e-10,1e-10
	sed -i "s/^verdict = .*/verdict = $verdict/" "$conf"
	refused 2 "is $verdict"
done
conf_with 100,50,2,1e-10,1e-10
sed -i 's/^usable = .*/usable = no/; s/^levels = .*/levels = 0/; /^\[level 1\]/,/^page_p/d' "$conf"
refused 3 "no budget: machine.conf refused"
conf_with 100,50,2,1e-10,1e-10
sed -i 's/^microcode = .*/microcode = 0x7/' "$conf"
refused 3 "of another machine: microcode differs"
conf_with 100,50,2,1e-10,1e-10
sed -i '0,/^cpus = /s/^cpus = .*/cpus = 8000/' "$conf"
refused 3 "no budget: machine.conf refused"
rm "$conf"
refused 3 "no budget: machine.conf refused"
unset PATCHCORE_MACHINE_CONF
HOME=$dir/nowhere XDG_CONFIG_HOME=$dir/nowhere expect "0 2 3" "$tmax" export --for env
export PATCHCORE_MACHINE_CONF=$conf
conf_with 100,50,2,1e-10,1e-10
complains 64 "--for" "$tmax" export
complains 64 "reverie, liteinst2" "$tmax" export --for moon
complains 74 "cannot write" "$tmax" export --for env --output "$dir/none/budget"
echo kept >"$dir/kept"
ln -s "$dir/kept" "$dir/link"
sed -i 's/^verdict = .*/verdict = fail/' "$conf"
complains 2 "is fail" "$tmax" export --for env --output "$dir/link"
[[ $(cat "$dir/kept") == kept && -L $dir/link ]] || fail "what is no file was removed"

# --- programs that read it ---

conf_with 100,50,2,1e-10,1e-10
examples=$top/commands/examples
expect 0 "$tmax" export --for c-header --output "$dir/staleness.h"
# shellcheck disable=SC2086 # CC may carry options
${CC:-cc} -std=gnu11 -Wall -Wextra -Werror -I "$dir" "$examples/staleness.c" -o "$dir/staleness"
expect 0 "$dir/staleness"
grep -q "^waits 200000 ticks, at most 1e-10 tears per change" "$dir/out" || fail "another budget in the C program"
sed -i -E 's/(STALENESS_MODEL) .*/\1 999/' "$dir/staleness.h"
# shellcheck disable=SC2086
${CC:-cc} -I "$dir" "$examples/staleness.c" -o "$dir/staleness"
expect 3 "$dir/staleness"

# rustc - as the user has installed it, maybe at home
rustc()
{
	HOME=$home command rustc --edition 2021 "$@"
}

if ! rustc --version >/dev/null 2>&1; then
	echo "rustc is not here: the program in Rust was not built"
	exit 0
fi
# What stands in for the library: its type, as its users see it.
cat >"$dir/liteinst2.rs" <<'RUST'
pub mod patcher {
    #[derive(Clone, Copy)]
    pub struct StalenessBudget(std::num::NonZeroU64);
    impl StalenessBudget {
        pub const fn new(cycles: u64) -> Option<Self> {
            match std::num::NonZeroU64::new(cycles) {
                Some(cycles) => Some(Self(cycles)),
                None => None,
            }
        }
        pub const fn cycles(self) -> u64 {
            self.0.get()
        }
    }
}
RUST
cp "$examples/staleness.rs" "$dir/staleness.rs"
expect 0 "$tmax" export --for liteinst2 --output "$dir/budget.rs"
rustc -D warnings --crate-type rlib --out-dir "$dir" "$dir/liteinst2.rs"
rustc -D warnings --extern "liteinst2=$dir/libliteinst2.rlib" -o "$dir/rusty" "$dir/staleness.rs" 2>"$dir/err" ||
	fail "the program in Rust is not built"
# shellcheck disable=SC2046 # as its users do
expect 0 env $("$tmax" export --for reverie | grep -v '^#') "$dir/rusty"
printf '%s\n' "liteinst2 waits 200000 ticks, at most 1e-10 tears per change" "reverie-liteinst waits 200000 ticks" |
	diff - "$dir/out" || fail "another budget in the Rust program"
