#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What commands print as JSON has one envelope, and is what the schema says. And what is told of a
# machine by a dump of its CPUID.
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"

# enveloped TYPE - what was printed is one line of that type
enveloped()
{
	[ "$(wc -l <"$dir/out")" = 1 ] || fail "$1: not one line"
	grep -qE "^\\{\"type\":\"$1\",\"schema\":2,\"tool\":\"tmax [^\"]+\",\"date\":\"[^\"]+\"," "$dir/out" ||
		fail "$1: another envelope"
	valid "$dir/out"
}

cell=(--toggles 200 --seconds 5s --seed 9007199254740993)

expect "0 3" "$tmax" info --json
enveloped info
expect "0 1" "$tmax" stress "${seat[@]}" "${cell[@]}" --json
enveloped cell
# A reader that has doubles for numbers would tell another seed.
[ "$(member seed)" = 9007199254740993 ] || fail "the seed is not the one that was given"
grep -q '"seed":"9007199254740993"' "$dir/out" || fail "the seed is no string"
expect 0 "$tmax" gaps "${seat[@]}" --seconds 0.2 --json
enveloped gaps
expect 3 "$tmax" evidence --evidence "$dir/no-store" --json
enveloped store
grep -q '"estimate":null' "$dir/out" || fail "an estimate of nothing"
expect 3 "$tmax" verify --config "$dir/missing.conf" --format json
enveloped verify
conf_of_here >"$dir/machine.conf"
expect "0 1 2 3" "$tmax" verify --config "$dir/machine.conf" --budget 2s --format json
enveloped verify
# Where the library takes the config, and the oracle is not blind for want of time, the run is evidence.
if [[ "$(member exit)" = [01] ]]; then
	expect 0 "$tmax" evidence --evidence "$dir/machine.conf.evidence" --json
	enveloped store
	[ "$(member known_runs)" = 1 ] || fail "the store has not one run"
fi
complains 64 "at a time" "$tmax" evidence --json --drop

# --- dumps of CPUID ---

# told VENDOR FAMILY MODEL STEPPING CODENAMES - what is told by the dump on stdin. Which CPUs
# libcpuid knows depends on its version: the codename may be any that fits the pattern.
told()
{
	dump >"$dir/dump"
	expect 0 "$tmax" info --cpuid "$dir/dump" --json
	enveloped cpuid
	[ "$(member vendor) $(member family) $(member model) $(member stepping)" = "$1 $2 $3 $4" ] ||
		fail "not $1 $2 $3 $4"
	grep -qE "\"codename\":($5)[,}]" "$dir/out" || fail "$1 $2 $3 is called $(member codename)"
	expect 0 "$tmax" info --cpuid "$dir/dump"
	grep -qE "^  vendor +$1$" "$dir/out" || fail "another vendor in text"
	grep -qE "^  model +$3$" "$dir/out" || fail "another model in text"
}

machines=$top/patchcore/tests/fixtures
told GenuineIntel 6 45 7 '"Sandy Bridge-E[^"]*"' <"$machines/intel-sandy-bridge-ep/cpuid.txt"
told GenuineIntel 6 151 2 '"Alder Lake[^"]*"' <"$machines/intel-alder-lake-p/cpuid.txt"
told AuthenticAMD 16 9 1 '"Magny-Cours[^"]*"|null' <"$machines/amd-magny-cours/cpuid.txt"
# Where libcpuid guesses (0.6.2: Milan, Broadwell-E) nothing is told: these have AVX-512 and AMX.
told AuthenticAMD 25 17 1 '"[^"]*Genoa[^"]*"|null' <"$machines/amd-epyc-kvm/cpuid.txt"
told GenuineIntel 6 143 4 '"Sapphire[^"]*"|null' < <(sed 's/ 00090672 / 000806f4 /' \
	"$machines/intel-alder-lake-p/cpuid.txt")

complains 69 "No such file" "$tmax" info --cpuid "$dir/no-dump"
echo 'no dump at all' >"$dir/dump"
complains 69 "is no dump of CPUID" "$tmax" info --cpuid "$dir/dump"
complains 69 "is no dump of CPUID" "$tmax" info --cpuid /dev/null
complains 64 "must be the name of a file" "$tmax" info --cpuid ''
