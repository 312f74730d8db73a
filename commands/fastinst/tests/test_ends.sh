#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The ways in which a program ends or becomes another one: what it ran until then is told by run and by
# profile, also of a program before an exec, once, and not where the exec failed and the program goes on.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
needs_patchable

cat >"$dir/ends.c" <<'C'
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int before(int n);
int after(int n);

__attribute__((noinline)) int before(int n) { __asm__ volatile("" : "+r"(n)); return n + 1; }
__attribute__((noinline)) int after(int n) { __asm__ volatile("" : "+r"(n)); return n + 2; }

static char *self;
static char last[] = "last";

static int is(const char *way, const char *name) { return !strcmp(way, name); }

int main(int argc, char **argv)
{
	char *args[] = { argv[0], last, NULL }, *way = argv[1];
	int n = 0, status;
	pid_t pid;

	(void)argc;
	self = argv[0];
	if (is(way, last)) {
		for (int i = 0; i < 7; i++)
			n = after(n);
		return n == 14 ? 5 : 1;
	}
	for (int i = 0; i < 3000; i++)
		n = before(n);
	if (is(way, "quick_exit"))
		quick_exit(5);
	if (is(way, "_exit"))
		_exit(5);
	if (is(way, "execve"))
		execve(self, args, environ);
	if (is(way, "execv"))
		execv(self, args);
	if (is(way, "execvp"))
		execvp(strrchr(self, '/') + 1, args);
	if (is(way, "execvpe"))
		execvpe(self, args, environ);
	if (is(way, "execl"))
		execl(self, self, last, (char *)NULL);
	if (is(way, "execlp"))
		execlp(strrchr(self, '/') + 1, self, last, (char *)NULL);
	if (is(way, "execle"))
		execle(self, self, last, (char *)NULL, environ);
	if (is(way, "fexecve"))
		fexecve(open(self, O_RDONLY), args, environ);
	if (is(way, "execveat"))
		execveat(AT_FDCWD, self, args, environ, 0);
	if (is(way, "vfork")) {
		pid = vfork();
		if (!pid) {
			execv(self, args);
			_exit(1);
		}
		waitpid(pid, &status, 0);
		return WEXITSTATUS(status);
	}
	if (is(way, "spawn")) {
		if (posix_spawn(&pid, self, NULL, NULL, args, environ))
			return 1;
		waitpid(pid, &status, 0);
		return WEXITSTATUS(status);
	}
	if (is(way, "fails")) {
		/* No such file; and one that may be executed, and cannot be. */
		if (execlp("no-such-program", "x", (char *)NULL) != -1 || errno != ENOENT)
			return 1;
		if (execv("/", args) != -1 || errno != EACCES)
			return 2;
		if (execv(argv[2], args) != -1 || errno != ENOEXEC)
			return 3;
		for (int i = 0; i < 7; i++)
			n = after(n);
		return 5;
	}
	return 1;
}
C
# shellcheck disable=SC2086 # CC may carry options
$CC -O1 -w -fpatchable-function-entry=5 -o "$dir/ends" "$dir/ends.c"
printf '\1\2\3' >"$dir/nonsense"
chmod +x "$dir/nonsense"
PATH=$dir:$PATH

# ended WAY - with status 5
ended()
{
	status=0
	timeout 60 "$@" >"$dir/out" 2>"$dir/errors" || status=$?
	[ $status = 5 ] || wrong "$*: status $status, $(cat "$dir/errors")"
}

for way in quick_exit _exit execve execv execvp execvpe execl execlp execle fexecve execveat vfork spawn fails; do
	case $way in
	*exit) want="before 3000 " ;;
	*) want="after 7 before 3000 " ;;
	esac
	ended "$fastinst" run --on before --on after --output "$dir/counts" -- "$dir/ends" $way "$dir/nonsense"
	got=$(awk '$1 ~ /^[0-9]+$/ { print $4, $1 }' "$dir/counts" | sort | tr '\n' ' ')
	[ "$got" = "$want" ] || wrong "run, $way: $got instead of $want, $(cat "$dir/errors")"
	[ ! -s "$dir/errors" ] || wrong "run, $way: $(cat "$dir/errors")"
done
ended "$fastinst" run --json --output "$dir/json" -- "$dir/ends" execv
python3 -c 'import json, sys; sys.exit(json.load(open(sys.argv[1]))["processes"] != 1)' "$dir/json" || wrong "one process is $(cat "$dir/json")"

[ -e "$build/.libs/libfastinst-profile.so" ] || exit $failed
for way in quick_exit _exit execve execvp execl fexecve; do
	# Rare calls are counted all, but before the first look.
	ended "$fastinst" profile --overhead 100% --format json --output "$dir/json" "$dir/ends" $way
	python3 -c '
import json, sys
profile = json.load(open(sys.argv[1]))
sys.exit(profile["quality"]["processes"] != 1 or not any(f["name"] == "before" for f in profile["functions"]))
' "$dir/json" || wrong "profile, $way: $(cat "$dir/json" "$dir/errors")"
done
exit $failed
