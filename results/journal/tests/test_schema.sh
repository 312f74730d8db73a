#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What the program really writes is valid by the schema, and what it must never write is not.
set -euo pipefail

top=${srcdir:-.}
sample=${TMAX_SAMPLE_JOURNAL:-results/journal/tests/sample_journal}
schema=$top/results/schema/journal-2.json

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

validate()
{
	PYTHONDONTWRITEBYTECODE=1 python3 "$top/results/tests/validate.py" "$@"
}

if ! command -v python3 >/dev/null; then
	echo "python3 is not installed"
	exit 77
fi
"$sample" "$dir/good"
rc=0
validate "$schema" "$dir/good" || rc=$?
[ "$rc" = 0 ] || exit "$rc"

# One line of each type to spoil.
grep -m 1 '"type":"run"' "$dir/good" >"$dir/run"
grep -m 1 '"type":"cell"' "$dir/good" >"$dir/cell"
grep '"type":"estimate".*"levels"' "$dir/good" >"$dir/estimate"
grep '"type":"estimate".*"first_wait"' "$dir/good" >"$dir/waits"
grep '"type":"evidence"' "$dir/good" >"$dir/evidence"
grep '"type":"epoch"' "$dir/good" >"$dir/epoch"
grep '"type":"gaps"' "$dir/good" >"$dir/gaps"
grep '"type":"tail"' "$dir/good" >"$dir/tail"
grep -m 1 '"type":"bench"' "$dir/good" >"$dir/bench"

# must_fail TYPE SED-EXPRESSION: the changed line is not valid.
must_fail()
{
	sed -E "$2" "$dir/$1" >"$dir/changed"
	if cmp -s "$dir/$1" "$dir/changed"; then
		echo "changes nothing: $1 $2"
		exit 1
	fi
	cat "$dir/changed" >>"$dir/bad"
}

for type in run cell gaps tail bench estimate waits evidence epoch; do
	must_fail "$type" 's/"type":"[a-z]+"/"type":"dream"/'
	must_fail "$type" 's/"schema":2/"schema":3/'
	must_fail "$type" 's/"schema":2/"schema":"2"/'
	must_fail "$type" 's/"date":"[^"]*"/"date":"yesterday"/'
	must_fail "$type" 's/"date":"([^"]*)Z"/"date":"\1+01:00"/'
	must_fail "$type" 's/"schema":2,/"schema":2,"extra":1,/'
	must_fail "$type" 's/"schema":2,/"schema":2,"schema":2,/'
	must_fail "$type" 's/"date":"[^"]*",?//'
	must_fail "$type" 's/.$//'
	must_fail "$type" 's/^/[/; s/$/]/'
done

must_fail run 's/"tool":"tmax /"tool":"/'
must_fail run 's/"plan":"default"/"plan":1/'
must_fail run 's/"untested":\[/"untested":[1,/'
must_fail run 's/"untested":\[.*\]/"untested":null/'
must_fail run 's/"reason":"[^"]*"/"reason":""/'
must_fail run 's/"placement":"cross-socket"/"placement":"moon"/'
must_fail run 's/"cpus":"2"/"cpus":2/'
must_fail run 's/"cpus":"2"/"cpus":"two"/'
must_fail run 's/"features":"0x/"features":"/'
must_fail run 's/"tsc_invariant":"yes"/"tsc_invariant":"maybe"/'
must_fail run 's/"hypervisor":"[^"]*",//'
must_fail run 's/"vendor"/"Vendor"/'

must_fail cell 's/"stage":"[^"]*"/"stage":""/'
must_fail cell 's/"stage":"[^"]*"/"stage":"Two words"/'
must_fail cell 's/"key":"[^"]*"/"key":""/'
must_fail cell 's/"key":"/"key":"\\u001b/'
must_fail cell 's/"command":"tmax /"command":"rm /'
must_fail cell 's/"placement":"[^"]*"/"placement":"moon"/'
must_fail cell 's/"crossing":"[^"]*"/"crossing":"64"/'
must_fail cell 's/"pair":"[^"]*"/"pair":"nop-nop"/'
must_fail cell 's/"protocol":"[^"]*"/"protocol":"ho pe"/'
must_fail cell 's/"oracle":"[^"]*"/"oracle":"delphi"/'
must_fail cell 's/"outcome":"[^"]*"/"outcome":"fine"/'
must_fail cell 's/"split":[0-9]/"split":0/'
must_fail cell 's/"split":[0-9]/"split":16/'
must_fail cell 's/"split":[0-9]/"split":1.5/'
must_fail cell 's/"executors":1/"executors":1025/'
must_fail cell 's/"executors":1/"executors":0/'
must_fail cell 's/"executors":\[1\]/"executors":[-1]/'
must_fail cell 's/"executors":\[1\]/"executors":[4294967296]/'
must_fail cell 's/"patcher":0/"patcher":"0"/'
must_fail cell 's/"seed":"1"/"seed":9223372036854775808/'
must_fail cell 's/"seed":"1"/"seed":"-1"/'
must_fail cell 's/"first_wait":0/"first_wait":-1/'
must_fail cell 's/"seconds":[0-9.]+/"seconds":NaN/'
must_fail cell 's/"seconds":[0-9.]+/"seconds":-1/'
must_fail cell 's/"signal":0/"signal":65/'
must_fail cell 's/"error":0/"error":22/'
must_fail cell 's/"other":[0-9]+/"other":-1/'
must_fail cell 's/"other":/"others":/'
must_fail cell 's/"steal":[0-9.]+/"steal":-0.5/'
must_fail cell 's/"load":[0-9.]+/"load":"1"/'
must_fail cell 's/"retries":/"retry":/'
must_fail cell 's/"witness":.*\}\}/"witness":{}}/'
must_fail cell 's/"patcher":0/"patcher":0,"extra":0/'
must_fail cell 's/"split":/"extra":0,"split":/'
must_fail cell 's/"traps":/"extra":0,"traps":/'
must_fail cell 's/"load":/"extra":0,"load":/'
must_fail cell 's/"noisy":false/"noisy":0/'
must_fail cell 's/"noisy":false,//'
must_fail cell 's/"provokers":"[^"]*"/"provokers":"hammer"/'
must_fail cell 's/"provokers":"[^"]*"/"provokers":"none+load"/'
must_fail cell 's/"provokers":"[^"]*"/"provokers":"load+"/'
must_fail cell 's/"stretch":0/"stretch":65/'
must_fail cell 's/"loop":0/"loop":4097/'
must_fail cell 's/"loop":0,//'
must_fail cell 's/"median":[0-9]+/"median":-1/'
must_fail cell 's/"p99":[0-9]+,//'
must_fail cell 's/"events":\[/"events":[{},/'
must_fail cell 's/"after_front":-100/"after_front":null/'
must_fail cell 's/"kind":"old-front"/"kind":"front"/'
must_fail cell 's/"executor":0/"executor":1024/'
must_fail cell 's/"executor":0/"executor":0,"extra":0/'
must_fail cell 's/"smis":null/"smis":-1/'
must_fail cell 's/"offset":-12/"offset":null/'
must_fail cell 's/"clock_after":null/"clock_after":-1/'

must_fail gaps 's/"command":"tmax gaps/"command":"tmax stress/'
must_fail gaps 's/"stores":[0-9]+/"stores":-1/'
must_fail gaps 's/"wrap":1,//'
must_fail gaps 's/"late":2/"late":2,"early":1/'
must_fail gaps 's/"kind":"old-front"/"kind":"other"/'
must_fail gaps 's/"histogram":\[\[[0-9]+,/"histogram":[[/'
must_fail gaps 's/"tail":\[950/"tail":[-950/'
must_fail gaps 's/"tail_complete":true/"tail_complete":1/'
must_fail gaps 's/"outcome":"[^"]*"/"outcome":"fine"/'
must_fail gaps 's/"witness":.*\}\}/"witness":{}}/'

must_fail tail 's/"source":"gaps"/"source":"dream"/'
must_fail tail 's/"crossing":"page"/"crossing":"sea"/'
must_fail tail 's/"fit_p":[^,]*/"fit_p":1.5/'
must_fail tail 's/"accepted":false/"accepted":null/'
must_fail tail 's/"target_p":[^,]*/"target_p":0/'
must_fail tail 's/"level":null/"level":"none"/'
must_fail tail 's/"provokers":"[^"]*"/"provokers":"load,"/'
must_fail tail 's/"thresholds":\[\[900.0,/"thresholds":[[/'

must_fail estimate 's/"verdict":"[a-z]*"/"verdict":"maybe"/'
must_fail estimate 's/"reason":"[^"]*"/"reason":null/'
must_fail estimate 's/"require_p":[^,]*/"require_p":0/'
must_fail estimate 's/"confidence":[^,]*/"confidence":1/'
must_fail estimate 's/"runs":1/"runs":-1/'
must_fail estimate 's/"scope":"this-run"/"scope":"for ever"/'
must_fail estimate 's/"membarrier_ticks":[^,]*/"membarrier_ticks":null/'
must_fail estimate 's/"spread_page":[^,]*/"spread_page":-1/'
must_fail estimate 's/"bytes":8/"bytes":24/'
must_fail estimate 's/"word_tore":false,?//'
must_fail estimate 's/"stays":(true|false)/"stays":1/'
must_fail estimate 's/"levels":\[.*\]/"levels":[]/'
must_fail estimate 's/"levels":\[/"levels":[{},/'
must_fail estimate 's/"stretch":4/"stretch":65/'
must_fail estimate 's/"first":0,//'
must_fail estimate 's/"first":0,/"first":-1,/'
must_fail estimate 's/"claims":\[/"claims":[{},/'
must_fail estimate 's/"crossing":"line"/"crossing":"32"/'
must_fail estimate 's/"upper_p":[^,]*/"upper_p":0/'
must_fail estimate 's/"sections":\[/"sections":[{},/'
must_fail estimate 's/"placement":"spread"/"placement":"any"/'
must_fail estimate 's/"worst_tears":[0-9]+,?//'
must_fail estimate 's/"require_p":/"first_wait":100,"require_p":/'

must_fail evidence 's/"evidence":1/"evidence":2/'
must_fail evidence 's/"time":[0-9]+/"time":"now"/'
must_fail evidence 's/"boot":"[^"]*"/"boot":null/'
must_fail evidence 's/"source":"default",//'
must_fail evidence 's/"vendor":"[^"]*",//'
must_fail evidence 's/"sums":\[.*\]/"sums":{}/'
must_fail evidence 's/"sums":\[/"sums":[{},/'
must_fail evidence 's/"kind":"[a-z]*"/"kind":"hope"/'
must_fail evidence 's/"executors":[0-9]+/"executors":0/'
must_fail evidence 's/"toggles":[0-9]+/"toggles":-1/'
must_fail evidence 's/"squares":[^,]*/"squares":-1/'
must_fail evidence 's/"checksum":"[0-9a-f]*"/"checksum":"0"/'
must_fail evidence 's/"worst_toggles":[0-9]+,?//'

must_fail epoch 's/"evidence":1/"evidence":2/'
must_fail epoch 's/"reason":"[^"]*"/"reason":1/'
must_fail epoch 's/"checksum":"[0-9a-f]{16}",?//'

must_fail waits 's/"verdict":"pass"/"verdict":"maybe"/'
must_fail waits 's/"reason":""/"reason":null/'
must_fail waits 's/"upper_p":[^,]*/"upper_p":0/'
must_fail waits 's/"pooled_p":[^,]*/"pooled_p":2/'
must_fail waits 's/"window_p":[^,]*/"window_p":-1/'
must_fail waits 's/"confidence":[^,]*/"confidence":1/'
must_fail waits 's/"stretch":4/"stretch":65/'
must_fail waits 's/"stretch":4/"stretch":4,"margin":1.5/'
must_fail waits 's/"claims":\[/"claims":[{},/'
must_fail waits 's/"claims":\[[{][^}]*[}],/"claims":[/'
must_fail waits 's/"crossing":"line"/"crossing":"32"/'
must_fail waits 's/"drift_p":0.25/"drift_p":-1/'
must_fail waits 's/"drifted":false/"drifted":0/'
must_fail waits 's/"drifted":false,//'
must_fail waits 's/"provokers":"chain"/"provokers":"hammer"/'
must_fail waits 's/"ratio":2.5/"ratio":"2.5"/'
must_fail waits 's/"loop":64/"loop":4097/'
must_fail waits 's/"lower":[^,]*/"lower":-0.5/'
must_fail waits 's/"p":0.5/"p":1.5/'
must_fail waits 's/"command":"tmax stress/"command":"rm/'
must_fail waits 's/"worst":\[/"worst":[{},/'
must_fail waits 's/"noisy":3/"noisy":true/'
must_fail waits 's/"cells":40,//'
must_fail waits 's/"far":12/"far":-1/'
must_fail waits 's/"least":150,//'
must_fail waits 's/"far_toggles":1000,//'
must_fail waits 's/"torn_first":2000/"torn_first":-1/'
must_fail waits 's/"torn_second":null/"torn_second":"none"/'
must_fail waits 's/"tears_here":true/"tears_here":1/'
must_fail waits 's/"window":16/"window":24/'
must_fail waits 's/"toggles":[0-9]+/"toggles":-1/'
must_fail waits 's/"toggles":[0-9]+,//'
must_fail waits 's/"sections":\[.*\]/"sections":{}/'
must_fail waits 's/"sections":\[/"sections":[{},/'
must_fail waits 's/"placement":"spread"/"placement":"any"/'
must_fail waits 's/"crossing":"page"/"crossing":"sea"/'
must_fail waits 's/"placement":/"extra":1,"placement":/'

must_fail bench 's/"tool":"tmax /"tool":"/'
must_fail bench 's/"benchmark":"toggle"/"benchmark":"Other"/'
must_fail bench 's/"seed":"[0-9]+"/"seed":-1/'
must_fail bench 's/"rounds":20/"rounds":20.5/'
must_fail bench 's/"rounds":20,//'
must_fail bench 's/"seconds":83.25/"seconds":-1/'
must_fail bench 's/"placement":"spread"/"placement":"moon"/'
must_fail bench 's/"patcher":0,//'
must_fail bench 's/"smis":null,//'
must_fail bench 's/"first_wait":9300/"first_wait":"9300"/'
must_fail bench 's/"stretch":4,//'
must_fail bench 's/"waits_from":"config"/"waits_from":"hope"/'
must_fail bench 's/"distance":\{[^}]*\}/"distance":{}/'
must_fail bench 's/"distance":\{/"distance":{"mean":1,/'
must_fail bench 's/"rows":\[.*\]/"rows":null/'
must_fail bench 's/"rows":\[/"rows":[{},/'
must_fail bench 's/"name":"call"/"name":""/'
must_fail bench 's/"name":"call"/"name":"c\\u001ball"/'
must_fail bench 's/"measure":"on"/"measure":"longer than any of the measures"/'
must_fail bench 's/"unit":"ticks",//'
must_fail bench 's/"peer":true/"peer":1/'
must_fail bench 's/"split":"1\|4"/"split":""/'
must_fail bench 's/"split":"1\|4"/"split":["1|4"]/'
must_fail bench 's/"split":/"a key that is much too long":/'
must_fail bench 's/"params":\{\}/"params":[]/'
must_fail bench 's/"samples":4000/"samples":0/'
must_fail bench 's/"samples":4000,//'
must_fail bench 's/"pairs":20/"pairs":-1/'
must_fail bench 's/"most":1234567/"most":null/'
must_fail bench 's/"p99":/"p98":/'
must_fail bench 's/"against":"floor"/"against":1/'
must_fail bench 's/"value":\{"median"/"value":{"mean"/'
must_fail bench 's/"ratio":\{[^}]*\}/"ratio":1.13/'
must_fail bench 's/"balance":"inf"/"balance":"nan"/'
must_fail bench 's/"skipped":"[^"]*"/"skipped":""/'
must_fail bench 's/"skipped":/"samples":1,"skipped":/'

if ! validate --none "$schema" "$dir/bad" >"$dir/said"; then
	cat "$dir/said"
	sed -n "$(cut -d: -f2 "$dir/said")p" "$dir/bad"
	exit 1
fi

# The other schema is one, too: what --none looks at first.
validate --none "$top/results/schema/fastinst-1.json" /dev/null

# said_of FILE WORDS: FILE is refused, with these words.
said_of()
{
	if validate "$schema" "$1" >"$dir/said" || ! grep -q "$2" "$dir/said"; then
		echo "not refused with '$2':"
		cat "$dir/said"
		exit 1
	fi
}

head -n 1 "$dir/bad" | cat "$dir/good" - "$dir/good" >"$dir/middle"
said_of "$dir/middle" ":$(($(wc -l <"$dir/good") + 1)): "
tr -d '\n' <"$dir/cell" >"$dir/cut"
said_of "$dir/cut" ':1: the line is cut'
echo "$(wc -l <"$dir/bad") bad lines refused"
