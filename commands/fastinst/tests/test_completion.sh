#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# bash and zsh complete what fastinst's tables have: every command and every option. Help opens with five
# examples and ends with one for each command, and their options exist.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

"$fastinst" completion >"$dir/table"
for name in fastinst _fastinst; do
	awk -v file=$name -f "$top/commands/tmax/completion.awk" "$dir/table" >"$dir/$name"
done
mapfile -t commands < <("$fastinst" --help | sed -nE 's/^  ([a-z]+) .*/\1/p')

options_of()
{
	{ "$fastinst" "$1" --help | sed -nE 's/^  (--[a-z0-9-]+)(\[?[= ].*)?$/\1/p'; } | sort
}

# completed WORD... - what bash offers for the last of the words
completed()
{
	bash -c '. "$1"; shift; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _fastinst
		printf "%s\n" "${COMPREPLY[@]}"' bash "$dir/fastinst" "$@" | sort
}

diff <(completed fastinst '') <(printf '%s\n' help "${commands[@]}" | sort) || wrong "commands"
for command in "${commands[@]}"; do
	diff <(completed fastinst "$command" --) <(options_of "$command") || wrong "bash, fastinst $command"
done
touch "$dir/a program"
[ "$(completed fastinst run "$dir/a")" = "$dir/a program" ] || wrong "run completes no file"
[ "$(completed fastinst run --output "$dir/a")" = "$dir/a program" ] || wrong "run --output completes no file"
[ "$(completed fastinst trace --format js)" = json ] || wrong "formats of trace are not completed"
[ -z "$(completed fastinst top --pid '')" ] || wrong "a PID is completed"
# The value of --entries may be left out, and what follows is an option.
[ "$(completed fastinst run --entries --js)" = --json ] || wrong "nothing follows --entries"

if command -v zsh >/dev/null; then
	zsh -n "$dir/_fastinst" || wrong "no zsh"
	for command in "${commands[@]}"; do
		# _arguments tells what it was given; zsh itself would show it in a terminal.
		zsh -f -c '
			_arguments() { print -rl -- "$@" }
			words=(fastinst $2 --) CURRENT=3
			source $1 && _fastinst' zsh "$dir/_fastinst" "$command" >"$dir/specs"
		diff <(sed -nE 's/^(--[a-z0-9-]+)\[.*/\1/p' "$dir/specs" | sort) <(options_of "$command") ||
			wrong "zsh, fastinst $command"
	done
fi

# --- Examples ---

# exist LINE - its command has its options
exist()
{
	local word command

	read -r _ command _ <<<"$1"
	for word in $1; do
		[ "$word" != -- ] || break
		[[ $word != --* ]] || options_of "$command" | grep -qxF -- "$word" || wrong "$1: there is no $word"
	done
}

mapfile -t examples < <("$fastinst" -h | sed -n 's/^  \$ //p')
[ ${#examples[@]} = 5 ] || wrong "examples: ${examples[*]}"
for command in "${commands[@]}"; do
	last=$("$fastinst" "$command" -h | tail -n 1)
	[[ $last == "Example: fastinst $command "* ]] || wrong "$command -h ends with $last"
	examples+=("${last#Example: }")
done
for example in "${examples[@]}"; do
	exist "$example"
done
exit $failed
