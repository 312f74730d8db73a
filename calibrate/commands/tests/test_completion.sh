#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# bash and zsh complete what the tables of options have: every command, every option, the names that an
# option takes. A completion that lacks one is found by the same look.
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"

generator=$top/calibrate/program/completion.awk
"$tmax" completion >"$dir/table"
for name in tmax _tmax; do
	awk -v file=$name -f "$generator" "$dir/table" >"$dir/$name"
done
mapfile -t commands < <("$tmax" --help | sed -nE 's/^  ([a-z]+) .*/\1/p')
[ ${#commands[@]} -ge 10 ] || fail "commands: ${commands[*]}"

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
offers "scaling stall" tmax bench s
offers "all" tmax bench a
offers "calibrate conform" tmax help c
offers "" tmax calibrate --budget ''
touch "$dir/run of a.jsonl"
offers "$dir/run of a.jsonl" tmax report "$dir/run"
offers "$dir/run of a.jsonl" tmax calibrate --journal "$dir/run"
sed '/\t--require-p\t/d' "$dir/table" | awk -v file=tmax -f "$generator" >"$dir/damaged"
lacks "$dir/damaged" | grep -q 'require-p' || fail "a completion without --require-p is not seen"

# --- zsh ---

if ! command -v zsh >/dev/null; then
	echo "zsh is not installed: its completion was made, and not tried"
	exit 0
fi
zsh -n "$dir/_tmax" || fail "no zsh"
for command in "${commands[@]}"; do
	# _arguments tells what it was given; zsh itself would show it in a terminal.
	zsh -f -c '
		_arguments() { print -rl -- "$@" }
		words=(tmax $2 --) CURRENT=3
		source $1 && _tmax' zsh "$dir/_tmax" "$command" >"$dir/specs"
	diff <(sed -nE 's/^(--[a-z0-9-]+)\[.*/\1/p' "$dir/specs" | sort) <(options_of "$command") ||
		fail "zsh, tmax $command"
	if grep -vE '^(--[a-z0-9-]+\[.*\](:.+:(_files|\(.+\)| ))?|\*:.+:(_files|\(.+\)| ))$' "$dir/specs"; then
		fail "zsh, tmax $command: no specification"
	fi
done
