/* SPDX-License-Identifier: MIT */
/*
 * Functions that only this file calls, so that a compiler may hand over to them what it likes.
 * Before each call the program tells what is given: a name of an argument is one function's only.
 */
#include "tell.h"

#define LOCAL __attribute__((noinline)) static

struct pair {
	int a, b;
};

struct wide {
	long c, d;
};

struct large {
	long e[3];
};

struct copied {
	int f;

	copied(int value) : f(value)
	{
	}
	copied(const copied &other) : f(other.f + 1)
	{
	}
};

/* A compiler cannot make a copy of known() for this caller. */
extern "C" int known(int, long, double, const char *, struct wide, int);
static decltype(known) *volatile through = known;
static volatile int sink;
static int zero;

LOCAL int dead(int dead_1, int dead_2, int dead_3)
{
	return sink = dead_2 * dead_3;
}

LOCAL int by_pointer(const struct pair *promoted, int behind_promoted)
{
	return sink = promoted->a * behind_promoted + behind_promoted % 7;
}

LOCAL long mixed(long mixed_1, long mixed_2, double mixed_3, double mixed_4, long mixed_5)
{
	return sink = (int)(mixed_1 + mixed_5 + (long)mixed_4);
}

LOCAL int half(struct wide half_1, struct pair half_2, int half_3)
{
	return sink = (int)half_1.d + half_2.b + half_3;
}

LOCAL long constant(int constant_1, long constant_2)
{
	return sink = (int)(constant_1 * constant_2);
}

LOCAL long stacked(long stacked_1, long stacked_2, long stacked_3, long stacked_4, long stacked_5,
		   long stacked_6, long stacked_7, struct large stacked_8, long stacked_9)
{
	return sink = (int)(stacked_2 + stacked_9 + stacked_8.e[1]);
}

LOCAL int unused(int unused_1)
{
	return sink = 4;
}

LOCAL void no_result(copied no_result_1, int no_result_2)
{
	sink = no_result_2;
}

namespace
{
struct hidden {
	int g;

	__attribute__((noinline)) int method(int method_1, int method_2)
	{
		return sink = method_2;
	}
};
} // namespace

/* These are handed over as the ABI has it. */
extern "C" __attribute__((noinline)) int known(int known_1, long known_2, double known_3,
					       const char *known_4, struct wide known_5,
					       int known_6)
{
	return sink = known_1 + (int)(known_2 + known_5.c + known_5.d + (long)known_3) + *known_4 +
		      known_6;
}

LOCAL int all_used(int all_used_1, const struct pair *all_used_2, double all_used_3,
		   struct wide all_used_4)
{
	return sink = all_used_1 + (int)(all_used_3 + (double)(all_used_4.c + all_used_4.d)) +
		      (all_used_2 != nullptr);
}

int main(int argc, char **)
{
	int n = argc + zero;
	struct pair pair = { n + 10, n + 20 };
	struct wide wide = { n + 30, n + 40 };
	struct large large = { { n + 50, n + 60, n + 70 } };
	struct hidden hidden = { n };
	struct copied copied(n + 80);

	tell("dead dead_1=%d dead_2=%d dead_3=%d", 111, n + 221, 333);
	dead(111, n + 221, 333);
	tell("by_pointer promoted=%p behind_promoted=%d", (void *)&pair, n + 99);
	by_pointer(&pair, n + 99);
	tell("mixed mixed_1=%d mixed_2=77 mixed_3=1.5 mixed_4=%d.25 mixed_5=%d", n + 5, n, n + 8);
	mixed(n + 5, 77, 1.5, n + .25, n + 8);
	tell("half half_1.c=%ld half_1.d=%ld half_2.a=%d half_2.b=%d half_3=%d", wide.c, wide.d,
	     pair.a, pair.b, n + 7);
	half(wide, pair, n + 7);
	tell("constant constant_1=7 constant_2=%d", n + 41);
	constant(7, n + 41);
	tell("stacked stacked_1=%d stacked_2=%d stacked_3=%d stacked_4=%d stacked_5=%d "
	     "stacked_6=%d stacked_7=%d "
	     "stacked_8.e=[%ld,%ld,%ld] stacked_9=%d",
	     n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, large.e[0], large.e[1], large.e[2],
	     n + 9);
	stacked(n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, large, n + 9);
	tell("unused unused_1=%d", n + 300);
	unused(n + 300);
	tell("no_result no_result_1=* no_result_2=%d", n + 54);
	no_result(copied, n + 54);
	tell("method this=%p method_1=%d method_2=%d", (void *)&hidden, n + 400, n + 401);
	hidden.method(n + 400, n + 401);
	tell("known known_1=%d known_2=%d known_3=2.5 known_4=\"text\" known_5.c=%ld known_5.d=%ld "
	     "known_6=%d",
	     n + 1, n + 2, wide.c, wide.d, n + 3);
	through(n + 1, n + 2, 2.5, "text", wide, n + 3);
	tell("all_used all_used_1=%d all_used_2=%p all_used_3=%d.5 all_used_4.c=%ld "
	     "all_used_4.d=%ld",
	     n + 500, (void *)&pair, n, wide.c, wide.d);
	all_used(n + 500, &pair, n + .5, wide);
	return 0;
}
