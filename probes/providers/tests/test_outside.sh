#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Static branches that are turned from outside and by the environment: in a program, C or C++, by gcc and clang, at a place of
# its own or a fixed one, in inline functions, and in its library; by a glob and by a regular expression. One that is vetoed stays.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so

cat >"$dir/program.cc" <<'END'
#include <stdio.h>
#include <fastinst/branch.h>

#ifdef __cplusplus
extern "C"
#endif
int in_library(void);

static inline int inlined(int x) { return fi_branch(net, trace) ? x + 1 : x; }
static int other(void) { return inlined(10) + (fi_branch_true(net, sum) ? 0 : 100) + (fi_branch(disk, trace) ? 1000 : 0); }

int main(void)
{
	char line[64];

	for (puts("ready"), fflush(stdout); fgets(line, sizeof(line), stdin); fflush(stdout))
		printf("%d %d %d\n", inlined(0), other(), in_library());
	return 0;
}
END
cp "$dir/program.cc" "$dir/program.c"
cat >"$dir/library.c" <<'END'
#include <fastinst/branch.h>
int in_library(void) { return (fi_branch(net, trace) ? 1 : 0) + (fi_branch(net, kept) ? 2 : 0); }
END

# is TEXT - one line, and what the program answers
is()
{
	local answer=

	[ "$1" = ready ] || echo >&7
	read -r -t 30 -u 8 answer || true
	[ "$answer" = "$1" ] || wrong "$what: \"$answer\", it was to be \"$1\""
}

# turn WORD NAMES NUMBER [OPTION] - so many branches
turn()
{
	"$fastinst" "$1" "${4:---branch}" "$2" >"$dir/log" 2>&1 || wrong "$what: $1 $2: $(cat "$dir/log")"
	grep -q ": $3 branch\(es\)\?\$" "$dir/log" || wrong "$what: $1 $2 says $(cat "$dir/log")"
}

# try SOURCE COMPILER...
try()
{
	local source=$1

	shift
	what="$source $*"
	"$@" -O2 -w -fPIC -shared -I "$top/probes/include" -o "$dir/libused.so" -x c "$dir/library.c" || wrong "$what"
	"$@" -O2 -w -I "$top/probes/include" -o "$dir/program" "$dir/$source" -L "$dir" -lused "-Wl,-rpath,$dir" || wrong "$what"
	rm -f "$dir/lines" "$dir/answers"
	mkfifo "$dir/lines" "$dir/answers"
	FASTINST_BRANCHES='net.kept=veto,disk.*=on' timeout 60 "$fastinst" run --off --output /dev/null -- "$dir/program" \
		<"$dir/lines" >"$dir/answers" 2>"$dir/errors" &
	runner=$!
	exec 7>"$dir/lines" 8<"$dir/answers"
	is ready
	is "0 1010 0"
	turn on 'net.[tk]*' 2
	is "1 1011 1"
	turn on '/\.trace$/' 2
	turn off '/^(net|disk)\.[s-t]/' 3
	is "1 1111 1"
	turn off 'net.trace' 1
	turn off 'disk.*' 1
	is "0 110 0"
	! "$fastinst" on '*' >/dev/null 2>&1 || wrong "$what: on, without probes"
	is "0 110 0"
	turn off 'net.*' 3 --veto
	is "0 10 0"
	turn on net.trace 1
	is "0 10 0"
	turn on 'net.*' 3 --veto
	is "1 111 1"
	turn on net.kept 1 --veto
	is "1 111 3"
	! "$fastinst" on --branch nothing >"$dir/told" 2>&1 || wrong "$what: on --branch, of nothing"
	grep -q "no static branch is called 'nothing'" "$dir/told" || wrong "$what: $(cat "$dir/told")"
	exec 7>&- 8<&-
	wait "$runner" || wrong "$what: $(cat "$dir/errors")"
}

for cc in gcc clang g++ clang++; do
	command -v $cc >/dev/null || continue
	source=program.c
	[[ $cc != *++ ]] || source=program.cc
	try $source $cc
	try $source $cc -fno-pie -no-pie
done

exit $failed
