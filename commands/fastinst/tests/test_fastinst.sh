#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fastinst runs programs that know how often their functions are called, and counts the same: by one
# thread and by eight, in children, in a library that comes and goes, turned on and off from outside.
# A program that lies about its calls shows that the comparison can fail.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
needs_patchable

# build NAME FLAG... - the program and its plugin
build()
{
	local name=$1

	shift
	# shellcheck disable=SC2086 # CC may carry options
	$CC -O1 -falign-functions=16 -fpatchable-function-entry=5 "$@" -o "$dir/$name" \
		"$top/commands/fastinst/tests/counted.c" -pthread -ldl
}

# counted - the report on stdin as "function count", sorted
counted()
{
	awk '$1 ~ /^[0-9]+$/ { print $4, $1 }' | sort
}

# check NAME STATUS ARGUMENT... - fastinst counts what the program says
check()
{
	local name=$1 expected=$2 status=0

	shift 2
	timeout 60 "$fastinst" run --output "$dir/counts" -- "$dir/$name" "$@" >"$dir/says" 2>"$dir/errors" ||
		status=$?
	[ $status = "$expected" ] || wrong "$name $*: exit status $status, $(cat "$dir/errors")"
	[ ! -s "$dir/errors" ] || wrong "$name $*: $(cat "$dir/errors")"
	sort "$dir/says" >"$dir/is"
	counted <"$dir/counts" | diff "$dir/is" - || wrong "$name $*: the program says <, fastinst >"
}

build program
# The comparison can fail: this one calls leaf() once more than it says.
build liar -DLIAR
failed_before=$failed
check liar 0 once >"$dir/log"
grep -q '^> leaf 1501' "$dir/log" || { cat "$dir/log"; wrong "a wrong count was not seen"; exit 1; }
failed=$failed_before

check program 0 once
check program 3 exit
check program 0 threads
check program 0 fork
check program 0 exec
check program 0 vfork
build fixed -fno-pie -no-pie
check fixed 0 threads
build endbr -fcf-protection=full
check endbr 0 threads
build packed -falign-functions=1
check packed 0 threads
# Some of the NOPs before the label. clang leaves one long NOP behind it, which is refused.
build before -fpatchable-function-entry=16,5
"$fastinst" list "$dir/before" >"$dir/list"
if grep -q refused "$dir/list"; then
	timeout 60 "$fastinst" run -- "$dir/before" once >/dev/null 2>"$dir/errors"
	grep -q 'nothing was counted' "$dir/errors" ||
		wrong "what is refused was counted"
else
	check before 0 threads
fi

# --- exits, where the compiler has them ---

if build exits -fno-pie -no-pie -fpatchable-function-entry=0 -falign-functions=1 -pg -mfentry -mnop-mcount \
	-mrecord-mcount -minstrument-return=nop5 -mrecord-return 2>/dev/null; then
	timeout 60 "$fastinst" run --output "$dir/counts" -- "$dir/exits" threads >"$dir/says"
	for kind in entry exit; do
		awk -v kind=$kind '$3 == kind { print $4, $1 }' "$dir/counts" | sort | grep -E '^(leaf|even|fib) ' >"$dir/is" ||
			true
		sort "$dir/says" | diff - "$dir/is" || wrong "$kind of functions: the program says <, fastinst >"
	done
	"$fastinst" list "$dir/exits" >"$dir/list"
	grep -q 'exit  *leaf' "$dir/list" || wrong "list has no exit of leaf"
fi

# --- a library that comes and goes ---

# shellcheck disable=SC2086
$CC -O1 -fPIC -shared -fpatchable-function-entry=5 -o "$dir/plugin.so" "$top/commands/fastinst/tests/plugin.c"
check program 0 plugin "$dir/plugin.so"
# Found by the run path of the program that asks for it.
build looks "-Wl,-rpath,$dir" -Wl,--enable-new-dtags
(cd / && check looks 0 plugin plugin.so)

# --- patterns, JSON, what is said of programs without probes ---

timeout 60 "$fastinst" run --output "$dir/counts" --on 'le*' --on '/:fib$/' -- "$dir/program" once >/dev/null
[ "$(counted <"$dir/counts" | tr '\n' ' ')" = "fib 177 leaf 1500 " ] || wrong "patterns: $(cat "$dir/counts")"
timeout 60 "$fastinst" run --json --output "$dir/json" -- "$dir/program" once >/dev/null
valid "$dir/json"
python3 -c '
import json, sys
report = json.load(open(sys.argv[1]))
probes = {probe["function"]: probe["count"] for probe in report["probes"]}
sys.exit(probes != {"leaf": 1500, "even": 1000, "fib": 177} or report["processes"] != 1)' "$dir/json" ||
	wrong "JSON: $(cat "$dir/json")"
timeout 60 "$fastinst" run -- /bin/true 2>"$dir/errors" || wrong "/bin/true failed"
grep -q -- -fpatchable-function-entry=5 "$dir/errors" || wrong "nothing was said of /bin/true: $(cat "$dir/errors")"
status=0
timeout 60 "$fastinst" run -- "$dir/none" 2>/dev/null || status=$?
[ $status = 127 ] || wrong "a program that is not there: $status"

# --- help ---

"$fastinst" help >"$dir/help"
"$fastinst" -h | diff "$dir/help" - || wrong "-h is not help"
for command in attach run on off top trace list profile; do
	grep -q "^  $command " "$dir/help" || wrong "help has no $command"
	"$fastinst" help "$command" >"$dir/said" || wrong "help $command"
	"$fastinst" "$command" -h | diff "$dir/said" - || wrong "$command -h is not help $command"
	cmp -s "$dir/said" "$dir/help" && wrong "help $command is that of all"
done

# --- list ---

"$fastinst" list "$dir/program" >"$dir/list"
for function in leaf even fib; do
	grep -q "entry  *$function$" "$dir/list" || wrong "list has no $function: $(cat "$dir/list")"
done
grep -q '^3 sites, 3 usable; of these 0 cross 8 bytes' "$dir/list" || wrong "list: $(tail -1 "$dir/list")"
"$fastinst" list --summary "$dir/endbr" | grep -q 'of these 3 cross 8 bytes' || wrong "list: straddlers"
[ "$("$fastinst" list "$dir/fixed" | grep -c entry)" = 3 ] || wrong "list of a program at a fixed place"
[ "$("$fastinst" list "$dir/plugin.so" | grep -c entry)" = 2 ] || wrong "list of a library"
"$fastinst" list --json "$dir/program" "$dir/plugin.so" >"$dir/json"
valid "$dir/json"
python3 -c '
import json, sys
sys.exit([len(json.loads(line)["list"]) for line in open(sys.argv[1])] != [3, 2])' "$dir/json" || wrong "list --json"
"$fastinst" list --json --summary "$dir/program" >"$dir/json"
valid "$dir/json"
status=0
"$fastinst" list "$top/commands/fastinst/tests/plugin.c" 2>/dev/null || status=$?
[ $status = 66 ] || wrong "list of a text: $status"

# --- on and off from outside ---

mkfifo "$dir/lines" "$dir/answers"
timeout 60 "$fastinst" run --off --output "$dir/counts" -- "$dir/program" wait <"$dir/lines" >"$dir/answers" 2>"$dir/errors" &
runner=$!
exec 7>"$dir/lines" 8<"$dir/answers"

round()
{
	echo >&7
	answer=
	read -r -t 30 -u 8 answer || true
	[ "$answer" = "one round" ] || wrong "the program does not answer"
}

read -r -t 30 -u 8 answer || answer=
[ "$answer" = ready ] || wrong "the program does not start: $(cat "$dir/errors")"
round
"$fastinst" on leaf >/dev/null || wrong "on"
round
"$fastinst" off leaf >/dev/null || wrong "off"
round
"$fastinst" on '*' | grep -q ': 3 probes$' || wrong "on: not three probes"
round
"$fastinst" top --once >"$dir/top" || wrong "top"
[ "$(counted <"$dir/top" | tr '\n' ' ')" = "even 1000 fib 177 leaf 3000 " ] || wrong "top: $(cat "$dir/top")"
# Others may not come near it, and nonsense does no harm.
socket=$(ls "$dir"/fastinst/*.sock)
[ "$(stat -c %a "$dir/fastinst") $(stat -c %a "$socket")" = "700 600" ] || wrong "modes of the socket"
python3 - "$socket" <<'END' || wrong "the socket and nonsense"
import os, socket, sys

def ask(request):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(20)
        s.connect(sys.argv[1])
        try:
            s.sendall(request)
            s.shutdown(socket.SHUT_WR)
            return s.recv(100)
        except ConnectionError:
            return b""

assert ask(b"nonsense\n").startswith(b"error")
assert ask(b"on\n").startswith(b"error")
assert ask(b"on /(/\n").startswith(b"error")
assert ask(b"") == b"" and ask(b"\0" * 100) == b"" and ask(b"x" * 10000) == b""
assert ask(b"off " + bytes(range(1, 10)) + b"\n").startswith(b"ok 0")
for i in range(50):
    assert ask(b"off nothing\n").startswith(b"ok 0")

# A flood: each is answered or turned away, and the program goes on.
import threading
answered = []

def flood(n):
    for i in range(100):
        try:
            answer = ask([b"off nothing\n", b"nonsense\n", b"counts\n", bytes([i]) * 5000][(n + i) % 4])
        except OSError:
            continue
        if answer:
            assert answer.startswith((b"ok ", b"error ")), answer
            answered.append(1)

idle = [socket.socket(socket.AF_UNIX) for i in range(3)]
for s in idle:
    s.connect(sys.argv[1])
threads = [threading.Thread(target=flood, args=(n,)) for n in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
assert len(answered) > 400, len(answered)
assert ask(b"off nothing\n").startswith(b"ok 0")
END
# Another user, even where the modes would let it through, gets no answer.
if [ "$(id -u)" = 0 ]; then
	chmod 711 "$dir" "$dir/fastinst"
	chmod 666 "$socket"
	answer=$(python3 -c '
import os, socket, sys
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
s = socket.socket(socket.AF_UNIX)
s.settimeout(20)
s.connect(sys.argv[1])
try:
    s.sendall(b"on *\n")
    print("answer", s.recv(100))
except ConnectionError:
    print("answer", b"")' "$socket") || true
	[ "$answer" = "answer b''" ] || wrong "another user: $answer"
	chmod 700 "$dir/fastinst"
	chmod 600 "$socket"
fi
chmod 755 "$dir/fastinst"
if "$fastinst" on leaf 2>/dev/null; then
	wrong "a folder that others may enter is trusted"
fi
chmod 700 "$dir/fastinst"
exec 7>&-
wait "$runner" || wrong "the program failed: $(cat "$dir/errors")"
[ "$(counted <"$dir/counts" | tr '\n' ' ')" = "even 1000 fib 177 leaf 3000 " ] || wrong "counts: $(cat "$dir/counts")"
status=0
"$fastinst" on leaf 2>/dev/null || status=$?
[ $status = 69 ] || wrong "on without a program: $status"

# --- toggled from outside while threads compute, to the end and beyond ---

for name in program endbr packed; do
	"$dir/$name" long >"$dir/is"
	timeout 120 "$fastinst" run --off --output "$dir/counts" -- "$dir/$name" long >"$dir/says" 2>"$dir/errors" &
	runner=$!
	while kill -0 "$runner" 2>/dev/null; do
		"$fastinst" on '*' >/dev/null 2>&1 || true
		"$fastinst" off '[el]*' >/dev/null 2>&1 || true
		"$fastinst" off '*' >/dev/null 2>&1 || true
	done
	wait "$runner" || wrong "$name: toggled, it failed: $(cat "$dir/errors")"
	diff "$dir/is" "$dir/says" || wrong "$name: toggled, it computes something else"
done

exit $failed
