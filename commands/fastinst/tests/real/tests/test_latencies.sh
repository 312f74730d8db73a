#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What "latencies" makes of what a benchmark says: with a server, a client, a benchmark and a fastinst that are scripts.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

mkdir -p "$dir/real/build/entries/redis" "$dir/real/build/native/redis/src"
tools=$dir/real/build/native/redis/src
# Lives until the file of its socket is gone.
cat >"$dir/real/build/entries/redis/program" <<'END'
#!/usr/bin/env bash
touch "$4"
while [ -e "$4" ]; do sleep 0.05; done
END
cat >"$tools/redis-cli" <<'END'
#!/usr/bin/env bash
[ "$3" != ping ] || { [ -e "$2" ] && echo PONG; }
[ "$3" != shutdown ] || rm -f "$2"
END
# All requests take longer from round to round; profiled ones by a tenth, and their worst by a fifth.
cat >"$tools/redis-benchmark" <<END
#!/usr/bin/env bash
way=\${2##*/}
echo x >>"$dir/\$way.rounds"
awk -v way=\$way -v n="\$(wc -l <"$dir/\$way.rounds")" 'BEGIN {
	print "\"test\",\"rps\",\"avg\",\"min\",\"p50\",\"p95\",\"p99\",\"max\""
	for (i = 1; i <= 2; i++)
		printf "\"%s\",\"1\",\"1\",\"1\",\"%.4f\",\"9\",\"%.4f\",\"9\"\n", i == 1 ? "GET" : "SET", i * n * (way == "profiled" ? 1.1 : 1),
			2 * i * n * (way == "profiled" ? 1.2 : 1)
}'
END
# fastinst MODE ... --output FILE -- COMMAND...
cat >"$dir/fastinst" <<'END'
#!/usr/bin/env bash
while [ "$1" != -- ]; do
	[ "$1" != --output ] || output=$2
	shift
done
shift
"$@"
echo '{"cost":0.01,"toggling":0.001}' >"$output"
END
chmod +x "$dir/fastinst" "$tools"/* "$dir/real/build/entries/redis/program"

FASTINST=$dir/fastinst "$top/commands/fastinst/tests/real/latencies" --servers 3 --rounds 6 --requests 10 "$dir/real" >"$dir/told" 2>"$dir/errors" ||
	wrong "status $?: $(cat "$dir/errors")"
for row in GET SET 'all, geometric mean'; do
	grep -qxF "| $row | 1.100 [1.100, 1.100] | 1.000 [1.000, 1.000] | 1.200 [1.200, 1.200] | 1.000 [1.000, 1.000] |" "$dir/told" ||
		wrong "no row of $row as it should be in $(cat "$dir/told")"
done
grep -q '"cost":0.01' "$dir/told" || wrong "the profile is not told: $(cat "$dir/told")"
[ "$(sort -u "$dir"/*.rounds | wc -l) $(wc -l <"$dir/same.rounds")" = "1 21" ] || wrong "not three times a round to warm up and six"

status=0
"$top/commands/fastinst/tests/real/latencies" --rounds 0 "$dir/real" 2>/dev/null || status=$?
[ $status = 64 ] || wrong "no rounds: exit status $status"
exit $failed
