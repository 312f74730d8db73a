#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Nowhere to write, nothing to read, signals, other machines: one line on stderr, the status
# that is documented, no result lost and no child left behind.
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"

conf=$dir/machine.conf
calibrate=("$tmax" calibrate --quick --quiet)
long=("${calibrate[@]}" --budget 5m) # ends when told to; no cell takes over 4 s
brief=("${calibrate[@]}" --budget 5s)

# --- nowhere to write the config: told before anything is measured ---

mkdir "$dir/folder"
mkfifo "$dir/pipe"
echo plain >"$dir/file"
for output in /proc/no/machine.conf /proc/machine.conf "$dir/folder" "$dir/file/machine.conf" \
	"$dir/pipe" "$dir/new/"; do
	complains 73 "$output" "${brief[@]}" --output "$output" --journal "$dir/unused"
done
[ ! -e "$dir/unused" ] || fail "something was measured all the same"
[ -p "$dir/pipe" ] || fail "a pipe was replaced"
[ -d "$dir/folder" ] || fail "a folder was replaced"
[ "$(cat "$dir/file")" = plain ] || fail "a file in the way was changed"

# powerless COMMAND... - without the rights of root, for whom nothing is read-only
powerless()
{
	if [ "$(id -u)" = 0 ]; then
		setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
	else
		"$@"
	fi
}

chmod 755 "$dir"
cp "$tmax" "$dir/program"
if powerless "$dir/program" --version >/dev/null 2>&1; then
	mkdir -m 555 "$dir/read-only"
	complains 73 "Permission denied" powerless "$dir/program" calibrate --budget 5s \
		--output "$dir/read-only/machine.conf"
	complains 73 "Permission denied" powerless "$dir/program" calibrate --budget 5s \
		--output "$dir/read-only/sub/machine.conf"
	conf_of_here >"$dir/secret.conf"
	chmod 0 "$dir/secret.conf"
	PATCHCORE_MACHINE_CONF=$dir/secret.conf complains 3 "Permission denied" \
		powerless "$dir/program" info
else
	echo "permissions not tested: cannot run without them"
fi

# --- nowhere to write the journal ---

complains 74 "No space left" "${brief[@]}" --output "$conf" --journal /dev/full
complains 73 "/proc/no/journal" "${brief[@]}" --output "$conf" --journal /proc/no/journal
complains 73 "$dir/folder" "${brief[@]}" --output "$conf" --journal "$dir/folder"
complains 74 "No space left" "$tmax" stress "${seat[@]}" --toggles 64 --journal /dev/full
complains 73 "/proc/no/journal" "$tmax" stress "${seat[@]}" --toggles 64 \
	--journal /proc/no/journal
[ ! -e "$conf" ] || fail "a config without a journal"

# limited KIB COMMAND... - no file may grow beyond that; standard output goes through a pipe
limited()
{
	local kib=$1

	shift
	{
		(ulimit -f "$kib" && exec "$@") 2>&3 | cat
		return "${PIPESTATUS[0]}"
	} 3>&2
}

# runs_in STORE - that can be read
runs_in()
{
	grep -c '^{.*"type":"evidence".*}$' "$1" || true
}

echo old >"$conf"
# Room for the slices before the ladder, 27 KiB at most, and a few of it.
complains 74 "File too large" limited 36 "${brief[@]}" --output "$conf" --journal "$dir/small"
grep -q '^Verdict: ' "$dir/out" || fail "what was known is lost"
has_cells "$dir/small" 2 || fail "the journal was not filled"
valid "$dir/small"
[ "$(cat "$conf")" = old ] || fail "a run that broke off replaced the config"
[ "$(runs_in "$conf.evidence")" = 1 ] || fail "what was counted until then is no evidence"
valid "$conf.evidence"

# --- nowhere to write the evidence, or the config any more ---

complains 74 "$dir/little" limited 1 "${brief[@]}" --output "$conf" --journal /dev/null \
	--evidence "$dir/little"
grep -q '^Verdict: ' "$dir/out" || fail "what was found is lost"
[ "$(cat "$conf")" = old ] || fail "the config was harmed"
[ -z "$(find "$dir" -name '*.tmp')" ] || fail "a temporary file was left"
complains 74 "$dir/folder" "${brief[@]}" --output "$conf" --journal /dev/null --evidence "$dir/folder"
grep -q '^Verdict: ' "$dir/out" || fail "what was found is lost"
[ "$(cat "$conf")" = old ] || fail "a config without evidence"

rm "$conf"
"${brief[@]}" --output "$conf" --journal "$dir/kept" >"$dir/out" 2>"$dir/err" &
started+=($!)
wait_for has_cells "$dir/kept" 1 || fail "no cells"
mkdir "$conf"
rc=0
wait $! || rc=$?
[ "$rc" = 74 ] || fail "exit status $rc, not 74, where a folder took the config's place"
[ "$(wc -l <"$dir/err")" = 1 ] || fail "not one line on stderr"
grep -qF "cannot write $conf" "$dir/err" || fail "it is not told what cannot be written"
grep -q '^Verdict: ' "$dir/out" || fail "what was found is lost"
[ "$(runs_in "$conf.evidence")" = 2 ] || fail "evidence was lost with the config"
[ -z "$(find "$dir" -name '*.tmp')" ] || fail "a temporary file was left"
rmdir "$conf"
rm "$dir/kept"

# --- standard output ---

for command in --help --version info "info --json" "info --help" "calibrate --help" \
	"stress --help" "bench --help"; do
	read -ra words <<<"$command"
	complains 74 "standard output" bash -c '"$@" >/dev/full' - "$tmax" "${words[@]}"
	complains 74 "standard output" bash -c '"$@" >&-' - "$tmax" "${words[@]}"
done
for json in "" --json; do
	complains 74 "standard output" bash -c '"$@" >/dev/full' - "$tmax" stress "${seat[@]}" \
		--toggles 64 --journal "$dir/kept" ${json:+"$json"}
	# A file that is opened must not become standard output.
	complains 74 "standard output" bash -c '"$@" >&-' - "$tmax" stress "${seat[@]}" \
		--toggles 64 --journal "$dir/kept" ${json:+"$json"}
done
[ "$(count_cells "$dir/kept")" = 4 ] || fail "records were lost with standard output"
valid "$dir/kept"
# Neither the summary nor the progress must end up in the journal, not even line by line.
by_line=(stdbuf -oL)
if [ "${SANITIZERS:-none}" != none ]; then
	by_line=() # they want to be the first library
fi
expect 74 bash -c '"$@" >&- 2>&-' - "${by_line[@]}" "$tmax" calibrate --quick --budget 5s \
	--output "$conf" --journal "$dir/journal"
valid "$dir/journal"
grep -q '^usable = ' "$conf" || fail "the config was lost with standard output"
grep -q '"type":"estimate"' "$dir/journal" || fail "the estimate was lost with standard output"

# --- another machine ---

for describe in HWLOC_SYNTHETIC="pack:2 core:2 pu:1" HWLOC_XMLFILE=/nonexistent.xml; do
	for command in "stress --toggles 64" "bench toggle" "calibrate --output $dir/no.conf"; do
		read -ra words <<<"$command"
		complains 69 "" env "$describe" "$tmax" "${words[@]}"
	done
done
[ ! -e "$dir/no.conf" ] || fail "a machine that is not here was calibrated"
expect "0 3" env HWLOC_SYNTHETIC="pack:2 core:2 pu:1" "$tmax" info
grep -q 'described machine' "$dir/out" || fail "info takes a described machine for this one"

"$tmax" stress "${seat[@]}" --toggles 64 --journal "$dir/here" >/dev/null || [ $? = 1 ]
sed 's/"microcode":"[^"]*"/"microcode":"0xbadbad"/' "$dir/here" >"$dir/elsewhere"
! cmp -s "$dir/here" "$dir/elsewhere" || fail "the journal names no machine"
cp "$dir/elsewhere" "$dir/before"
complains 64 "microcode differs" "${brief[@]}" --output "$dir/no.conf" --resume \
	--journal "$dir/elsewhere"
cat "$dir/here" >>"$dir/elsewhere"
complains 64 "of another machine" "${brief[@]}" --output "$dir/no.conf" --resume \
	--journal "$dir/elsewhere"
cat "$dir/here" >>"$dir/before"
cmp -s "$dir/before" "$dir/elsewhere" || fail "the journal of another machine was written to"
[ ! -e "$dir/no.conf" ] || fail "resumed on another machine's journal"

# --- a journal of rubbish, and no gnuplot: the calibration stands ---

# To every byte its newline now and then, so that there are many lines.
awk 'BEGIN { srand(1); for (i = 0; i < 20000; i++) printf "%c", 1 + int(rand() * 255) }' \
	>"$dir/rubbish"
printf '%s\n' '{"type":"cell","schema":1}' '{"type":"run","schema":1,"identity":[]}' '[[[[' \
	>>"$dir/rubbish"
printf '{' >>"$dir/rubbish"
TMAX_GNUPLOT=/nonexistent/gnuplot expect "0 1 2" "${brief[@]}" --output "$dir/plain.conf" \
	--journal "$dir/rubbish" --resume --figure "$dir/figure"
[ "$(grep -c 'unreadable lines\? skipped' "$dir/err")" = 1 ] || fail "rubbish is not told"
[ "$(grep -c 'no figure' "$dir/err")" = 1 ] || fail "it is not told why there is no figure"
[ "$(wc -l <"$dir/err")" = 2 ] || fail "more is told than that"
grep -q '^usable = ' "$dir/plain.conf" || fail "no config without gnuplot"
[ -s "$dir/figure.dat" ] || fail "the figure's data are lost"
sed -n '/^{"type":"run","schema":2,"date":/,$p' "$dir/rubbish" >"$dir/sound"
has_cells "$dir/sound" 10 || fail "the run is not in the journal of rubbish"
valid "$dir/sound"

# --- machine.conf that is none ---

conf_of_here >"$dir/good.conf"
head -c 300 "$dir/good.conf" >"$dir/cut.conf"
head -n 12 "$dir/good.conf" >"$dir/short.conf"
head -c 70000 /dev/zero | tr '\0' '#' >"$dir/big.conf"
head -c 5000 /dev/zero >"$dir/zero.conf"
: >"$dir/empty.conf"
tr '\n' ' ' <"$dir/good.conf" >"$dir/line.conf"
sed 's/^first = .*/first = -1/' "$dir/good.conf" >"$dir/negative.conf"
sed 's/^first = .*/first = 99999999999999999999/' "$dir/good.conf" >"$dir/overflow.conf"
sed 's/^upper_p = .*/upper_p = nan/' "$dir/good.conf" >"$dir/nan.conf"
sed 's/^schema = .*/schema = 5/' "$dir/good.conf" >"$dir/newer.conf"
sed 's/^first = .*/&\n&/' "$dir/good.conf" >"$dir/twice.conf"
ln -s loop.conf "$dir/loop.conf"
for bad in cut.conf:refused short.conf:missing big.conf:larger zero.conf:NUL \
	empty.conf:missing line.conf:refused \
	negative.conf:first overflow.conf:first nan.conf:upper_p newer.conf:schema \
	twice.conf:twice loop.conf:symbolic none.conf:"No such" folder:regular pipe:regular; do
	PATCHCORE_MACHINE_CONF=$dir/${bad%%:*} complains 3 "${bad#*:}" "$tmax" info
	grep -q '^  verdict  *refused$' "$dir/out" || fail "$bad is not refused"
done

# --- a cpuset of one CPU ---

if command -v taskset >/dev/null; then
	expect 2 taskset -c "${allowed[0]}" "${brief[@]}" --output "$dir/one.conf" \
		--journal "$dir/one" --verbose
	valid "$dir/one"
	has_cells "$dir/one" 1 || fail "nothing was tried"
	grep -q '^reason = only one CPU was allowed' "$dir/one.conf" || fail "it is not told why"
	if grep '"type":"cell"' "$dir/one" | grep -v '"placement":"oversubscribed"'; then
		fail "more than one CPU was used"
	fi
	for placement in same-core same-l2 same-l3 same-socket cross-socket kind-up kind-down \
		spread; do
		sed '1,/^\[gaps\]/d' "$dir/one.conf" | grep "^$placement = ." >/dev/null ||
			fail "$placement is no gap"
		grep -q "^  $placement  *not tested: ." "$dir/out" || fail "$placement is not told"
	done
	# Nothing was seen, so nothing is added, and what was known stays.
	[ ! -e "$dir/one.conf.evidence" ] || fail "evidence of a run that saw nothing"
	echo old >"$dir/one.conf"
	expect 2 taskset -c "${allowed[0]}" "${brief[@]}" --output "$dir/one.conf" \
		--journal "$dir/one"
	[ "$(cat "$dir/one.conf")" = old ] || fail "a run that saw nothing replaced the config"
	grep -q "^Config:  $dir/one.conf, as it was" "$dir/out" || fail "it does not say so"
	complains 69 "only one CPU" taskset -c "${allowed[0]}" "$tmax" stress
else
	echo "a cpuset of one CPU not tested: no taskset"
fi

# --- signals ---

# start COMMAND... - in the background, as $pid; a $child runs its cell when this returns
start()
{
	"$@" >"$dir/out" 2>"$dir/err" </dev/null &
	pid=$!
	started+=("$pid")
	wait_for has_child || fail "no child: $*"
}

has_child()
{
	child=$(children "$pid")
	[ -n "$child" ]
}

# ends STATUS - the program that start started, and its last known child with it
ends()
{
	rc=0
	wait "$pid" || rc=$?
	[ "$rc" = "$1" ] || fail "exit status $rc, not $1"
	wait_for has_ended "$child" || fail "child $child is left behind"
}

# has_slices JOURNAL COUNT - of the ladder
has_slices()
{
	[ -e "$1" ] && [ "$(grep -c '"stage":"ladder"' "$1")" -ge "$2" ]
}

known=$(runs_in "$conf.evidence")
for signal in INT TERM HUP; do
	echo old >"$conf"
	start "${long[@]}" --output "$conf" --journal "$dir/$signal"
	wait_for has_slices "$dir/$signal" 3 || fail "no slices"
	wait_for has_child || fail "no child"
	kill -"$signal" "$pid"
	ends 130
	[ ! -s "$dir/err" ] || fail "SIG$signal is no error"
	grep -q '^Verdict: ' "$dir/out" || fail "no summary"
	grep -q "^Journal: $dir/$signal" "$dir/out" || fail "the journal is not named"
	tail -n 1 "$dir/out" | grep -q '^Interrupted: what was counted .* is kept' ||
		fail "it is not told what an interrupted run leaves"
	! grep -qE 'below 1[ ;.]' "$dir/out" || fail "a bound that says nothing"
	valid "$dir/$signal"
	tail -n 1 "$dir/$signal" | grep -q '"type":"estimate"' || fail "no estimate"
	# What it has counted until then is as good as any other.
	known=$((known + 1))
	[ "$(runs_in "$conf.evidence")" = "$known" ] || fail "an interrupted run adds no evidence"
	# Those of one hour are one, and an hour may end meanwhile.
	grep -qE "^runs = [12]$" "$conf" || fail "the config is not of all $known runs"
done
valid "$conf.evidence"

# Before its first slice a run has nothing to add.
echo old >"$conf"
start "${long[@]}" --output "$conf" --journal "$dir/early"
kill -INT "$pid"
ends 130
if ! has_slices "$dir/early" 1; then
	[ "$(runs_in "$conf.evidence")" = "$known" ] || fail "evidence of a run that tried no wait"
	[ "$(cat "$conf")" = old ] || fail "a run that tried no wait replaced the config"
	grep -q '^Verdict: inconclusive: it was broken off' "$dir/out" || fail "it does not say so"
	grep -q '^Interrupted: nothing was added' "$dir/out" || fail "it does not say what to do"
fi
valid "$dir/early"
[ -z "$(find "$dir" -name '*.tmp')" ] || fail "a temporary file was left"

start "$tmax" stress "${seat[@]}" --toggles 1000000000000 --json
kill -TERM "$pid"
ends 130
[ "$(member outcome)" = interrupted ] || fail "outcome $(member outcome), not interrupted"
valid "$dir/out"

start "$tmax" stress "${seat[@]}" --toggles 1000000000000 --json
kill -KILL "$child"
ends 2
[ "$(member outcome)/$(member signal)" = killed/9 ] || fail "not killed by 9"
valid "$dir/out"

was_killed()
{
	grep -q '"outcome":"killed".*"signal":9' "$dir/killed"
}

start "${long[@]}" --output "$conf" --journal "$dir/killed"
kills_a_child()
{
	if has_child; then
		kill -KILL "$child" 2>/dev/null || true
	fi
	was_killed
}
wait_for kills_a_child || fail "no record of a cell that was killed"
wait_for has_cells "$dir/killed" "$(($(count_cells "$dir/killed") + 1))" ||
	fail "the run does not go on after a cell was killed"
wait_for has_child || fail "no child"
kill -TERM "$pid"
ends 130
valid "$dir/killed"
[ ! -s "$dir/err" ] || fail "a killed cell is no error"

# Its cell would take for ever.
start "$tmax" stress "${seat[@]}" --toggles 1000000000000
started+=("$child")
kill -KILL "$pid"
ends 137

# Ctrl-C, where there is a terminal that sends it to all.
if command -v script >/dev/null && script -qefc true "$dir/typescript" >/dev/null 2>&1 </dev/null; then
	{
		wait_for has_cells "$dir/terminal" 1 || true
		printf '\003'
	} | script -qefc "'$tmax' calibrate --quick --budget 5m --output '$conf' \
		--journal '$dir/terminal'" "$dir/typescript" >/dev/null && rc=0 || rc=$?
	[ "$rc" = 130 ] || fail "exit status $rc after Ctrl-C"
	valid "$dir/terminal"
	if grep '"outcome":"killed"' "$dir/terminal"; then
		fail "Ctrl-C is the parent's, but it ended the child"
	fi
	grep -q 'Verdict: ' "$dir/typescript" || fail "no summary"
	# One line that renews itself: what is running, tears so far, time left.
	grep -q "$(printf '\r\033\\[K')[a-z]* .* tears\\? in .* toggles; .* s left" \
		"$dir/typescript" || fail "no progress on a terminal"
else
	echo "Ctrl-C not tested: no script"
fi
