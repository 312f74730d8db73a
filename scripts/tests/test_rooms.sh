#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The tables of docs/architecture.md say which rooms (folders) the files of a room may include. They
# are held against the tree, and where it is built, against the functions that its objects call:
# one that a room calls and may not include is in a table with a column "called from below". But for
# those, no files call each other, not even by way of a third. Trees (first folders) form no circle, and
# a room has two rooms that include it, or 500 lines; else it is a file of another room. The name of a type, and the
# last part of a room's, means one thing in all trees.
# Damaged copies show that this can fail.
# shellcheck disable=SC2016 # the backticks are the table's
set -euo pipefail

top=$(cd "${srcdir:-.}" && pwd)
document=$top/docs/architecture.md
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
# Libraries of their own, however small.
libraries="patchcore/check "

# rooms FILE - of each row of a table with a column "may include": the room, and what it may
rooms()
{
	awk -F'|' '
		!/^\|/ { column = 0 }
		/^\|/ && !column {
			for (i = 2; i < NF; i++)
				if ($i ~ /^ *may include *$/)
					column = i
		}
		column && $2 ~ /`/ {
			room = $2
			gsub(/[ `]/, "", room)
			sub(/\/$/, "", room)
			rest = $column
			gsub(/\/?[`,]/, " ", rest)
			print "room", room, rest
		}' "$1"
}

# below FILE - the functions of tables with a column "called from below"
below()
{
	awk -F'|' '
		!/^\|/ { here = 0 }
		$2 ~ /^ *called from below *$/ { here = 1 }
		here && $2 ~ /`/ {
			gsub(/[ `]/, "", $2)
			print "below", $2
		}' "$1"
}

# drawn FILE - the rooms and folders of its first drawing, in the order in which they may include
# what comes later
drawn()
{
	awk '
		/^\|/ || (seen && !/^    /) { exit }
		!/^    / { next }
		{
			seen = 1
			for (i = 1; i <= NF; i++) {
				n = split($i, part, /[{},]/)
				if ($i !~ /\//)
					continue
				for (k = n > 1 ? 2 : 1; k <= (n > 1 ? n - 1 : 1); k++) {
					room = n > 1 ? part[1] part[k] : $i
					sub(/\/$/, "", room)
					print "drawn", room, ++place
				}
			}
		}' "$1"
}

# objects - what the objects of each room define and what they call, with their sources. Not those
# whose source has moved since, and not guard.o, which is another library.
objects()
{
	local room object source

	# shellcheck disable=SC2086 # NM may carry options
	while read -r _ room _; do
		for object in "$room"/*.o "$room"/.libs/*.o; do
			source=${object##*[/-]}
			source=$top/$room/${source%.o}.c
			if [ -e "$object" ] && [ -e "$source" ] && [ "${source##*/}" != guard.c ]; then
				printf '%s\0' "$object"
			fi
		done
	done <"$dir/rooms" | xargs -0 -r ${NM:-nm} -A -P | awk '
		{
			room = source = $1
			sub(/\/(\.libs\/)?[^\/]*$/, "", room)
			sub(/.*[\/-]/, "", source)
			sub(/o:$/, "c", source)
		}
		$3 == "T" { print "defined", room, $2, room "/" source }
		$3 == "U" { print "called", room, $2, room "/" source }' | LC_ALL=C sort -u
}

# tree FOLDER... - its sources, and the lines that include, but for tests and examples
tree()
{
	(cd "$top" && find "$@" -name '*.[ch]' | LC_ALL=C sort | xargs wc -l | sed -nE '/ total$/!s/^ *([0-9]+) (.*)/file \2 \1/p')
	(cd "$top" && grep -rHE '^[[:space:]]*#[[:space:]]*include[[:space:]]+["<]' --include='*.[ch]' \
		--exclude-dir={tests,examples} "$@") |
		sed -E 's/^([^:]+):.*include[[:space:]]+["<]([^">]+).*/include \1 \2/'
}

# look FILE - hold its tables against the tree; what is wrong, line by line
look()
{
	local folders

	rooms "$1" >"$dir/rooms"
	mapfile -t folders < <(awk '{ sub(/\/.*/, "", $2); print $2 }' "$dir/rooms" | sort -u)
	if [ ${#folders[@]} = 0 ]; then
		echo "no table with a column \"may include\""
		return
	fi
	tree "${folders[@]}" >"$dir/tree"
	below "$1" >"$dir/below"
	drawn "$1" >"$dir/drawn"
	[ ! -e "$dir/extra" ] || cat "$dir/extra" >>"$dir/tree"
	awk -v most=25 -v alone="$libraries" '
		function tree_of(path) { return substr(path, 1, index(path, "/") - 1) }
		function parent(path) { return path ~ /\// ? substr(path, 1, match(path, /\/[^\/]*$/) - 1) : "" }
		function room_of(path) {
			while (path != "" && !(path in is_room))
				path = parent(path)
			return path
		}
		function within(path, folder) { return index(path "/", folder "/") == 1 }
		# The name of a room beside it, or of a folder of the tree.
		function named(room, name,   beside) {
			beside = parent(room) == "" ? name : parent(room) "/" name
			return name !~ /\// && beside in is_room ? beside : name
		}
		# A folder that is no room itself stands for all rooms in it.
		function may(room, other,   i, name) {
			for (i = 1; i <= count[room]; i++) {
				name = named(room, allowed[room, i])
				if (name == other || (!(name in is_room) && within(other, name)))
					return 1
			}
			return room == other
		}
		# Where a room is drawn, be it with the folder that it lies in.
		function place_of(room) {
			while (room != "" && !(room in place))
				room = parent(room)
			return place[room]
		}
		# A header brings those that it includes: what is called may lie further down.
		function reaches(room, other,   next_room) {
			if (may(room, other))
				return 1
			if ((room, other) in looked)
				return looked[room, other]
			looked[room, other] = 0
			for (next_room in is_room)
				if (next_room != room && may(room, next_room) && reaches(next_room, other))
					looked[room, other] = 1
			return looked[room, other]
		}
		$1 == "room" {
			is_room[$2]
			for (i = 3; i <= NF; i++)
				allowed[$2, ++count[$2]] = $i
		}
		$1 == "drawn" { place[$2] = $3 }
		$1 == "file" {
			exists[$2]
			number[parent($2)]++
			if ($2 !~ /\/(tests|examples)\// && room_of(parent($2)) == "")
				print $2 " lies in no room"
			filled[room_of(parent($2))]
			if ($2 !~ /\/(tests|examples)\//)
				lines[room_of(parent($2))] += $3
		}
		$1 == "include" {
			to = $3
			if (!(to in exists) && ("patchcore/include/" to) in exists)
				to = "patchcore/include/" to
			else if (!(to in exists))
				to = parent($2) "/" to
			from = room_of(parent($2))
			if (to in exists && tree_of($2) != tree_of(to))
				stands_on[tree_of($2), tree_of(to)]
			if (to in exists && from != room_of(parent(to)) && !((from, room_of(parent(to))) in included)) {
				included[from, room_of(parent(to))]
				includers[room_of(parent(to))]++
			}
			if (to in exists && from != "" && !may(from, room_of(parent(to))))
				print $2 " includes " to ": " from " may not include " parent(to)
		}
		$1 == "below" { below[$2] }
		$1 == "called" { calls[$4] = calls[$4] " " $3 }
		# The public functions come by their header; _exit(), execve() and the like are libc, also
		# where a room has its own.
		$1 == "called" && $3 !~ /^(pc_|fi_|_|f?exec[lv])/ {
			callers[$3] = callers[$3] " " $2
			built = 1
		}
		$1 == "defined" {
			if ($3 in home && home[$3] != $4)
				twice[$3]
			defined[$3] = $2
			home[$3] = $4
		}
		# Files that call none, or that none calls, are taken away: what is left is a circle, or
		# between two. What has one name in two programs says nothing.
		function circle_of_files(   from, to, i, n, name, edge, pair, gone, calling, called) {
			for (from in calls) {
				n = split(calls[from], name)
				for (i = 1; i <= n; i++) {
					to = home[name[i]]
					if (to != "" && to != from && !(name[i] in below) && !(name[i] in twice))
						edge[from, to]
				}
			}
			do {
				split("", calling)
				split("", called)
				for (pair in edge) {
					split(pair, name, SUBSEP)
					calling[name[1]]
					called[name[2]]
				}
				gone = 0
				for (pair in edge) {
					split(pair, name, SUBSEP)
					if (!(name[2] in calling) || !(name[1] in called)) {
						delete edge[pair]
						gone++
					}
				}
			} while (gone)
			for (pair in edge) {
				split(pair, name, SUBSEP)
				print name[1] " calls " name[2] " in a circle"
			}
		}
		# Trees that stand on none are taken away, and those on these: what is left is a circle.
		function circle_of_trees(   pair, name, gone, standing) {
			do {
				split("", standing)
				for (pair in stands_on) {
					split(pair, name, SUBSEP)
					standing[name[1]]
				}
				gone = 0
				for (pair in stands_on) {
					split(pair, name, SUBSEP)
					if (!(name[2] in standing)) {
						delete stands_on[pair]
						gone++
					}
				}
			} while (gone)
			for (pair in stands_on) {
				split(pair, name, SUBSEP)
				print "tree " name[1] " stands on " name[2] " in a circle"
			}
		}
		END {
			circle_of_files()
			circle_of_trees()
			for (room in is_room) {
				rooms++
				if (includers[room] < 2 && lines[room] < 500 && index(alone, room " ") == 0 && lines[room] > 0)
					print room " has " lines[room] " lines and " includers[room] + 0 " rooms that include it"
			}
			if (rooms > 50)
				print rooms " rooms are more than 50"
			for (name in defined) {
				n = split(callers[name], caller)
				for (i = 1; i <= n; i++) {
					if (reaches(caller[i], defined[name]))
						continue
					up[name]
					if (!(name in below))
						print caller[i] " calls " name " of " defined[name]
				}
			}
			for (name in below)
				if (built && !(name in up))
					print name " is not called from below"
			for (room in is_room) {
				if (!place_of(room))
					print room " is not drawn"
				for (other in is_room)
					if (may(room, other) && place_of(other) < place_of(room))
						print room " is drawn below " other ", which it may include"
				if (!(room in filled))
					print room " has no sources"
				for (i = 1; i <= count[room]; i++) {
					known = 0
					for (other in is_room)
						known += within(other, named(room, allowed[room, i]))
					if (!known)
						print room " may include " allowed[room, i] ", which is no room"
				}
			}
			for (folder in number)
				if (number[folder] > most)
					print folder " has " number[folder] " sources"
			# Rooms that stand on none, or on those only, are taken away: what is left is a circle.
			do {
				gone = 0
				for (room in is_room) {
					stands = 0
					for (other in is_room)
						stands += other != room && !(other in done) && may(room, other)
					if (!stands && !(room in done)) {
						done[room]
						gone++
					}
				}
			} while (gone)
			for (room in is_room)
				if (!(room in done))
					print room " is in a circle, or stands on one"
		}' "$dir/rooms" "$dir/drawn" "$dir/tree" "$dir/below" "$dir/objects" | LC_ALL=C sort
}

wrong()
{
	echo "WRONG: $*"
	failed=1
}

# twice_named FOLDER... - types that several files define
twice_named()
{
	grep -rhoE '^(struct|enum|union) [a-z_0-9]+ \{' --include='*.[ch]' --exclude-dir={tests,examples} "$@" |
		sed -E 's/^[a-z]+ ([a-z_0-9]+).*/\1/' | LC_ALL=C sort | uniq -d
}

rooms "$document" >"$dir/rooms"
objects >"$dir/objects"
look "$document" >"$dir/found"
[ ! -s "$dir/found" ] || wrong "docs/architecture.md and the tree: $(cat "$dir/found")"
grep -q '^include patchcore/word/.* patchcore/site/' "$dir/tree" || wrong "no include line was seen"

cd "$top"
trees=(agent base bench calibrate commands conform fleet patchcore probes profile results stress)
twice=$(twice_named "${trees[@]}")
[ -z "$twice" ] || wrong "types that are defined twice: $twice"
twice=$(awk '{ sub(/.*\//, "", $2); if ($2 != "include") print $2 }' "$dir/rooms" | LC_ALL=C sort | uniq -d)
[ -z "$twice" ] || wrong "several rooms are called $twice"

# Names of functions in it are those of the tree.
grep -ohE '`[a-z_]+\(\)`' "$document" "$top/CONTRIBUTING.md" | tr -d '`()' | LC_ALL=C sort -u >"$dir/names"
while read -r name; do
	grep -rqE --include='*.[ch]' "^([^/ ].*[ *])?$name\\(" "${trees[@]}" ||
		wrong "docs/architecture.md or CONTRIBUTING.md names $name(), which is not in the tree"
done <"$dir/names"

# A program and a script of one name share a log, and make check runs only one of them.
twice=$(find "${trees[@]}" docs scripts -path '*/tests/test_*' \
	-name '*.[cs]*' | sed 's/[.][a-z]*$//' | LC_ALL=C sort | uniq -d)
[ -z "$twice" ] || wrong "both a program and a script: $twice"

# --- the same eyes on damaged copies ---

mkdir "$dir/attic"
echo 'struct site {' >"$dir/attic/site.h"
[ "$(twice_named "${trees[@]}" "$dir/attic")" = site ] || wrong "not seen: a type with two meanings"

# must_see WHAT SED-SCRIPT
must_see()
{
	sed -E "$2" "$document" >"$dir/damaged.md"
	cmp -s "$document" "$dir/damaged.md" && wrong "not damaged by $2"
	look "$dir/damaged.md" >"$dir/found"
	grep -qE "$1" "$dir/found" || wrong "not seen: $1 in: $(cat "$dir/found")"
}

must_see '^patchcore/word/[a-z_.]+ includes patchcore/site/[a-z.]+: patchcore/word may not' \
	'/^\| `patchcore\/word`/s/`site`, //'
must_see '^patchcore/check/[a-z.]+ includes patchcore/include/patchcore/check\.h: ' \
	'/^\| `patchcore\/check`/s/`include`//'
must_see '^patchcore/syscall is in a circle' \
	'/^\| `patchcore\/syscall`/s/^(\|[^|]*\|[^|]*\|)/\1 `life`/'
must_see '^patchcore/site/lock\.c lies in no room' '/^\| `patchcore\/site`/d'
must_see '^patchcore/attic has no sources' 's/^(\| `patchcore\/)word(`.*)/&\n\1attic\2/'
must_see '^patchcore/call may include attic, which is no room' \
	'/^\| `patchcore\/call`/s/`word`/`word`, `attic`/'
must_see '^patchcore/word is not drawn' 's/^    patchcore\/ +the only/    the only/'
must_see '^bench/cases is drawn below bench/method, which it may include' \
	'/^    /{s/bench.cases/bench-method/;s/bench.method/bench\/cases/;s/bench-method/bench\/method/}'
must_see '^conform is in a circle' 's/^(\| `stress.run` \|[^|]*\|)/\1 `conform`,/'

echo "include base/number.c commands/tmax/commands.h" >"$dir/extra"
look "$document" >"$dir/found"
rm "$dir/extra"
grep -q '^tree base stands on [a-z]* in a circle' "$dir/found" || wrong "not seen: a circle of trees: $(cat "$dir/found")"
libraries=
look "$document" >"$dir/found"
grep -q '^patchcore/check has [0-9]* lines and 0 rooms' "$dir/found" || wrong "not seen: a small room: $(cat "$dir/found")"
libraries="patchcore/check "


if [ -s "$dir/objects" ]; then
	must_see '^patchcore/pages calls forget_gone of patchcore/life' '/^\| `forget_gone`/d'
	must_see '^forget_gtwo is not called from below' \
		's/^\| `forget_g(one)`.*/&\n| `forget_gtwo` |/'
	must_see '^patchcore/life/forget\.c calls patchcore/pages/text\.c in a circle' '/^\| `forget_gone`/d'
else
	echo "nothing is built: calls were not looked at"
fi

[ $failed = 0 ] && echo "$(rooms "$document" | wc -l) rooms"
exit $failed
