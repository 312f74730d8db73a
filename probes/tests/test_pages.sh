#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The pages of fastinst, libfastinst(3), the header, the export list and docs/probes.md say the same; the code in them compiles.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

header=$top/probes/include/fastinst.h
headers=("$header" "$top"/probes/include/fastinst/*.h)

page()
{
	sed 's/\\-/-/g' "$top/docs/man/$1"
}

# same WHAT - compares what is there ($dir/is) with what is said ($dir/says)
same()
{
	sort -u -o "$dir/is" "$dir/is"
	sort -u -o "$dir/says" "$dir/says"
	[ -s "$dir/is" ] || wrong "$1: nothing found to compare with"
	diff "$dir/is" "$dir/says" || wrong "$1: there is <, it says >"
}

# --- functions ---

# Each public header has a page, and each of its functions one that leads there.
pages=(fastinst.h:libfastinst fastinst/args.h:fi_marker fastinst/branch.h:fi_branch fastinst/compare.h:fi_compare)
for pair in "${pages[@]}"; do
	name=${pair#*:}
	grep -oE '^(void|int|long|uint32_t|uint64_t|const char) \*?fi_[a-z_]+\(' "$top/probes/include/${pair%:*}" |
		grep -oE 'fi_[a-z_]+' | sort -u >"$dir/functions"
	cp "$dir/functions" "$dir/is"
	page "$name.3" | sed -n '/^\.SH SYNOPSIS/,/^\.SH DESC/p' | grep -oE '^\.B "[a-z].*\bfi_[a-z_]+\(' |
		grep -oE 'fi_[a-z_]+' >"$dir/says"
	same "the synopsis of $name(3)"
	while read -r function; do
		[ "$(cat "$top/docs/man/$function.3" 2>/dev/null)" = ".so man3/$name.3" ] || wrong "$function has no page"
		page "$name.3" | sed -n '/^\.SH DESC/,$p' >"$dir/text"
		grep -q "$function" "$dir/text" || [[ $function == *_batch || $function == *_how ]] ||
			wrong "$name(3) does not tell of $function"
	done <"$dir/functions"
done
# Of all headers: what is declared at the beginning of a line, and is no type.
sed -E '/^(static|typedef)/d' "${headers[@]}" |
	sed -nE 's/^[a-z][a-z0-9_ ]*[ *](fi_[a-z_]+)\(.*/\1/p' | sort -u >"$dir/all"
cp "$dir/all" "$dir/is"
grep -oE '\bfi_[a-z_]+;' "$top/probes/fastinst.map" | tr -d ';' >"$dir/says"
same "the export list"
if [ -e .libs/libfastinst.so ]; then
	cp "$dir/all" "$dir/is"
	${NM:-nm} -D --defined-only .libs/libfastinst.so | awk '$2 == "T" && $3 !~ /^__sanitizer_cov_/ { sub(/@.*/, "", $3); print $3 }' >"$dir/says"
	same "what the library exports"
fi
page libfastinst.3 | grep -oE '^\.B -E[A-Z]+' | cut -d' ' -f2 >"$dir/is"
while read -r error; do
	grep -qF -- "$error" "$header" || wrong "libfastinst(3) has $error, the header has not"
done <"$dir/is"

# --- options ---

"$fastinst" --help | sed -nE 's/^  ([a-z]+) .*/\1/p' >"$dir/is"
mapfile -t commands <"$dir/is"
(cd "$top/docs/man" && printf '%s\n' fastinst-*.1 | sed -E 's/^fastinst-(.*)\.1$/\1/') >"$dir/says"
same "pages of commands"
page fastinst.1 | sed -nE 's/^\.BR fastinst-([a-z]+) \(1\)$/\1/p' >"$dir/says"
(cd "$top/docs/man" && grep -L '^\.so' fastinst-*.1 | sed -E 's/^fastinst-(.*)\.1$/\1/') >"$dir/is"
same "commands that fastinst(1) names"
for command in "${commands[@]}"; do
	page "fastinst-$command.1" >"$dir/page"
	other=$(sed -n 's/^\.so man1\///p' "$dir/page")
	[ -z "$other" ] || page "$other" >"$dir/page"
	"$fastinst" "$command" --help |
		sed -nE '/^  --help/d; s/^  (--[a-z-]+)(\[=[A-Z]+\]| [A-Z]+)?( .*)?$/\1\2/p' >"$dir/is"
	awk -v command="$command" '
		$1 == ".SH" { here = $2 == "OPTIONS" }
		here && after == ".TP" { option = $0 }
		# An option that another command of the page has not.
		option && $0 == ".BR " command " ." && before == "Not of" { option = "" }
		(/^\.TP/ || /^\.SH/) && option { print option; option = "" }
		{ after = $0; before = $0 }' "$dir/page" |
		sed -nE 's/\\f[BIR]//g; s/^\.BI? (--[a-z-]+)( "( [A-Z]+)")?$/\1\3/p; s/^\.BR (--[a-z-]+) (\[=.*\])$/\1\2/p' >"$dir/says"
	if [ -s "$dir/is" ] || [ -s "$dir/says" ]; then
		same "options of fastinst $command"
	fi
	"$fastinst" "$command" --help | grep -qE '.{81}' && wrong "help of $command wider than 80 columns"
done
# Options of the examples exist.
for file in "$top"/docs/man/fastinst*.1; do
	while read -r _ command words; do
		for word in ${words%% -- *}; do
			[[ $word != --* ]] || "$fastinst" "$command" --help | grep -qE -- "^  $word([ =[]|\$)" ||
				wrong "${file##*/}: fastinst $command has no $word"
		done
	done < <(sed -n '/^\.SH EXAMPLE/,/^\.SH DESC/p' "$file" | sed 's/\\-/-/g' | grep '^fastinst ')
done
if "$fastinst" --help | grep -qE '.{81}'; then
	wrong "help wider than 80 columns"
fi
if command -v groff >/dev/null; then
	lines=$(groff -man -Tutf8 -rLL=80n "$top/docs/man/fastinst.1" | wc -l)
	[ "$lines" -le 60 ] || wrong "fastinst(1) has $lines lines"
fi
grep -ohE 'getenv\("[A-Z_]+"' "$top"/{agent/counts,commands/fastinst}/*.[ch] | cut -d'"' -f2 | grep -vxE "LD_PRELOAD|PATH" >"$dir/is"
page fastinst.7 | sed -n '/^\.SH ENV/,/^\.SH JSON/p' | sed -nE 's/^\.B ([A-Z_]+)$/\1/p' | grep -v LD_PRELOAD >"$dir/says"
same "environment"
status=0
"$fastinst" no-such-command 2>/dev/null || status=$?
[ $status = 64 ] || wrong "an unknown command: $status"

# --- the example ---

sed -n '/^    #include/,/^    }$/s/^    //p' "$top/docs/probes.md" >"$dir/example.c"
sed -n '/^    int main/,/^    }$/s/^    //p' "$top/docs/probes.md" | grep -q fi_synchronize || wrong "docs/probes.md has no example"
sed -n '/^    #include/,/^    #include <stdio/p;/^    static void on_call/,/^    }$/p;/^    int main/,/^    }$/p' \
	"$top/docs/probes.md" | sed 's/^    //' >"$dir/example.c"
# shellcheck disable=SC2086 # CC may carry options
${CC:-cc} -Wall -Wextra -Werror -I "$top/probes/include" -c -o "$dir/example.o" "$dir/example.c" ||
	wrong "the example of docs/probes.md does not compile"
sed -n '/^    #include <fastinst.marker/,/^    int main/p;/^    int main/,/^    }$/p' "$top/docs/markers.md" |
	sed 's/^    //' | awk '!/^int main/ || !seen++' >"$dir/marker.c"
grep -q FI_MARKER "$dir/marker.c" || wrong "docs/markers.md has no example"
# shellcheck disable=SC2086
${CC:-cc} -Wall -Wextra -Werror -I "$top/probes/include" -c -o "$dir/marker.o" "$dir/marker.c" ||
	wrong "the example of docs/markers.md does not compile"
exit $failed
