#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# FI_FUNCTION: a probe function that a compiler would do by vectors leaves the program's alone, by gcc and
# clang; without the macro it destroys them, so the test can fail. Floating point in one is refused.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst.so
needs_patchable

cat >"$dir/f.c" <<'END'
#include <fastinst.h>

#ifndef FUNCTION
#define FUNCTION FI_FUNCTION
#endif

struct many {
	uint64_t word[32];
};

static struct many from, to;

/* More than the library decodes. */
FUNCTION static void on_call(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	for (int i = 0; i < 32; i++) {
		to.word[i] = from.word[i] * 3 + 1;
		from.word[i] ^= to.word[i] << 5;
	}
	to.word[0] += regs->rdi + id + (uintptr_t)site + (uintptr_t)data;
}

#ifdef FLOATING
FI_FUNCTION double half(double of);

FI_FUNCTION double half(double of)
{
	return of / 2;
}
#endif

double work(double a, double b, double c, double d, double e, double f, double g, double h);

double work(double a, double b, double c, double d, double e, double f, double g, double h)
{
	__asm__ volatile("");
	return a + 2 * b + 4 * c + 8 * d + 16 * e + 32 * f + 64 * g + 128 * h;
}

int main(void)
{
	double (*volatile call)(double, double, double, double, double, double, double, double) = work;
	uint32_t id;

	if (FI_KEEPS_VECTORS_HERE != FI_KEEPS_VECTORS || fi_init() < 0 || fi_find("work", &id, 1) != 1 ||
	    fi_activate_how(&id, 1, on_call, FI_KEEPS_VECTORS_HERE) < 0)
		return 2;
	return call(1, 1, 1, 1, 1, 1, 1, 1) != 255 || fi_count(id) != 1;
}
END

# compile COMPILER NAME FLAG...
compile()
{
	local compiler=$1 name=$2

	shift 2
	# shellcheck disable=SC2086 # it may carry options
	$compiler -O3 -Wall -Wextra -Werror -fpatchable-function-entry=5 -I"$top/probes/include" "$@" -o "$dir/$name" "$dir/f.c" \
		-L "$build/.libs" -lfastinst -lpatchcore "-Wl,-rpath,$build/.libs" 2>"$dir/errors"
}

tried=
for compiler in "$CC" gcc clang; do
	[ -n "$(command -v "${compiler##* }")" ] || continue
	tried="$tried $compiler"
	compile "$compiler" keeps || wrong "$compiler: $(cat "$dir/errors")"
	"$dir/keeps" || wrong "$compiler: the function destroys what the program had"
	compile "$compiler" breaks -DFUNCTION= || wrong "$compiler: $(cat "$dir/errors")"
	! "$dir/breaks" || wrong "$compiler: a function without the macro destroys nothing"
	! compile "$compiler" floating -DFLOATING || wrong "$compiler: floating point is not refused"
done
[ -n "$tried" ] || skip "no compiler"
exit "$failed"
