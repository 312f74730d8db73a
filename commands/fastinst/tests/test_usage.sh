#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Wrong usage of fastinst is status 64, one line that begins with the command and says what is
# wrong, and one that says where help is.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

# refused NAME TEXT ARGUMENT... - by the command of that name, with that text
refused()
{
	local name=$1 text=$2 status=0

	shift 2
	"$fastinst" "$@" >"$dir/out" 2>"$dir/err" || status=$?
	[ $status = 64 ] || wrong "$*: exit status $status"
	[ ! -s "$dir/out" ] || wrong "$*: something on standard output"
	[ "$(wc -l <"$dir/err")" = 2 ] || wrong "$*: not two lines"
	head -n 1 "$dir/err" | grep -qF "$name: $text" || wrong "$*: no '$name: $text' in $(cat "$dir/err")"
	[ "$(tail -n 1 "$dir/err")" = "Try '$name --help'." ] || wrong "$*: $(tail -n 1 "$dir/err")"
}

# told TEXT ARGUMENT... - as the first line
told()
{
	local text=$1

	shift
	[ "$("$fastinst" "$@" 2>&1 | head -n 1)" = "$text" ] || wrong "$*: not '$text'"
}

for arguments in help -h --help "help -h" "help --help"; do
	# shellcheck disable=SC2086 # one or two words
	told "Usage: fastinst COMMAND [OPTION]... [ARGUMENT]..." $arguments
done
mapfile -t commands < <("$fastinst" --help | sed -nE 's/^  ([a-z]+)( .*)?$/\1/p')
[ "${#commands[@]}" = 11 ] || wrong "commands: ${commands[*]}"
for command in "${commands[@]}"; do
	refused "fastinst $command" "unrecognized option '--xyzzy'" "$command" --xyzzy
	[[ $("$fastinst" help "$command" | head -n 1) == "Usage: fastinst $command [OPTION]..."* ]] ||
		wrong "help $command"
	[ "$("$fastinst" help "$command")" = "$("$fastinst" "$command" -h)" ] || wrong "$command -h"
	[ -z "$("$fastinst" help "$command" | awk 'length > 80')" ] || wrong "help $command: a line is too long"
done
refused fastinst "no such command 'bogus'; there are run, trace, profile, metrics, " bogus
refused fastinst "no such command 'atach'; did you mean 'attach'?" atach
hint=$("$fastinst" profile --formt json true 2>&1 | tail -n 1) || true
[ "$hint" = "Try 'fastinst profile --help'; did you mean '--format'?" ] || wrong "$hint"
[ "$("$fastinst" -V)" = "fastinst (tmax ${PACKAGE_VERSION:?make check sets it})" ] || wrong "-V"
[ "$("$fastinst" --version)" = "$("$fastinst" -V)" ] || wrong "--version"
refused fastinst "no such command 'bogus'" help bogus
while IFS='|' read -r command arguments text; do
	# shellcheck disable=SC2086 # words
	refused "fastinst $command" "$text" "$command" $arguments
done <<'LIST'
run||there is no program to run
run|--output|option '--output' requires an argument
run|--json=x true|option '--json' doesn't allow an argument
attach||it takes the number of one process
attach|12x|it takes the number of one process
attach|1 2|it takes the number of one process
attach|--for 0 1|--for '0': must be a time
attach|--for soon 1|--for 'soon': must be a time
on||it takes one pattern
off|a b|it takes one pattern
on|--pid 0 a|--pid '0': must be a whole number
top|extra|unexpected argument 'extra'
top|--lines 0|--lines '0': must be a whole number
top|--delay never|--delay 'never': must be a time
list||there is no program to look at
trace||it takes either a program to run or --pid
trace|--pid 1 true|it takes either a program to run or --pid
trace|--limit -1 true|--limit '-1': must be a whole number
trace|--format xml true|--format 'xml': no such name; there are text, json, chrome
metrics||it takes either a program to run or --list
metrics|--list true|it takes either a program to run or --list
metrics|true|no metric is asked for: --metric, -e or --file name some
metrics|--focus parse true|--focus 'parse': a focus is a path, such as /Code/main.c/parse
metrics|--file /nowhere true|--file '/nowhere': it cannot be read: No such file or directory
metrics|--every 0 true|--every '0': must be a time
profile||it takes either a program to run or --pid
profile|--for 1 true|--for goes with --pid
profile|--overhead 0 true|--overhead '0': must be a number from 0.0001 to 1
profile|--overhead 2%x true|--overhead '2%x': must be a number
profile|--epoch nan true|--epoch 'nan': must be a number from 0.1 to 1000
profile|--samples 1 true|--samples '1': must be a whole number from 2 to 10000
profile|--format xml true|no format 'xml'; there are table, json, collapsed, speedscope, callgrind, llvm, pprof, html, chrome
profile|--edges --format pprof true|no format of edges 'pprof'; there are table, json, llvm, html, chrome, gcov, autofdo
profile|--format pprf true|no format 'pprf'; did you mean 'pprof'?
profile|--format table,json true|several formats need --output
profile|--edges --on a true|--edges is about all blocks, and takes no --on
profile|--edges --phase 60 true|a --phase is at most half as long as the --period
LIST

# A program that is not there is no program that left no counts.
status=0
"$fastinst" run "$dir/missing" 2>"$dir/err" || status=$?
[ $status = 127 ] || [ $status = 69 ] || wrong "a missing program: exit status $status"
[ "$(wc -l <"$dir/err")" = 1 ] || wrong "a missing program: $(cat "$dir/err")"

exit $failed
