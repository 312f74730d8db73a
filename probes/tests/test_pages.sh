#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fastinst(1), libfastinst(3), the header, the export list and docs/probes.md say the same; the code in them compiles.
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

page fastinst.1 >"$dir/page"
for command in run attach on top trace list profile; do
	"$fastinst" "$command" --help |
		sed -nE '/^  --help/d; s/^  (--[a-z-]+)(\[=[A-Z]+\]| [A-Z]+)?( .*)?$/\1\2/p' >"$dir/is"
	awk -v title="fastinst $command" '
		$1 == ".SS" || $1 == ".SH" { here = index($0, ".SS " title) == 1 }
		here && after == ".TP"
		{ after = $0 }' "$dir/page" |
		sed -nE 's/\\f[BIR]//g; s/^\.BI? (--[a-z-]+)( "( [A-Z]+)")?$/\1\3/p; s/^\.BR (--[a-z-]+) (\[=.*\])$/\1\2/p' >"$dir/says"
	same "options of fastinst $command"
done
"$fastinst" --help | sed -nE 's/^  ([a-z]+) .*/\1/p' >"$dir/is"
grep -oE '^\.SS fastinst .*' "$dir/page" | grep -oE 'fastinst [a-z]+' | cut -d' ' -f2 >"$dir/says"
same "commands"
if "$fastinst" --help | grep -qE '.{81}'; then
	wrong "help wider than 80 columns"
fi
grep -ohE 'getenv\("[A-Z_]+"' "$top"/probes/{agent,command}/*.[ch] | cut -d'"' -f2 | grep -vxE "LD_PRELOAD|PATH" >"$dir/is"
sed -n '/^\.SH ENV/,/^\.SH EXIT/p' "$dir/page" | sed -nE 's/^\.B ([A-Z_]+)$/\1/p' | grep -v LD_PRELOAD >"$dir/says"
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
