#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fastinst top on a terminal that is smaller than what there is to show: the head stays, no line is longer than the terminal
# is wide, and the counts grow.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
needs_patchable
command -v python3 >/dev/null || skip "no python3"

{
	echo '#include <stdio.h>'
	for i in $(seq 30); do
		echo "__attribute__((noinline)) int function_of_a_long_name_$i(int x) { __asm__ volatile(\"\"); return x; }"
	done
	echo 'int main(void) { while (getchar() != EOF) {'
	for i in $(seq 30); do
		echo "function_of_a_long_name_$i($i);"
	done
	echo '} return 0; }'
} >"$dir/many.c"
# shellcheck disable=SC2086 # CC may carry options
$CC -g -O1 -fpatchable-function-entry=5 -o "$dir/many" "$dir/many.c"
mkfifo "$dir/lines"
timeout 120 "$fastinst" run --output /dev/null -- "$dir/many" <"$dir/lines" &
runner=$!
exec 7>"$dir/lines"

python3 - "$fastinst" <<'END' || wrong "top on a terminal"
import fcntl, os, pty, select, struct, sys, termios, time

ROWS, COLUMNS = 10, 50
fastinst = sys.argv[1]
end = time.time() + 60
while os.system(fastinst + " top --once >/dev/null 2>&1"):
    assert time.time() < end, "the program does not listen"
    time.sleep(0.05)
child, terminal = pty.fork()
if not child:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    os.execvp(fastinst, [fastinst, "top", "--delay", "0.05"])
text = b""
# Until it was shown three times, the last one in full.
while text.count(b"\033[2J") < 4:
    assert time.time() < end, text
    assert select.select([terminal], [], [], 30)[0], text
    text += os.read(terminal, 65536)
    os.write(7, b"\n")
os.kill(child, 15)
os.waitpid(child, 0)
lasts = []
for screen in text.split(b"\033[2J")[1:4]:
    lines = screen.replace(b"\033[H", b"").replace(b"\r", b"").rstrip(b"\n").split(b"\n")
    assert lines[0] == b"1 process", lines
    assert lines[1].split()[:2] == [b"count", b"lost"], lines
    # How fast is known from the second look on.
    assert (b"per second" in lines[1]) == (len(lasts) > 0), lines
    assert 2 < len(lines) < ROWS and max(map(len, lines)) <= COLUMNS, (len(lines), lines)
    lasts.append(int(lines[3].split()[0]))
assert lasts == sorted(lasts), lasts
END
status=0
"$fastinst" on nothing >/dev/null 2>"$dir/log" || status=$?
[ $status = 1 ] || wrong "on, of nothing: $status"
grep -q "no probe of .* matches 'nothing'" "$dir/log" || wrong "nothing is said of a pattern that names no probe"
"$fastinst" on main >/dev/null 2>"$dir/log" || wrong "on"
[ ! -s "$dir/log" ] || wrong "on says $(cat "$dir/log")"
exec 7>&-
wait "$runner" || wrong "the program failed"

exit $failed
