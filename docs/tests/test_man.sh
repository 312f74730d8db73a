#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The manual pages are well formed and say what the program and the sources say: commands, options, names,
# exit statuses, environment, functions, errors, keys of machine.conf; and their examples work.
set -euo pipefail
export LC_ALL=C
umask 022 # a machine.conf that others may write to is refused

top=${srcdir:-.}
tmax=${TMAX:-./tmax}
doc=$top/docs/man
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset PATCHCORE_MACHINE_CONF HWLOC_SYNTHETIC HWLOC_XMLFILE HWLOC_THISSYSTEM
export HOME=$dir/home XDG_CONFIG_HOME=$dir/home
failed=0

wrong()
{
	echo "WRONG: $*"
	failed=1
}

# page FILE - its source, with the escapes that stand for plain characters undone
page()
{
	sed 's/\\-/-/g; s/\\e/\\/g; s/\\(bu/*/g' "$doc/$1"
}

# part LEVEL TITLE - of a page on stdin: from that heading (.SH or .SS) to the next of its kind
part()
{
	awk -v level=".$1" -v title="$2" '
		$1 == ".SH" || $1 == level { on = $0 == level " " title; next } on'
}

# defined - the lines of a page on stdin that a paragraph is about
defined()
{
	awk 'after == ".TP"; { after = $0 }'
}

# same WHAT - compares what is there ($dir/is) with what the pages say ($dir/says)
same()
{
	local what=$1

	sort -u -o "$dir/is" "$dir/is"
	sort -u -o "$dir/says" "$dir/says"
	[ -s "$dir/is" ] || wrong "$what: nothing found to compare with"
	diff "$dir/is" "$dir/says" || wrong "$what: there is <, the page says >"
}

# --- form ---

for file in "$doc"/*.[1-9]; do
	name=${file##*/}
	grep -qF "docs/man/$name" "$doc/local.mk" || wrong "$name is not installed"
	if grep -q '^\.so ' "$file"; then
		target=$(sed -n 's/^\.so man[1-9]\///p' "$file")
		[ "$(cat "$file")" = ".so man${target##*.}/$target" ] || wrong "$name: no clean alias"
		grep -q '^\.SH NAME' "$doc/$target" || wrong "$name: alias of no page"
		continue
	fi
	if command -v groff >/dev/null; then
		groff -man -Tutf8 -ww -z "$file" >"$dir/lint" 2>&1 || true
		[ ! -s "$dir/lint" ] || wrong "$(cat "$dir/lint")"
	elif command -v mandoc >/dev/null; then
		mandoc -T lint -W warning "$file" >"$dir/lint" 2>&1 || wrong "$(cat "$dir/lint")"
	else
		echo "$name: neither groff nor mandoc is installed, form not checked"
	fi
done

# A page of a command, or of a program, opens with an example.
for file in "$doc"/*.1; do
	grep -q '^\.so ' "$file" && continue
	order=$(sed -n 's/^\.SH //p' "$file" | head -n 4 | paste -sd' ')
	[[ $order == "NAME SYNOPSIS EXAMPLE DESCRIPTION" ]] || wrong "${file##*/} opens with $order"
done

# --- the pages of tmax ---

pages=("$doc"/tmax.1 "$doc"/tmax.7 "$doc"/tmax-*.1)
for file in "${pages[@]}"; do
	page "${file##*/}"
done >"$dir/tmax"
"$tmax" --help | sed -nE 's/^  ([a-z]+) .*/\1/p' >"$dir/is"
mapfile -t commands <"$dir/is"
page tmax.1 | part SH COMMANDS | sed -nE 's/^\.BR tmax-([a-z]+) \(1\)$/\1/p' >"$dir/says"
same "commands that tmax(1) names"
printf '%s\n' "${commands[@]}" >"$dir/is"
(cd "$doc" && printf '%s\n' tmax-*.1 | sed -E 's/^tmax-(.*)\.1$/\1/') >"$dir/says"
same "pages of commands"
if command -v groff >/dev/null; then
	lines=$(groff -man -Tutf8 -rLL=80n "$doc/tmax.1" | wc -l)
	[ "$lines" -le 60 ] || wrong "tmax(1) has $lines lines"
fi

# statuses - the numbers in a text on stdin, but for sections of the manual
statuses()
{
	sed -E 's/\([0-9]\)//g' | grep -oE '\b[0-9]+\b'
}

for command in "${commands[@]}"; do
	page "tmax-$command.1" >"$dir/page"
	part SH OPTIONS <"$dir/page" >"$dir/part"
	"$tmax" "$command" --help | sed -nE '/^  --help/d; s/^  (--[a-z0-9-]+)( [A-Z]+)?( .*)?$/\1\2/p' >"$dir/is"
	defined <"$dir/part" | sed -nE 's/^\.BI? (--[a-z0-9-]+)( "( [A-Z]+)")?$/\1\3/p' >"$dir/says"
	same "options of tmax $command"
	cut -d' ' -f1 "$dir/is" >>"$dir/options"

	"$tmax" "$command" --help | awk '/^  --/ { option = $1 } /^$/ { option = "" } option { print option, $0 }' |
		sed -nE 's/^(--[a-z0-9-]+) .*\((default )?([a-z0-9-]+)[);].*/\1 \3/p' >"$dir/is"
	awk '
		after == ".TP" && $2 ~ /^--/ { option = $2 }
		{ after = $0; sub(/^\.[A-Z]+ /, "") }
		match($0, /\(default [a-z0-9-]+/) { print option, substr($0, RSTART + 9, RLENGTH - 9) }
		half { print option, $1 }
		{ half = /\(default$/ }' "$dir/part" >"$dir/says"
	if [ -s "$dir/is" ] || [ -s "$dir/says" ]; then
		same "defaults of tmax $command"
	fi

	"$tmax" "$command" --help | sed -n '/Exit status:/,/^$/p' | sed 's/.*Exit status://' | statuses >"$dir/is"
	part SH "EXIT STATUS" <"$dir/page" | statuses >"$dir/says"
	same "exit statuses of tmax $command"
done

# Wherever a page names one.
grep '^\.B' "$dir/tmax" | grep -v cpuid_tool | grep -oE '(^| |")--[a-z0-9-]+' | tr -d ' "' | sort -u >"$dir/named"
grep -vxFf "$dir/options" "$dir/named" | grep -vxE -- '--version|--help' >"$dir/unknown" || true
[ ! -s "$dir/unknown" ] || wrong "no command has $(xargs <"$dir/unknown")"

sed -nE 's/^\tEXIT_[A-Z_]+ = ([0-9]+),.*/\1/p' "$top/base/exit_status.h" >"$dir/is"
page tmax.7 >"$dir/page"
part SH "EXIT STATUS" <"$dir/page" | defined | sed -nE 's/^\.B ([0-9]+)$/\1/p' >"$dir/says"
same "exit statuses"

grep -rohE --include='*.c' --exclude-dir={tests,examples} 'getenv\("[A-Z_]+"' \
	"$top"/{base,patchcore,stress,bench,results,calibrate,commands/{tmax,report}} | cut -d'"' -f2 >"$dir/is"
part SH ENVIRONMENT <"$dir/page" | defined | sed -nE 's/^\.B ([A-Z_, ]+)$/\1/p' | tr -d ' ' | tr ',' '\n' >"$dir/says"
same "environment"

# The names of placements, crossings, pairs, protocols, oracles, outcomes, tears and provokers.
grep -ohE '\[(PLACEMENT|CROSSING|PAIR|PROTOCOL|ORACLE|OUTCOME|TEAR)_[A-Z0-9_]+\] = "[a-z0-9-]+"' \
	"$top/stress/cell/cell.c" "$top/stress/protocol/read.c" "$top/stress/placement/placement.c" | cut -d'"' -f2 >"$dir/names"
grep -oE '\<ROW\([A-Z_]+, "[a-z-]+"' "$top/stress/cell/cell.h" | cut -d'"' -f2 >>"$dir/names"
[ "$(wc -l <"$dir/names")" -ge 30 ] || wrong "names: too few found"
page tmax-stress.1 >"$dir/page"
while read -r name; do
	grep -qE "^\.(B|BR|RB)( |.*[ \",])$name( |\"|,|$)" "$dir/page" || wrong "tmax-stress(1) does not tell of $name"
done <"$dir/names"

# --- the functions ---

# functions_in FILE - that a header declares, or a synopsis has
functions_in()
{
	grep -oE '^(\.BI? "?)?(int |const char \*)pc_[a-z_]+\(' "$1" | grep -oE 'pc_[a-z_]+'
}

header=$top/patchcore/include/patchcore/patchcore.h
page pc_patch.3 >"$dir/patch"
functions_in "$header" >"$dir/is"
mapfile -t functions <"$dir/is"
part SH SYNOPSIS <"$dir/patch" >"$dir/synopsis"
functions_in "$dir/synopsis" >"$dir/says"
same "functions in the synopsis of pc_patch(3)"
functions_in "$header" >"$dir/is"
part SH NAME <"$dir/patch" | grep -oE 'pc_[a-z_]+' >"$dir/says"
same "functions in the name of pc_patch(3)"
for function in "${functions[@]}"; do
	[ -e "$doc/$function.3" ] || wrong "$function has no page"
done
grep -oE '\-E[A-Z]+' "$header" >"$dir/is"
grep -oE '\-E[A-Z]+' "$dir/patch" >"$dir/says"
same "errors of pc_patch(3)"
members()
{
	sed -n '/^struct pc_status {/,/^};/p' | sed -nE 's/^[[:space:]]+([a-z0-9_ ]+(\[[0-9]+\])?);.*/\1/p'
}
members <"$header" >"$dir/is"
members <"$dir/patch" >"$dir/says"
same "members of struct pc_status"
grep -oE '^(#define |\s)PC_[A-Z_]+ (= )?[0-9]' "$header" | grep -oE 'PC_[A-Z_]+' |
	grep -v PC_VERSION_ >"$dir/is"
grep -E '^\.B PC_[A-Z_]+$' "$dir/patch" | cut -d' ' -f2 >"$dir/says"
same "constants"

# The pages about one header each: header:page
for pair in async:pc_async batch:pc_batch call:pc_call check:pc_check_site mapping:pc_text merge:pc_merge \
	signals:pc_signals; do
	header=$top/patchcore/include/patchcore/${pair%:*}.h
	name=${pair#*:}
	page "$name.3" >"$dir/page"
	functions_in "$header" >"$dir/is"
	mapfile -t functions <"$dir/is"
	part SH SYNOPSIS <"$dir/page" >"$dir/synopsis"
	functions_in "$dir/synopsis" >"$dir/says"
	same "functions in the synopsis of $name(3)"
	printf '%s\n' "${functions[@]}" >"$dir/is"
	part SH NAME <"$dir/page" | grep -oE 'pc_[a-z_]+' >"$dir/says"
	same "functions in the name of $name(3)"
	for function in "${functions[@]}"; do
		[ -e "$doc/$function.3" ] || wrong "$function has no page"
	done
	# A header may say "as pc_patch()" where the page lists them.
	grep -oE '\-E[A-Z]+' "$header" >"$dir/is"
	grep -oE '\-E[A-Z]+' "$dir/page" >"$dir/says"
	grep -oE '\-E[A-Z]+' "$top/patchcore/include/patchcore/patchcore.h" | sort -u >"$dir/common"
	more=$(grep -vxFf "$dir/is" "$dir/says" | grep -xFf "$dir/common" || true)
	[ -z "$more" ] || echo "$more" >>"$dir/is"
	same "errors of $name(3)"
	grep -oE '^(#define |\s)PC_[A-Z_]+ (= )?[0-9]' "$header" | grep -oE 'PC_[A-Z_]+' >"$dir/is" || continue
	grep -E '^\.BR? PC_[A-Z_]+( [,.])?$' "$dir/page" | cut -d' ' -f2 | grep -v PC_PATCH_MAX >"$dir/says" || true
	same "constants of $name(3)"
done

cat "$doc"/pc_*.3 | grep -oE '\b[a-z_]+\.c\b' | sort -u >"$dir/says"
(cd "$top/patchcore/examples" && printf '%s\n' *.c) >"$dir/is"
same "examples"

# --- machine.conf(5) ---

# Lines "[section] key" and "[section] key required", as the page says.
page machine.conf.5 >"$dir/conf"
part SH FORMAT <"$dir/conf" | awk '
	$1 == ".SS" { section = $2 (index($2, "]") ? "" : "]") }
	section && after == ".TP" {
		need = /required\)"$/ ? " required" : ""
		sub(/^\.BR /, ""); sub(/ " \(.*/, "")
		n = split($0, keys, / ", " /)
		for (i = 1; i <= n; i++) print section, keys[i] need
	}
	{ after = $0 }' >"$dir/documented"

grep -oE '"([^"\\]|\\.)*"' "$top/calibrate/verify/conf_write.c" | sed 's/^"//; s/"$//; s/\\n/\n/g' |
	sed -nE 's/^([a-z_]+) = .*/\1/p' >"$dir/is"
sed -nE 's/.*put_(text|torn)\(f, "([a-z_]+)".*/\2/p' "$top/calibrate/verify/conf_write.c" >>"$dir/is"
# Fields of an estimate: a name in JSON and a key here; those of a claim are of lines and of pages.
sed -nE 's/^\tFIELD\(([A-Z_]+), ([a-z_]+), [^,]+, "[a-z_]+", "([a-z_]+)", .*/\2 \3/p' \
	"$top/calibrate/statistics/estimate_fields.c" |
	awk '$1 == "claim" { print "line_" $2; print "page_" $2; next } { print $2 }' >>"$dir/is"
library_keys() # of sections without a number, and of a level
{
	awk '/^static const struct key keys/ { on = 1 } /^};/ { on = 0 } on' \
		"$top/patchcore/machine/conf_read.c" | sed -nE '
		s/^\t\{ "([a-z]+)", "([a-z_]+)", true.*/[\1] \2/p
		s/^\t\{ "([a-z]+)", "([a-z_]+)".*/[\1] \2 required/p
		s/^\t\{ NULL, "([a-z_]+)", true.*/[rested] \1/p
		s/^\t\{ NULL, "([a-z_]+)".*/[level] \1 required/p'
}
library_keys | awk '{ print $2 }' >>"$dir/is"
awk '$1 != "[identity]" { print $2 }' "$dir/documented" >"$dir/says"
same "keys that calibrate writes or the library reads"
grep -oE '"([^"\\]|\\.)*"' "$top/calibrate/verify/conf_write.c" | grep -oE '\[[a-z]+' >"$dir/is"
library_keys | grep -oE '^\[[a-z]+' >>"$dir/is"
sed -nE 's/^\.SS (\[[a-z]+).*/\1/p' "$dir/conf" >"$dir/says"
same "sections"
{
	sed -nE 's/^\tFIELD\(([a-z_]+), .*/[identity] \1 required/p' "$top/patchcore/machine/identity.h"
	library_keys | grep required
} >"$dir/is"
grep required "$dir/documented" >"$dir/says"
same "keys that the library requires"

# The example is one that the library takes, once it is of this machine.
{
	sed -n '/^\.SH EXAMPLE/,$p' "$dir/conf" | sed -n '/^\.nf/,/^\.fi/{/^\./d;p}' | awk '
		/^\[/ { skip = $0 == "[identity]"; scope = $0 == "[scope]" }
		!skip && !(scope && /^cpus /)'
	sed -n 's/^Cpus_allowed_list:[[:space:]]*/[scope]\ncpus = /p' /proc/self/status
	echo "[identity]"
	# 3: a config that is installed here is refused.
	{ "$tmax" info 2>/dev/null || [ $? = 3 ]; } | awk '
		/^[a-z]/ { machine = $0 == "machine" }
		machine && /^  / && $1 != "codename" { name = $1; sub(/^ +[^ ]+ +/, ""); print name " = " $0 }'
} >"$dir/machine.conf"
PATCHCORE_MACHINE_CONF=$dir/machine.conf "$tmax" info >"$dir/out" 2>"$dir/err" || true
if grep -q '^tsc_invariant = yes' "$dir/machine.conf" && grep -q '^  clock  *trusted$' "$dir/out"; then
	grep -q '^  verdict  *valid$' "$dir/out" || wrong "the example is refused: $(cat "$dir/err")"
else
	grep -qE 'TSC|RDTSCP' "$dir/err" || wrong "the example is refused: $(cat "$dir/err")"
fi

# --- patchcore(7) ---

page patchcore.7 | sed -n '/^\.SH EXAMPLE/,$p' | sed -n '/^\.nf/,/^\.fi/{/^\./d;p}' >"$dir/example.c"
# shellcheck disable=SC2086 # CC may carry options
${CC:-cc} -Wall -Wextra -Werror -fsyntax-only -I"$top/patchcore/include" "$dir/example.c" ||
	wrong "the example of patchcore(7) does not compile"
grep -q 'pc_patch(' "$dir/example.c" || wrong "patchcore(7) has no example"

exit "$failed"
