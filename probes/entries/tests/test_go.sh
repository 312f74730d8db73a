#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --entries takes no function of a program that Go has made: each is listed with the reason, and the program
# does what it did before. What makes it one is a section; the same program without it has its functions taken.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
readonly reason="Go's runtime"
cat >"$dir/some.c" <<'END_C'
#include <stdio.h>
#ifdef GO
__attribute__((section(".go.buildinfo"))) int info = 1;
#endif
__attribute__((noinline)) int work(int i) { volatile int j = i; return j + 1; }
int main(void) { int sum = 0; for (int i = 0; i < 50; i++) sum = work(sum); printf("done %d\n", sum); return 0; }
END_C
cat >"$dir/main.go" <<'END_GO'
package main

import (
	"fmt"
	"sync"
)

// #include <stdlib.h>
import "C"

//go:noinline
func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

func main() {
	var wg sync.WaitGroup
	C.free(C.malloc(16))
	for i := 0; i < 50; i++ {
		wg.Add(1)
		go func() { defer wg.Done(); fib(15) }()
	}
	wg.Wait()
	fmt.Println("done 50")
}
END_GO

# refused PROGRAM - all of them, and it goes on
refused()
{
	"$fastinst" list --entries "$1" >"$dir/listed" 2>&1 || wrong "list $1: $(tail -n 3 "$dir/listed")"
	grep -q "$reason" "$dir/listed" || wrong "$1: the reason is not told: $(head -n 5 "$dir/listed")"
	"$fastinst" run --entries --on '*' "$1" >"$dir/out" 2>"$dir/errors" || [ $? = 1 ] || wrong "$1 ends with another status than 1, nothing matches: $(cat "$dir/errors")"
	grep -qx 'done 50' "$dir/out" || wrong "$1 says: $(cat "$dir/out" "$dir/errors")"
	! grep -E ' entry +' "$dir/errors" || wrong "$1 has probes"
}

$CC -O1 -o "$dir/plain" "$dir/some.c"
$CC -O1 -DGO -o "$dir/marked" "$dir/some.c"
refused "$dir/marked"
"$fastinst" run --entries --on work "$dir/plain" >"$dir/out" 2>"$dir/errors" || wrong "plain ends with $?"
grep -Eq '^ *50 +0 +entry +work ' "$dir/errors" || wrong "plain: $(cat "$dir/errors")"

if command -v go >/dev/null && (cd "$dir" && HOME=$dir GOFLAGS=-mod=mod GO111MODULE=off CGO_ENABLED=1 go build -o made main.go) 2>/dev/null; then
	refused "$dir/made"
else
	echo "no Go here: one of its programs was not tried"
fi
exit "$failed"
