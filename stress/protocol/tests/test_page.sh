#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tmax-protocol(5) names the statements that the reader takes, and no others; files that use each
# of them, and every word that one can have, are run.
set -euo pipefail

top=$(cd "${srcdir:-.}" && pwd)
here=$top/stress/protocol/tests
page=$top/docs/man/tmax-protocol.5
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

fail()
{
	echo "FAILED: $*"
	failed=1
}

sed -n '/statements\[\] = {/,/^};/s/^\t{ "\([a-z0-9]*\)".*/\1/p' "$top/stress/protocol/read.c" | sort >"$dir/read"
# Behind .TP and .TQ, in the section of the format.
sed -n '/^\.SH FORMAT/,/^\.SH LIMITS/p' "$page" | grep -A1 -E '^\.T[PQ]' | grep -E '^\.(B|BI|BR) ' |
	sed -E 's/^\.(BI|B) ([a-z0-9]+).*/\2/; s/^\.BR (.*)/\1/; s/ ", " /\n/g' | sort -u >"$dir/page"
[ "$(wc -l <"$dir/read")" -ge 20 ] || fail "too few statements were found"
diff "$dir/read" "$dir/page" || fail "reader and page differ"

# words FILE... - without comments
words()
{
	sed 's/#.*//' "$@" | tr -s ' \t' '\n' | sort -u
}

words "$here"/every*.protocol "$top"/stress/protocols/*.protocol >"$dir/used"
for word in $(cat "$dir/read") plain locked nontemporal front back tail all old new bytes restart pass first \
	second expedited sync-core call jump table call-call call-nop jmp-nop word; do
	grep -qxF -- "$word" "$dir/used" || fail "no file uses $word"
done

# run FILE [OPTION]...
run()
{
	local status=0

	"$TMAX" stress --protocol "$@" --json >"$dir/json" 2>"$dir/err" || status=$?
	grep -q '"outcome":"done"' "$dir/json" || {
		fail "$1 ended with $status: $(cat "$dir/err" "$dir/json")"
	}
	[ "$status" = 0 ] || fail "$1 tore"
}

TMAX=${TMAX:-$(pwd)/tmax}
for pair in word call-call; do
	run "$here/every.protocol" --pair $pair --toggles 128 --seconds 3
done
run "$here/every-own.protocol" --split 3 --toggles 128 --seconds 3
exit $failed
