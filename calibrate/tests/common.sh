# SPDX-License-Identifier: MIT
# What the script tests of calibrate/ share: . calibrate/tests/common.sh
# shellcheck shell=bash
set -euo pipefail
export LC_ALL=C
# A machine.conf that others may write to is refused.
umask 022

top=${srcdir:-.}
tmax=$(realpath "${TMAX:-./tmax}")
schema=$top/results/schema/journal-2.json
dir=$(mktemp -d)
started=() # processes to end when the test ends

clean_up()
{
	local pid

	for pid in "${started[@]}"; do
		kill -KILL "$pid" 2>/dev/null || true
	done
	rm -rf "$dir"
}
trap clean_up EXIT

# Neither the user's config nor the user's choices.
unset PATCHCORE_MACHINE_CONF HWLOC_SYNTHETIC HWLOC_XMLFILE HWLOC_THISSYSTEM TMAX_GNUPLOT
export HOME=$dir XDG_CONFIG_HOME=$dir

# Two CPUs will do: on more of them the shortest calibration is a long one.
allowed=$(awk '/^Cpus_allowed_list:/ { print $2 }' /proc/self/status)
mapfile -t allowed < <(tr , '\n' <<<"$allowed" | awk -F- '{ for (i = $1; i <= $NF; i++) print i }')
if command -v taskset >/dev/null; then
	taskset -cp "${allowed[0]},${allowed[1]:-${allowed[0]}}" $$ >/dev/null
fi

# A cell that can be seated on any machine.
# shellcheck disable=SC2034 # for the scripts that source this
{
	cpus=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
	seat=(--placement oversubscribed --executors "$cpus")
}

fail()
{
	echo "FAILED: $*"
	head -n 20 "$dir/out" "$dir/err" 2>/dev/null || true
	exit 1
}

# expect "STATUS..." COMMAND... - its output to $dir/out and $dir/err, its status in $rc
expect()
{
	local want=" $1 "

	shift
	rc=0
	"$@" >"$dir/out" 2>"$dir/err" </dev/null || rc=$?
	[[ $want == *" $rc "* ]] || fail "exit status $rc, not$want: $*"
}

# complains "STATUS..." WORDS COMMAND... - the same, with one line on stderr that has these words,
# behind the name of the command, and of a usage error another that tells where help is ($hint)
complains()
{
	local want=$1 words=$2

	shift 2
	expect "$want" "$@"
	hint=$(sed -n '$s/^Try .\(tmax.* --help\).[.]$/\1/p' "$dir/err")
	[ -z "$hint" ] || sed -i '$d' "$dir/err"
	grep -qE '^tmax( [a-z]+)?: ' "$dir/err" || fail "no name before the complaint: $*"
	[ "$(wc -l <"$dir/err")" = 1 ] || fail "not one line on stderr: $*"
	grep -qF -- "$words" "$dir/err" || fail "nothing of '$words' on stderr: $*"
}

# valid FILE - each line is valid by the schema
valid()
{
	local status=0

	PYTHONDONTWRITEBYTECODE=1 python3 "$top/results/tests/validate.py" "$schema" "$1" \
		>"$dir/validated" 2>&1 || status=$?
	if [ "$status" = 77 ] || [ "$status" = 127 ]; then
		echo "not validated, $(tail -n 1 "$dir/validated")"
	elif [ "$status" != 0 ]; then
		fail "$1: $(cat "$dir/validated")"
	fi
}

# in_journal FILE - lines that a command printed, as they stand in a journal: without the tool
in_journal()
{
	sed -E 's/^(\{"type":"[a-z]+","schema":[0-9]+),"tool":"[^"]*"/\1/' "$1"
}

# member NAME [FILE] - the first value of that name in compact JSON, without quotes
member()
{
	sed -nE "s/.*\"$1\":(\"([^\"]*)\"|([^,}]*)).*/\2\3/p" "${2:-$dir/out}" | sed -n 1p
}

# dump - a recorded machine (patchcore/tests/fixtures, on stdin) as libcpuid's dump
dump()
{
	local leaf subleaf values

	echo version=0.6.2
	while read -r leaf subleaf values; do
		leaf=$((16#$leaf))
		if ((leaf < 32 && subleaf == 0)); then
			echo "basic_cpuid[$leaf]=$values"
		elif ((leaf >= 16#80000000 && leaf < 16#80000020)); then
			echo "ext_cpuid[$((leaf - 16#80000000))]=$values"
		fi
	done
}

# wait_for COMMAND... - until it holds; half a minute is for ever
wait_for()
{
	local i

	for ((i = 0; i < 300; i++)); do
		if "$@"; then
			return
		fi
		sleep 0.1
	done
	return 1
}

count_cells()
{
	if [ -e "$1" ]; then
		grep -c '"type":"cell"' "$1" || true
	else
		echo 0
	fi
}

# has_cells JOURNAL COUNT
has_cells()
{
	[ "$(count_cells "$1")" -ge "$2" ]
}

# has_slices JOURNAL COUNT - of the ladder
has_slices()
{
	[ -e "$1" ] && [ "$(grep -c '"type":"cell".*"stage":"ladder"' "$1")" -ge "$2" ]
}

# record - $dir/recorded: the journal of a calibration that was killed behind its first waits
record()
{
	"$tmax" calibrate --quick --budget 5m --quiet --output "$dir/unused.conf" \
		--journal "$dir/live" >"$dir/out" 2>"$dir/err" </dev/null &
	started+=($!)
	wait_for has_slices "$dir/live" 2 || fail "no slices"
	kill -KILL $!
	wait $! || true
	[ ! -s "$dir/err" ] || fail "a calibration complains"
	grep '^{.*}$' "$dir/live" >"$dir/recorded"
}

# replay JOURNAL [SECONDS] - a copy of it, in which the last wait took as long. What resumes that
# measures for as much of its budget as is left: by default, for none. Its first cell has another date each
# time, so that each is a run of its own.
replays=0
replay()
{
	local first last

	replays=$((replays + 1))
	first=$(sed -n '/"type":"cell"/{=;q}' "$dir/recorded")
	last=$(grep -n '"type":"cell".*"stage":"ladder"' "$dir/recorded" | tail -n 1 | cut -d: -f1)
	sed -E "${first:?}s/(\"date\":\"....-..-..T..:).../\\1$(printf %02d "$replays"):/
		${last:?}s/(\"result\":[{][^{]*\"seconds\":)[0-9.e-]+/\\1${2:-600}/" "$dir/recorded" >"$1"
}

# children PID - that live: a zombie has ended
children()
{
	cat /proc/[0-9]*/stat 2>/dev/null | awk -v parent="$1" '
		{ pid = $1; sub(/^.*\) /, "") } $1 != "Z" && $2 == parent { print pid }' || true
}

has_ended()
{
	case $(sed 's/^.*) //' "/proc/$1/stat" 2>/dev/null || true) in
	'' | [ZX]*) return 0 ;;
	esac
	return 1
}

# can_wait - may this machine's TSC be waited by?
can_wait()
{
	{ "$tmax" info 2>/dev/null || [ $? = 3 ]; } | awk '
		/^  tsc / && /not invariant/ || /^  clock / && !/ trusted$/ { bad = 1 }
		END { exit bad }'
}

# valid_junit FILE - by the schema that its readers have, and with the counts that it states
valid_junit()
{
	if command -v xmllint >/dev/null; then
		xmllint --noout --schema "${srcdir:-.}/results/tests/junit.xsd" "$1" 2>"$dir/xml" || fail "$1: $(head -n 2 "$dir/xml")"
	fi
	command -v python3 >/dev/null || return 0
	python3 - "$1" <<'READER' || fail "$1 has not the counts that it states"
import sys
import xml.etree.ElementTree as tree

suite = tree.parse(sys.argv[1]).getroot().find("testsuite")
cases = suite.findall("testcase")
assert len(cases) == int(suite.get("tests"))
for kind, count in ("failure", "failures"), ("error", "errors"), ("skipped", "skipped"):
    assert sum(case.find(kind) is not None for case in cases) == int(suite.get(count)), kind
READER
}

# conf_of_here - a machine.conf of this machine that the library takes
conf_of_here()
{
	printf '[tmax]\nschema = 4\nverdict = pass\n[scope]\ncpus = '
	sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status
	printf 'evidence = this-run\nruns = 1\nmeasured = 0\n[identity]\n'
	{ "$tmax" info 2>/dev/null || [ $? = 3 ]; } | awk '
		/^[a-z]/ { machine = $0 == "machine" }
		machine && /^  / && $1 != "codename" { name = $1; sub(/^ +[^ ]+ +/, ""); print name " = " $0 }'
	printf '[wait]\nusable = yes\nconfidence = 0.95\nlevels = 1\nmembarrier_ticks = 0\n[level 1]\n'
	printf 'first = 3000\nsecond = 2000\nstretch = 0\nticks = 0\n'
	printf '%s_toggles = 100000000000\n%s_tears = 0\n%s_p = 1e-10\n' line line line page page page
	printf '[window]\nbytes = 8\ntoggles = 100000000000\nupper_p = 1e-10\nconfidence = 0.95\n'
}

# conf_says NAME FILE SECTION - the value of a name in the config
conf_says()
{
	awk -v section="[$3]" -v name="$1" '
		/^\[/ { inside = $0 == section }
		inside && $1 == name && $2 == "=" { sub(/^[^=]*= /, ""); print }' "$2"
}

# agrees CONF JOURNAL - config, last estimate of the journal, summary and exit status $rc
agrees()
{
	local verdict usable

	# Of the window the same names stand in an object of its own.
	grep '"type":"estimate"' "$2" | tail -n 1 | sed 's/,"window":{[^}]*}//' >"$dir/estimate"
	[ -s "$dir/estimate" ] || fail "no estimate in $2"
	verdict=$(conf_says verdict "$1" tmax)
	usable=$(conf_says usable "$1" wait)
	case "$rc $verdict $usable" in
	"0 pass yes" | "1 fail no" | "2 inconclusive no" | "130 pass yes" | "130 inconclusive no") ;;
	*) fail "exit status $rc, verdict $verdict, usable $usable" ;;
	esac
	[ "$(member verdict "$dir/estimate")" = "$verdict" ] || fail "another verdict in $2"
	[ "$(member reason "$dir/estimate")" = "$(conf_says reason "$1" tmax)" ] ||
		fail "another reason in $2"
	[ "$(member runs "$dir/estimate")" = "$(conf_says runs "$1" scope)" ] ||
		fail "another number of runs in $2"
	grep -qF "Verdict: $verdict" "$dir/out" || fail "another verdict in the summary"
}

# adds_up CONF STORE JOURNAL... - each level of the config has what the store's lines have of its wait, or of
# it and all shorter ones, and these what the cells of the journals have. By a reader that is not ours.
adds_up()
{
	command -v python3 >/dev/null || return 0
	python3 - "$@" <<'READER' || fail "$1 is not the sum of $2"
import collections, configparser, itertools, json, sys

conf_path, store, *journals = sys.argv[1:]

def lines(path, kind):
    for line in open(path, "rb"):
        try:
            line = json.loads(line)
        except ValueError:
            continue
        if isinstance(line, dict) and line.get("type") == kind:
            yield line

def add(sums, crossing, first, second, stretch, toggles, tears, slices):
    key = crossing, first, second, stretch
    sums[key] = [a + b for a, b in zip(sums[key], (toggles, tears, slices))]

stored = collections.defaultdict(lambda: [0, 0, 0])
placed = collections.defaultdict(lambda: [0, 0, 0])
for run in lines(store, "evidence"):
    for s in run["sums"]:
        if s["kind"] in ("wait", "alone"):
            add(stored, s["crossing"], s["first"], s["second"], s["stretch"], s["toggles"],
                s["tears"], s["slices"])
            add(placed, (s["crossing"], s["placement"], s["kind"], s["executors"]), s["first"],
                s["second"], s["stretch"], s["toggles"], s["tears"], s["slices"])
        elif s["kind"] == "gap" and s["first"] == 32000:
            add(stored, ("gap", s["crossing"]), 0, 0, 0, s["toggles"], 0, s["slices"])

def sums_of(crossing, part):
    """By placement: of all slices, of those left alone, or of those of the most executors."""
    chosen = {}
    for (where, *wait), count in placed.items():
        if where[0] == crossing:
            most = max(k[0][3] for k in placed if k[0][:2] == where[:2])
            chosen.setdefault(where[1], [])
            if part == "all" or part == "alone" and where[2] == "alone" or part == "most" and where[3] == most:
                chosen[where[1]].append((wait, count))
    return chosen

def supports(crossing, first, second, stretch):
    """What a bound may rest on: of one part, in each placement the wait alone, or all shorter ones with it."""
    found = []
    for part in "all", "alone", "most":
        choices = []
        for sums in sums_of(crossing, part).values():
            alone, below = [0, 0], [0, 0]
            for (f, s, t), count in sums:
                if (f, s, t) == (first, second, stretch):
                    alone = [a + b for a, b in zip(alone, count)]
                if f <= first and s <= second and t == stretch:
                    below = [a + b for a, b in zip(below, count)]
            # A short run may have had none with as many executors as its plan.
            choices.append((alone, below, [0, 0]) if part == "most" else (alone, below))
        found += [[sum(n) for n in zip(*chosen)] for chosen in itertools.product(*choices)]
    return found

conf = configparser.ConfigParser(interpolation=None)
conf.read(conf_path)
levels = [conf[name] for name in conf.sections() if name.startswith("level ")]
assert len(levels) == int(conf["wait"]["levels"]), len(levels)
for level in levels:
    for crossing in "line", "page":
        key = crossing, int(level["first"]), int(level["second"]), int(level["stretch"])
        counted = [int(level[f"{crossing}_{name}"]) for name in ("toggles", "tears")]
        assert counted in supports(*key), (key, counted, stored[key])
        assert 0 < float(level[crossing + "_p"]) <= 1, key

seen = collections.defaultdict(lambda: [0, 0, 0])
for path in journals:
    for record in lines(path, "cell"):
        cell, result = record["cell"], record["result"]
        # What makes tears rare is no evidence.
        if "cold-" in cell["provokers"] or cell["rest"] > 2000:
            continue
        if cell["protocol"] == "wait" and cell["oracle"] == "count":
            assert result["outcome"] in ("done", "interrupted"), result["outcome"]
            toggles, tears = result["exposed"] or 0, sum(result["tears"].values())
            if result["torn"] is not None:
                tears = min(tears, result["torn"])
            add(seen, cell["crossing"], cell["first_wait"], cell["second_wait"],
                cell["stretch"], toggles, min(tears, toggles or tears), 1)
    for record in lines(path, "gaps"):
        if "sums" in record:
            add(seen, ("gap", record["cell"]["crossing"]), 0, 0, 0, record["stores"], 0, 1)
if journals:
    assert seen == stored, [(k, seen[k], stored[k]) for k in seen if seen[k] != stored[k]]
READER
}

# runs STORE - that can be read
runs()
{
	grep -c '^{.*"type":"evidence".*}$' "$1" || true
}
