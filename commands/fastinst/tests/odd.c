/* SPDX-License-Identifier: MIT */
/*
 * Functions whose arguments debug information tells wrongly, or not enough of to know where they
 * are. Before each call the program tells what is given. All are called from other files as well,
 * for what the compiler knows.
 */
#include <string.h>

#include "tell.h"

#define FUNCTION __attribute__((noinline))

enum below_0 {
	BELOW_0 = -3
};
enum large {
	LARGE = 0x80000001u
};
enum __attribute__((packed)) small {
	SMALL = -1,
	SMALL_1 = 1
};

struct bits {
	enum below_0 bits_a : 5;
	int bits_b;
};

struct hole {
	int : 32;
	float hole_a;
};

struct tail {
	double tail_a;
	int : 5;
};

struct two {
	long a, b;
};

struct atomic {
	_Atomic(struct two) a;
	long b;
};

typedef double one_double __attribute__((vector_size(8)));
typedef long apart __attribute__((aligned(4)));

struct misaligned {
	int a;
	apart b;
};

static volatile long sink;

/* What is first in their code takes no instruction: debug information has it at the entry. */
FUNCTION long swapped(int swapped_a, int swapped_b)
{
	int before = swapped_a;

	swapped_a = swapped_b;
	swapped_b = before;
	sink = swapped_a;
	return sink = swapped_b - 1;
}

FUNCTION static long swapped_here(int here_a, int here_b)
{
	int before = here_a;

	here_a = here_b;
	here_b = before;
	sink = here_a;
	return sink = here_b - 2;
}

FUNCTION long swapped_doubles(double doubles_a, double doubles_b)
{
	double before = doubles_a;

	doubles_a = doubles_b;
	doubles_b = before;
	sink = (long)doubles_a;
	return sink = (long)(doubles_b - 1);
}

FUNCTION long taken(int taken_a, int taken_b)
{
	taken_a = taken_b;
	sink = taken_a;
	return taken_a + 1;
}

/* A caller that sees of what no use is made may not set it. */
static long (*volatile through)(int, int) = taken;

FUNCTION static long taken_here(int taken_c, int taken_d)
{
	taken_d = taken_c;
	sink = taken_d;
	return taken_d + 1;
}

FUNCTION long counted(int counted_a)
{
	return sink = counted_a;
}

FUNCTION static long added_here(int added_a, int added_b)
{
	added_b = added_a + 1;
	return counted(added_b);
}

/* A copy, with an argument less, is a function without a name where the symbols are gone. */
FUNCTION static long copied(int copied_a, int copied_b)
{
	for (int i = 0; i < copied_b; i++)
		sink = copied_a == 3 ? i : -i * copied_a;
	return copied_b;
}

FUNCTION long enums(enum below_0 enums_a, enum large enums_b, enum small enums_c,
		    struct bits enums_d, int enums_e)
{
	return sink = enums_a + (long)enums_b + enums_c + enums_d.bits_a + enums_e;
}

FUNCTION long holes(struct hole holes_a, double holes_b, struct tail holes_c, double holes_d,
		    int holes_e)
{
	return sink = (long)(holes_a.hole_a + holes_b + holes_c.tail_a + holes_d) + holes_e;
}

FUNCTION long atomics(long atomics_a, long atomics_b, long atomics_c, long atomics_d,
		      long atomics_e, long atomics_f, long atomics_g, struct atomic atomics_h,
		      long atomics_i)
{
	return sink = atomics_a + atomics_b + atomics_c + atomics_d + atomics_e + atomics_f +
		      atomics_g + atomics_h.b + atomics_i;
}

FUNCTION long vectors(one_double vectors_a, double vectors_b, int vectors_c)
{
	return sink = (long)(vectors_a[0] + vectors_b) + vectors_c;
}

FUNCTION long aligned(struct misaligned aligned_a, double aligned_b, int aligned_c)
{
	return sink = aligned_a.a + aligned_a.b + (long)aligned_b + aligned_c;
}

FUNCTION long chars(char chars_a, int chars_b)
{
	return sink = chars_a + chars_b;
}

FUNCTION long old(old_a, old_b, old_c)
float old_a;
double old_b;
int old_c;
{
	return sink = (long)(old_a + old_b) + old_c;
}

FUNCTION __attribute__((ms_abi)) long other(int other_a, double other_b, int other_c)
{
	return sink = other_a + (long)other_b + other_c;
}

int main(int argc, char **argv)
{
	int n = argc;
	struct atomic atomic;

	(void)argv;
	tell("swapped swapped_a=%d swapped_b=%d", n + 100, n + 201);
	swapped(n + 100, n + 201);
	tell("swapped_here here_a=%d here_b=%d", n + 110, n + 211);
	swapped_here(n + 110, n + 211);
	tell("swapped_doubles doubles_a=%d.5 doubles_b=%d.25", n, n + 1);
	swapped_doubles(n + .5, n + 1.25);
	tell("taken taken_a=%d taken_b=%d", n + 101, n + 202);
	through(n + 101, n + 202);
	tell("taken_here taken_c=%d taken_d=%d", n + 102, n + 203);
	taken_here(n + 102, n + 203);
	tell("added_here added_a=%d added_b=%d", n + 103, n + 204);
	tell("counted counted_a=%d", n + 104);
	added_here(n + 103, n + 204);
	tell("copied copied_a=3 copied_b=%d", n + 5);
	copied(3, n + 5);
	tell("enums enums_a=-3 enums_b=2147483649 enums_c=-1 enums_d.bits_a=-3 enums_d.bits_b=%d "
	     "enums_e=%d",
	     n + 7, n + 8);
	enums(BELOW_0, LARGE, SMALL, (struct bits){ BELOW_0, n + 7 }, n + 8);
	tell("holes holes_a.hole_a=2.5 holes_b=3.5 holes_c.tail_a=4.5 holes_d=5.5 holes_e=%d",
	     n + 9);
	holes((struct hole){ .hole_a = 2.5f }, 3.5, (struct tail){ .tail_a = 4.5 }, 5.5, n + 9);
	/* No compiler initializes an _Atomic struct as another does. */
	memcpy(&atomic, (long[]){ 33, 44, n + 54 }, 3 * sizeof(long));
	tell("atomics atomics_a=1 atomics_b=2 atomics_c=3 atomics_d=4 atomics_e=5 atomics_f=6 "
	     "atomics_g=7 atomics_h.a.a=33 atomics_h.a.b=44 atomics_h.b=%d atomics_i=%d",
	     n + 54, n + 8);
	atomics(1, 2, 3, 4, 5, 6, 7, atomic, n + 8);
	tell("vectors vectors_a=1.5 vectors_b=2.5 vectors_c=%d", n + 6);
	vectors((one_double){ 1.5 }, 2.5, n + 6);
#if defined(__clang__) && defined(DWARF_4)
	/* It looks like a packed struct, which clang hands over otherwise (docs/probes.md). */
	tell("aligned aligned_a.a=* aligned_a.b=* aligned_b=5.5 aligned_c=%d", n + 5);
#else
	tell("aligned aligned_a.a=3 aligned_a.b=4 aligned_b=5.5 aligned_c=%d", n + 5);
#endif
	aligned((struct misaligned){ 3, 4 }, 5.5, n + 5);
	tell("chars chars_a=%d chars_b=%d", (char)200, n + 1);
	chars((char)200, n + 1);
	tell("old old_a=1.5 old_b=2.5 old_c=%d", n + 2);
	old(1.5, 2.5, n + 2);
#if defined(__clang__) || defined(__OPTIMIZE__)
	tell("other other_a=%d other_b=6.5 other_c=%d", n + 4, n + 6);
#else
	/* gcc says nothing of it (docs/probes.md). */
	tell("other other_a=* other_b=* other_c=*");
#endif
	other(n + 4, 6.5, n + 6);
	return 0;
}
