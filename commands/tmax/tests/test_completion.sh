#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# bash and zsh complete what the tables of options have: every command, every option, the names that an
# option takes. A completion that lacks one is found by the same look.
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"

generator=$top/commands/tmax/completion.awk
"$tmax" completion >"$dir/table"
for name in tmax _tmax; do
	awk -v file=$name -f "$generator" "$dir/table" >"$dir/$name"
done
mapfile -t commands < <("$tmax" --help | sed -nE 's/^  ([a-z]+) .*/\1/p')
[ ${#commands[@]} -ge 10 ] || fail "commands: ${commands[*]}"
# The help of each ends with an example, whose options there are.
for command in "${commands[@]}"; do
	example=$("$tmax" "$command" -h | tail -n 1)
	[[ $example == "Example: tmax $command"* ]] || fail "$command -h ends with $example"
	for word in $example; do
		[[ $word != --* ]] || "$tmax" "$command" -h | grep -qE "^  $word( |$)" || fail "$example: there is no $word"
	done
done

options_of()
{
	{ "$tmax" "$1" --help | sed -nE 's/^  (--[a-z0-9-]+)( .*)?$/\1/p'; } | sort
}

# --- bash ---

# completed FILE WORD... - what bash offers for the last of the words
completed()
{
	bash -c '. "$1"; shift; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _tmax
		printf "%s\n" "${COMPREPLY[@]}"' bash "$@"
}

# lacks FILE - the first difference between what is completed and what help says, or nothing
lacks()
{
	local command

	diff <(completed "$1" tmax '' | sort) <(printf '%s\n' help "${commands[@]}" | sort) || return 0
	for command in "${commands[@]}"; do
		diff <(completed "$1" tmax "$command" -- | sort) <(options_of "$command") || return 0
	done
}

# offers WANT WORD... - WANT: the answers, apart by blanks
offers()
{
	local want=$1 got

	shift
	got=$(completed "$dir/tmax" "$@" | paste -sd' ')
	[ "$got" = "$want" ] || fail "'$*' is completed to '$got', not to '$want'"
}

bash -n "$dir/tmax" || fail "no bash"
[ -z "$(lacks "$dir/tmax")" ] || fail "bash: $(lacks "$dir/tmax")"
offers "--budget" tmax calibrate --bu
offers "text" tmax verify --format t
offers "line page 8 16 32 none" tmax gaps --crossing ''
offers "no-int3" tmax stress --protocol no
offers "oversubscribed" tmax stress --placement ov
offers "stall" tmax bench s
offers "all" tmax bench a
offers "calibrate conform" tmax help c
offers "" tmax calibrate --budget ''
offers "report export prior" tmax fleet ''
offers "report" tmax fleet rep
offers "--page --help" tmax fleet report --
offers "--csv --textfile --output --help" tmax fleet export --
offers "--output --require-p --help" tmax fleet prior --
touch "$dir/run of a.jsonl"
offers "$dir/run of a.jsonl" tmax report "$dir/run"
offers "$dir/run of a.jsonl" tmax fleet report "$dir/run"
offers "$dir/run of a.jsonl" tmax fleet report --page "$dir/run"
offers "$dir/run of a.jsonl" tmax calibrate --journal "$dir/run"
sed '/\t--require-p\t/d' "$dir/table" | awk -v file=tmax -f "$generator" >"$dir/damaged"
lacks "$dir/damaged" | grep -q 'require-p' || fail "a completion without --require-p is not seen"

# --- zsh ---

if ! command -v zsh >/dev/null; then
	echo "zsh is not installed: its completion was made, and not tried"
	exit 0
fi
zsh -n "$dir/_tmax" || fail "no zsh"
# specs WORD... - what _arguments is given there; zsh itself would show it in a terminal
specs()
{
	zsh -f -c '
		_arguments() { print -rl -- "$@" }
		file=$1
		shift
		words=(tmax $@ --) CURRENT=$(($# + 2))
		source $file && _tmax' zsh "$dir/_tmax" "$@"
}

specs fleet export | grep -q '^--csv' || fail "zsh, tmax fleet export has no --csv"
! specs fleet report | grep -q '^--csv' || fail "zsh, tmax fleet report has --csv"
for command in "${commands[@]}"; do
	specs "$command" >"$dir/specs"
	diff <(sed -nE 's/^(--[a-z0-9-]+)\[.*/\1/p' "$dir/specs" | sort) <(options_of "$command") ||
		fail "zsh, tmax $command"
	if grep -vE '^(--[a-z0-9-]+\[.*\](:.+:(_files|\(.+\)| ))?|[1*]:.+:(_files|\(.+\)| ))$' "$dir/specs"; then
		fail "zsh, tmax $command: no specification"
	fi
done
