#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The control socket serves several clients at once: others that never finish their requests, or do not
# read what they are told, keep "fastinst on" from nothing. A long answer arrives as a whole.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
needs_patchable
number=20000

# shellcheck disable=SC2086 # CC may carry options
$CC -O1 -DMANY=$number -o "$dir/program" "$top/commands/fastinst/tests/counted.c" \
	"$top/bench/peers/many.S" -pthread -ldl
mkfifo "$dir/lines" "$dir/answers"
timeout 300 "$fastinst" run --off --output "$dir/counts" -- "$dir/program" wait <"$dir/lines" >"$dir/answers" 2>"$dir/errors" &
runner=$!
exec 7>"$dir/lines" 8<"$dir/answers"
read -r -t 30 -u 8 answer || answer=
[ "$answer" = ready ] || wrong "the program does not start: $(cat "$dir/errors")"
socket=$(ls "$dir"/fastinst/*.sock)

# Also more of them than there are places. Who is dropped comes again.
cat >"$dir/clients.py" <<'END'
import socket, subprocess, sys, threading

path, fastinst, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
over = threading.Event()

def connect():
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    s.settimeout(60)
    return s

# A byte of a request whenever some time has passed.
def trickle():
    while not over.is_set():
        try:
            with connect() as s:
                while not over.wait(0.2):
                    s.send(b"x")
        except OSError:
            pass

# Who gets no CPU for long enough loses its place, and asks again.
def change(word):
    for n in range(20):
        if not subprocess.run([fastinst, word, "f*"], timeout=100, stdout=subprocess.DEVNULL).returncode:
            return
    raise AssertionError(word)

def counts():
    with connect() as s:
        s.sendall(b"counts\n")
        with s.makefile() as lines:
            first = lines.readline()
            assert first.startswith("ok ") or not first, first
            names = [line.split("\t")[3] for line in lines if line.endswith("\n")]
    return names.count("f0") == 1 and sum(name[1:].isdigit() for name in names) == number

for count in 1, 18, 40:
    threads = [threading.Thread(target=trickle, daemon=True) for n in range(count)]
    change("on")
    unread = [connect() for n in range(5)]
    for s in unread:
        s.sendall(b"counts\n")
    for t in threads:
        t.start()
    change("off")
    change("on")
    if count < 10:
        assert any(counts() for n in range(20))
    over.set()
    for t in threads:
        t.join()
    over.clear()
END
python3 "$dir/clients.py" "$socket" "$fastinst" $number || wrong "clients that go on and on"

# A process that is stopped: the command says that it waits, and gets its answer when the process goes on.
pid=$(basename "$socket" .sock)
kill -STOP "$pid"
timeout 100 "$fastinst" on --pid "$pid" 'f*' >"$dir/on" 2>"$dir/waits" &
waiter=$!
until grep -q "process $pid has not answered yet" "$dir/waits" || ! kill -0 $waiter 2>/dev/null; do
	sleep 0.1
done
kill -CONT "$pid"
wait $waiter || wrong "a stopped process: $(cat "$dir/waits")"
grep -q "has not answered yet" "$dir/waits" || wrong "of a stopped process nothing is said"

exec 7>&-
wait "$runner" || wrong "the program failed: $(cat "$dir/errors")"

exit $failed
