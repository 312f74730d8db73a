#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fastinst run --entries beside what compilers left room for, and beside its own libraries: no call is counted twice,
# nothing of fastinst is counted, and of a plugin the last function is, too, and one with variables of threads.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
needs_patchable

# counts OPTION - of the program, as it says them, but for what has no name
counts()
{
	timeout 60 "$fastinst" run "$1" --output "$dir/counts" -- "$dir/counted" "${@:2}" >"$dir/says" 2>"$dir/errors" ||
		wrong "$*: $(cat "$dir/errors")"
	[ ! -s "$dir/errors" ] || wrong "$*: $(cat "$dir/errors")"
	awk '$3 == "entry" && $4 ~ /^(leaf|even|fib|plugged)$/ { print $4, $1 }' "$dir/counts" | sort >"$dir/counted.is"
	sort "$dir/says" | diff - "$dir/counted.is" || wrong "$*: the program says <, fastinst >"
}

for flag in -fpatchable-function-entry=5 -finstrument-functions -g; do
	# shellcheck disable=SC2086 # CC may carry options
	$CC -O1 $flag -o "$dir/counted" "$top/commands/fastinst/tests/counted.c" -pthread -ldl
	counts --entries once
	counts --entries threads
done

# The function ends with the code of the object: nothing lies behind it. By crti.o the object is found when it is loaded.
cat >"$dir/last.c" <<'END'
__asm__(".section .zlast,\"ax\",@progbits\n.globl plugged\n.type plugged, @function\n"
	"plugged: lea 1(%rdi), %rax\n	ret\n.size plugged, .-plugged\n.previous");
END
# shellcheck disable=SC2086
$CC -shared -nostdlib -o "$dir/libplug.so" "$($CC -print-file-name=crti.o)" "$dir/last.c" "$($CC -print-file-name=crtn.o)"
cat >"$dir/loads.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	void *handle = dlopen(argv[argc - 1], RTLD_NOW);
	long (*plugged)(long) = handle ? (long (*)(long))dlsym(handle, "plugged") : NULL;

	for (long i = 0; plugged && i < 100; i++)
		if (plugged(i) != i + 1)
			return 1;
	return !plugged || printf("plugged 100\n") < 0;
}
END
# shellcheck disable=SC2086
$CC -O1 -o "$dir/counted" "$dir/loads.c" -ldl
counts '--entries=*' "$dir/libplug.so"
! grep libfastinst "$dir/counts" || wrong "it counts itself"

# A function whose call of __tls_get_addr() has prefixes that mean nothing.
cat >"$dir/last.c" <<'END'
__thread long calls;
long plugged(long x)
{
	return calls++ < 0 ? 0 : x + 1;
}
END
# shellcheck disable=SC2086
$CC -O2 -fPIC -shared -o "$dir/libplug.so" "$dir/last.c"
"${OBJDUMP:-objdump}" -d "$dir/libplug.so" | grep -qE '66 .*48 e8 ' || echo "the compiler puts no prefixes before calls"
counts '--entries=*' "$dir/libplug.so"

exit $failed
