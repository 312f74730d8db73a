#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Nowhere to write: one line on stderr, the status that is documented, and no result lost.
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"

conf=$dir/machine.conf
brief=("$tmax" calibrate --quick --quiet --budget 5s)

# --- the config: told before anything is measured ---

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

# --- the journal ---

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

# size FILE - in KiB, rounded up
size()
{
	echo $((($(wc -c <"$1") + 1023) / 1024))
}

echo old >"$conf"
record
# Room for what was recorded and a cell more, or none.
cp "$dir/recorded" "$dir/small"
complains 74 "File too large" limited $(($(size "$dir/small") + 3)) "${brief[@]}" --budget 60s \
	--output "$conf" --journal "$dir/small" --resume
grep -q '^Verdict: ' "$dir/out" || fail "what was known is lost"
[ "$(wc -l <"$dir/small")" -gt "$(wc -l <"$dir/recorded")" ] || fail "the journal was not filled"
valid "$dir/small"
[ "$(cat "$conf")" = old ] || fail "a run that broke off replaced the config"
[ "$(runs "$conf.evidence")" = 1 ] || fail "what was counted until then is no evidence"
valid "$conf.evidence"

# A pipe whose reader is gone: were it open to be read here, it would be its own.
mkfifo "$dir/ends"
head -c 1 "$dir/ends" >"$dir/first" &
complains 74 "Broken pipe" timeout -s KILL 60 "${brief[@]}" --output "$conf" --journal "$dir/ends"
[ -s "$dir/first" ] || fail "nothing came through the pipe"

# --- the evidence, or the config any more ---

# Room for a part of the run's line.
replay "$dir/journal"
kib=$(($(size "$dir/journal") + 20))
head -c $((kib * 1024 - 100)) /dev/zero | tr '\0' '\n' >"$dir/little"
complains 74 "$dir/little" limited $kib "${brief[@]}" --output "$conf" --journal "$dir/journal" --resume \
	--evidence "$dir/little"
grep -q '^Verdict: ' "$dir/out" || fail "what was found is lost"
[ "$(cat "$conf")" = old ] || fail "the config was harmed"
[ -z "$(find "$dir" -name '*.tmp')" ] || fail "a temporary file was left"
replay "$dir/journal"
complains 74 "$dir/folder" "${brief[@]}" --output "$conf" --journal "$dir/journal" --resume \
	--evidence "$dir/folder"
grep -q '^Verdict: ' "$dir/out" || fail "what was found is lost"
[ "$(cat "$conf")" = old ] || fail "a config without evidence"

rm "$conf"
replay "$dir/kept" 0
cells=$(count_cells "$dir/kept")
"${brief[@]}" --budget 60s --output "$conf" --journal "$dir/kept" --resume >"$dir/out" 2>"$dir/err" &
started+=($!)
wait_for has_cells "$dir/kept" $((cells + 1)) || fail "no cells"
mkdir "$conf"
kill -INT $!
rc=0
wait $! || rc=$?
[ "$rc" = 74 ] || fail "exit status $rc, not 74, where a folder took the config's place"
[ "$(wc -l <"$dir/err")" = 1 ] || fail "not one line on stderr"
grep -qF "cannot write $conf" "$dir/err" || fail "it is not told what cannot be written"
grep -q '^Verdict: ' "$dir/out" || fail "what was found is lost"
[ "$(runs "$conf.evidence")" = 2 ] || fail "evidence was lost with the config"
[ -z "$(find "$dir" -name '*.tmp')" ] || fail "a temporary file was left"
rmdir "$conf"
rm "$dir/kept"

# --- standard output ---

# With a config of its own: of one that this machine has and refuses tmax info complains, too.
conf_of_here >"$dir/good.conf"
export PATCHCORE_MACHINE_CONF=$dir/good.conf
for command in --help --version info "info --json" "info --help" "calibrate --help" \
	"stress --help" "bench --help"; do
	read -ra words <<<"$command"
	complains 74 "standard output" bash -c '"$@" >/dev/full' - "$tmax" "${words[@]}"
	complains 74 "standard output" bash -c '"$@" >&-' - "$tmax" "${words[@]}"
done
unset PATCHCORE_MACHINE_CONF
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
replay "$dir/journal" 1
cells=$(count_cells "$dir/journal")
expect 74 bash -c '"$@" >&- 2>&-' - "${by_line[@]}" "$tmax" calibrate --quick --budget 5s \
	--output "$conf" --journal "$dir/journal" --resume
has_cells "$dir/journal" $((cells + 1)) || fail "there was no progress to be told"
valid "$dir/journal"
grep -q '^usable = ' "$conf" || fail "the config was lost with standard output"
grep -q '"type":"estimate"' "$dir/journal" || fail "the estimate was lost with standard output"
