#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fastinst list finds in a file what the library finds in the process: entries, exits, markers, blocks and compares,
# with the same names and lines, by gcc and clang; and static branches and calls. Lines of other places
# show that the comparison can fail. The sums are those of the list, in the table as in JSON.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst.so
needs_patchable
tried=0

# compare COMPILER FLAG...
compare()
{
	local compile linked

	read -ra compile <<<"$1"
	shift
	linked=(-L "$build/.libs" -lfastinst -lpatchcore "-Wl,-rpath,$build/.libs")
	"${compile[@]}" -g -fpatchable-function-entry=5 -finstrument-functions -fsanitize-coverage=trace-pc,trace-cmp "$@" \
		-I "$top/probes/include" -c -o "$dir/listed.o" "$top/commands/fastinst/tests/listed.c" 2>"$dir/errors" || {
		echo "$*: skipped, $(head -1 "$dir/errors")"
		return
	}
	tried=$((tried + 1))
	# shellcheck disable=SC2086 # CC may carry options
	$CC "$@" -o "$dir/listed" "$dir/listed.o" "${linked[@]}"
	"$dir/listed" | sort >"$dir/is"
	"$fastinst" list --json "$dir/listed" >"$dir/json"
	valid "$dir/json"
	python3 - "$dir/json" <<'END' | sort >"$dir/says"
import json, sys
report = json.load(open(sys.argv[1]))
kinds = {}
for site in report["list"]:
    kinds.setdefault((site["kind"], site["provider"]), []).append(site)
assert sum(kind["sites"] for kind in report["kinds"]) == report["sites"] == len(report["list"])
for kind in report["kinds"]:
    sites = [s for s in kinds[kind["kind"], kind["provider"]] if s["usable"]]
    assert len(sites) == kind["usable"]
    for size in 8, 64, 4096:
        assert sum(s["crosses"] >= size for s in sites) == kind[f"cross_{size}"]
assert [s["function"] for s in kinds["branch", "branch"]] == ["listed.rare"]
assert [s["function"] for s in kinds["call", "branch"]] == ["chosen"]
assert all(s["arguments"].count("@") == 2 for s in kinds["marker", "marker"])
for site in report["list"]:
    if site["provider"] != "branch":
        print(f'{site["address"]:x}', site["kind"], "usable" if site["usable"] else "refused", site.get("line", 0),
              site["function"])
END
	diff "$dir/is" "$dir/says" || wrong "$*: the library finds <, fastinst list >"
	for kind in entry exit block compare marker; do
		grep -q " $kind usable " "$dir/is" || wrong "$*: no $kind is tried"
	done
	if sed '1s/ [0-9]* / 999999 /' "$dir/is" | cmp -s - "$dir/says"; then
		wrong "another line was not seen"
	fi
}

for compiler in "$CC" clang; do
	command -v "${compiler%% *}" >/dev/null || continue
	compare "$compiler" -O1 -fPIE -pie
	compare "$compiler" -O2 -fPIE -pie -fno-plt -fcf-protection=full
	compare "$compiler" -O2 -fno-pie -no-pie
done
[ $tried != 0 ] || skip "no compiler has all of these options"

"$fastinst" list --summary "$dir/listed" "$dir/listed" >"$dir/out" || wrong "two programs: status $?"
[ "$(grep -c ' usable; of these ' "$dir/out")" = 2 ] || wrong "two programs: $(cat "$dir/out")"
# The table has a line for each kind, with the numbers of the JSON output.
awk '/^[a-z]+ +[a-z]+ +[0-9]/ { print $1, $2, $3, $4, $5, $7, $9 }' "$dir/out" | sort -u >"$dir/is"
python3 -c '
import json, sys
for kind in json.load(open(sys.argv[1]))["kinds"]:
    print(*kind.values())' "$dir/json" | sort | diff "$dir/is" - || wrong "the table and the JSON output differ"

exit $failed
