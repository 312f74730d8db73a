#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every command in README.md, CONTRIBUTING.md, results/README.md, docs/*.md and docs/lab/*.md works.
#
# A block of commands is fenced as sh. The blocks of a page run in order, in a folder that looks like a
# clone with a build in it. The line before a block may hold a comment for this test:
#
#   <!-- test: not run, root: WHY -->          as root, minutes, network, another machine: not run here
#   <!-- test: status 0 1 2 -->                any of these is a success
#   <!-- test: s/--budget 5m/--budget 5s/ -->  run as this script of sed makes it; or both of them, in
#                                              that order, with a comma between
#   <!-- test: file NAME -->                   of a block that is not sh: it becomes that file
#   <!-- test: prints -->                      of one that is not sh: the block before it prints these lines
#
# Commands within a line have options that there are; files and make targets that are named exist.
# shellcheck disable=SC2016,SC2030,SC2031 # backticks stand for themselves, subshells keep what they change
set -euo pipefail
export LC_ALL=C
umask 022

if [ "${SANITIZERS:-none}" != none ]; then
	echo "skipped: a library with sanitizers serves no ordinary program"
	exit 77
fi
top=$(realpath "${srcdir:-.}")
if [ ! -d "$top/results/runs" ]; then
	echo "skipped: the measured runs, which some commands read, are not in this package"
	exit 77
fi
build=$PWD
tmax=$(realpath "${TMAX:-./tmax}")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset PATCHCORE_MACHINE_CONF HWLOC_SYNTHETIC HWLOC_XMLFILE HWLOC_THISSYSTEM TMAX_GNUPLOT
export HOME=$dir/home XDG_CONFIG_HOME=$dir/home PATH=$dir/bin:$PATH
export PKG_CONFIG_PATH=$dir/bin LD_LIBRARY_PATH=$build/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
failed=0 ran=0

wrong()
{
	echo "WRONG: $*"
	failed=1
}

# As installed: the program by its name, and the library by pkg-config, which prefers a build tree.
mkdir "$dir/bin" "$dir/home"
ln -s "$tmax" "$dir/bin/tmax"
printf '%s\n' 'Name: patchcore' 'Description: as it was built' 'Version: 0' \
	"Libs: -L$build/.libs -lpatchcore" "Cflags: -I$top/patchcore/include" \
	>"$dir/bin/patchcore-uninstalled.pc"
"$tmax" --help | sed -nE 's/^  ([a-z]+) .*/\1/p' >"$dir/commands"

# blocks PAGE - a line for each fenced block: its first line, its language, its marker. What is in it goes
# to $dir/block-LINE.
blocks()
{
	awk -v dir="$dir" '
		/^```/ && !open {
			open = NR; lang = substr($0, 4); if (lang == "") lang = "-"
			file = dir "/block-" NR; printf "" >file
			print NR "\t" lang "\t" mark; next
		}
		/^```/ { close(file); open = 0; mark = ""; next }
		open { print >file; next }
		/^<!-- test: .* -->$/ { mark = substr($0, 12, length($0) - 15); next }
		NF { if (mark != "") print NR "\tlost\t" mark; mark = "" }' "$1"
}

# run_block WHERE FILE MARK - in the present folder
run_block()
{
	local where=$1 file=$2 mark=$3 want=" 0 " status=0

	if [[ $mark =~ ^status\ ([0-9]+(\ [0-9]+)*)(,\ )?(.*)$ ]]; then
		want=" ${BASH_REMATCH[1]} " mark=${BASH_REMATCH[4]}
	fi
	if [ -n "$mark" ]; then
		cp "$file" "$file.before"
		sed -i -e "$mark" "$file" || wrong "$where: no script of sed: $mark"
		! cmp -s "$file" "$file.before" || wrong "$where: '$mark' changes nothing"
	fi
	timeout 120 bash -euo pipefail "$file" >"$dir/said" 2>"$dir/err" </dev/null || status=$?
	[[ $want == *" $status "* ]] || wrong "$where: exit status $status of
$(cat "$file")
$(tail -n 5 "$dir/said" "$dir/err")"
}

# check_blocks PAGE
check_blocks()
{
	local page=$1 name=${1##*/} number lang mark where clone

	clone=$(mktemp -d "$dir/clone.XXXXXX")
	mkdir "$clone/build"
	ln -s "$tmax" "$clone/build/tmax"
	ln -s "$top"/{docs,patchcore,results,scripts} "$clone"
	blocks "$page" >"$dir/blocks"
	while IFS=$'\t' read -r number lang mark; do
		where="$name, line $number"
		case $lang:$mark in
		lost:*) wrong "$where: a comment for the test stands before no block" ;;
		-:*) wrong "$where: say what kind of block it is: sh, text, c" ;;
		sh:"not run, "*)
			[[ $mark =~ ^not\ run,\ (root|minutes|network|another\ machine):\ [a-z].{7} ]] ||
				wrong "$where: no reason for not running it: $mark"
			;;
		sh:*)
			(cd "$clone" && run_block "$where" "$dir/block-$number" "$mark" && exit $failed) ||
				failed=1
			ran=$((ran + 1))
			;;
		*:"file "*) cp "$dir/block-$number" "$clone/${mark#file }" ;;
		*:prints)
			while read -r line; do
				grep -qxF -- "$line" "$dir/said" || wrong "$where: not printed: $line
$(cat "$dir/said")"
			done <"$dir/block-$number"
			;;
		c:) wrong "$where: code that no test compiles" ;;
		*:?*) wrong "$where: what is '$mark'?" ;;
		esac
	done <"$dir/blocks"
	# Where a reader takes a line for a command, it is one of a block that is fenced.
	if grep -nE '^    ((build/)?tmax|scripts/|\./|make|cc|sudo|apt-get|systemctl|export|git|cd) ?' "$page"; then
		wrong "$name: commands that are not fenced as sh"
	fi
}

# options_of COMMAND - as its help has them
options_of()
{
	[ -e "$dir/options.$1" ] || "$tmax" "$1" --help | grep -oE '(^|[ (])--?[a-z][a-z0-9-]*' |
		tr -d ' (' >"$dir/options.$1"
	cat "$dir/options.$1"
}

# check_words PAGE - commands within lines; stdin: the text
check_words()
{
	local name=${1##*/} span command word path target

	tr '\n' ' ' | tr -s ' ' >"$dir/text"
	while read -r span; do
		span=${span//\`/} span=${span#build/}
		read -r _ command _ <<<"$span"
		[ "${command#-}" = "$command" ] || continue
		if ! grep -qx -- "$command" "$dir/commands"; then
			wrong "$name: there is no 'tmax $command': $span"
			continue
		fi
		while read -r word; do
			options_of "$command" | grep -qx -- "$word" ||
				wrong "$name: 'tmax $command' has no $word: $span"
		done < <(grep -oE '(^| )--?[a-z][a-z0-9-]*' <<<"$span" | tr -d ' ')
	done < <(grep -oE '`(build/)?tmax [a-z-][^`]*`' "$dir/text" || true)
	# A program is named without its .c, and a name in capitals stands for any.
	while read -r path; do
		[ -n "$(compgen -G "$top/$path*")" ] || [[ $path =~ [A-Z]{3} ]] ||
			wrong "$name: there is no $path"
	done < <(grep -oE '`(base|patchcore|stress|results|bench|calibrate|conform|fleet|probes|agent|profile|commands|scripts|docs)/[A-Za-z0-9_./-]+' \
		"$dir/text" | tr -d '\`' || true)
	while read -r _ target; do
		grep -qE "^($target|$target-am|$target-local)( [a-z -]*)?:" "$build/Makefile" || wrong "$name: there is no 'make $target'"
	done < <(grep -oE '`make [a-z-]+' "$dir/text" || true)
}

check_page()
{
	check_blocks "$1"
	awk '/^```/ { fenced = !fenced } !fenced' "$1" >"$dir/prose"
	check_words "$1" <"$dir/prose"
}

# --- pages that are wrong are seen to be ---

# refuses WORDS LINE... - a page of these lines
refuses()
{
	local words=$1

	shift
	printf '%s\n' "$@" >"$dir/broken.md"
	(failed=0 && check_page "$dir/broken.md" && exit $failed) >"$dir/complaint" 2>&1 &&
		wrong "passes: $*"
	grep -q -- "$words" "$dir/complaint" || wrong "not refused for '$words': $(cat "$dir/complaint")"
}

refuses 'exit status 1' '```sh' false '```'
refuses 'exit status 127' '```sh' 'tmaxx info' '```'
refuses 'exit status 64' '```sh' 'tmax info --no-such-option' '```'
refuses 'exit status 0' '<!-- test: status 1 2 -->' '```sh' true '```'
refuses 'exit status 0' '<!-- test: status 1 -->' '```sh' true '```'
refuses 'exit status 3' '<!-- test: status 1, s/2/3/ -->' '```sh' 'exit 2' '```'
refuses 'no reason' '<!-- test: not run, root: -->' '```sh' true '```'
refuses 'no reason' '<!-- test: not run, weather: it rains today -->' '```sh' true '```'
refuses 'changes nothing' '<!-- test: s/a/b/ -->' '```sh' true '```'
refuses 'what kind' '```' true '```'
refuses 'not fenced' '' '    tmax info'
refuses 'before no block' '<!-- test: status 1 -->' 'text'
refuses 'not printed' '```sh' 'echo a' '```' '<!-- test: prints -->' '```text' b '```'
refuses 'no test compiles' '```c' 'int a;' '```'
refuses "no 'tmax calibrat'" 'Run `tmax calibrat`.'
refuses 'has no --budgt' 'Run `tmax calibrate' '--budgt 5m`.'
refuses 'there is no scripts/chek' 'Run `scripts/chek`.'
refuses 'there is no patchcore/gone.c' 'See `patchcore/gone.c`.'
refuses "no 'make htlm'" 'Run `make htlm`.'

# --- the pages ---

[ "$failed" = 0 ] || exit 1
ran=0
for page in "$top"/README.md "$top"/CONTRIBUTING.md "$top"/SECURITY.md "$top"/results/README.md "$top"/docs/*.md "$top"/docs/lab/*.md; do
	check_page "$page"
done
# Lines of the examples in manual pages end with a backslash where they go on.
for page in "$top"/docs/man/tmax*.1; do
	sed -n '/^\.SH EXAMPLE/,/^\.SH DESCRIPTION/p' "$page" | sed 's/\\-/-/g; s/\\e$/\\/' |
		sed -e ':a' -e '/\\$/N; s/\\\n//; ta' | sed -nE 's/^(HWLOC_[^ ]*=.* )?(tmax .*)/`\2`/p' >"$dir/examples"
	[ -s "$dir/examples" ] || wrong "${page##*/} has no example"
	check_words "$page" <"$dir/examples"
done
[ "$ran" -ge 5 ] || wrong "only $ran blocks were run"
echo "$ran blocks of commands were run"
exit "$failed"
