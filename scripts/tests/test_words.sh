#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A sentence names who acts: no text of the package says "nobody" or "whoever". A static function has a name that
# a backtrace explains: one of a single word is in one file only. Damaged copies show that this can fail.
set -euo pipefail
export LC_ALL=C

top=$(cd "${srcdir:-.}" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
rooms=(base patchcore stress results bench calibrate conform fleet probes agent profile commands)
failed=0

# vague FOLDER PLACE... - the lines below it that name no actor
vague()
{
	(cd "$1" && shift && grep -rnwIE --exclude=test_words.sh --exclude-dir=runs \
		'[Nn]obody|[Ss]omebody|[Aa]nybody|[Ee]verybody|[Ss]omeone|[Aa]nyone|[Ee]veryone|[Nn]o one|[Ww]hoever|[Ww]hatever|[Hh]e|[Hh]im|[Hh]is|[Ss]he' \
		"$@") || [ $? = 1 ]
}

# bare FOLDER ROOM... - names of one word that static functions have in several files of the product
bare()
{
	(cd "$1" && shift && find "$@" \( -name tests -o -name examples \) -prune -o -name '*.[ch]' -exec awk '
		/^static / { line = $0; gsub(/__attribute__\(\([^)]*\)\)+ /, "", line) }
		/^static / && line !~ /[=;]/ && match(line, /[ *][a-z0-9]+\(/) {
			name = substr(line, RSTART + 1, RLENGTH - 2)
			if (!seen[FILENAME, name]++)
				files[name] = files[name] " " FILENAME
		}
		END {
			for (name in files)
				if (split(files[name], unused, " ") > 1)
					print name ":" files[name]
		}' {} +)
}

vague "$top" README.md CONTRIBUTING.md NEWS SECURITY.md Makefile.am configure.ac m4/tmax.m4 docs scripts "${rooms[@]}" >"$dir/found"
if [ -s "$dir/found" ]; then
	echo "these sentences do not name their actor (patcher, executor, owner, caller, a thread, a user):"
	cat "$dir/found"
	failed=1
fi
bare "$top" "${rooms[@]}" >"$dir/found"
if [ -s "$dir/found" ]; then
	echo "these static functions are called the same; a second word tells them apart in a backtrace:"
	cat "$dir/found"
	failed=1
fi

mkdir "$dir/copy"
echo '/* Whoever sees it waits. */' >"$dir/copy/a.c"
printf 'static int take(void)\n{\n}\nstatic int take_one(void)\n{\n}\n' >"$dir/copy/b.c"
cp "$dir/copy/b.c" "$dir/copy/c.c"
vague "$dir" copy | grep -q 'a.c:1:' || {
	echo "a sentence without an actor is not seen"
	failed=1
}
[[ $(bare "$dir" copy) == take:*b.c* || $(bare "$dir" copy) == take:*c.c* ]] || {
	echo "two functions take() are not seen: $(bare "$dir" copy)"
	failed=1
}
exit $failed
