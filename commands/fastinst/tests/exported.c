/* SPDX-License-Identifier: MIT */
/*
 * Functions that other files may call, each of which makes use of some of its arguments: what the
 * others get need not be set by a caller that sees that. Before each call the program tells what is
 * given.
 */
#include "tell.h"

#define EXPORTED __attribute__((noinline))

struct wide {
	long a, b;
};

static volatile long sink;
static int zero;

/* So many registers that some are on the stack. */
#define MANY(name, use)                                                                            \
	EXPORTED long name(long name##_1, int name##_2, double name##_3, struct wide name##_4,     \
			   const char *name##_5, long name##_6, long name##_7);                    \
	long name(long name##_1, int name##_2, double name##_3, struct wide name##_4,              \
		  const char *name##_5, long name##_6, long name##_7)                              \
	{                                                                                          \
		return sink = (long)(use);                                                         \
	}

#define FEW(name, use)                                                                             \
	EXPORTED int name(int name##_1, unsigned char name##_2, float name##_3, short name##_4);   \
	int name(int name##_1, unsigned char name##_2, float name##_3, short name##_4)             \
	{                                                                                          \
		return (int)(sink = (long)(use));                                                  \
	}

#define FUNCTIONS(MANY, FEW)                                                                       \
	MANY(many_none, 1)                                                                         \
	MANY(many_first, many_first_1)                                                             \
	MANY(many_int, many_int_2)                                                                 \
	MANY(many_double, many_double_3)                                                           \
	MANY(many_half, many_half_4.b)                                                             \
	MANY(many_struct, many_struct_4.a + many_struct_4.b)                                       \
	MANY(many_text, *many_text_5)                                                              \
	MANY(many_sixth, many_sixth_6)                                                             \
	MANY(many_stack, many_stack_7)                                                             \
	MANY(many_ends, many_ends_1 + many_ends_7)                                                 \
	MANY(many_odd, many_odd_1 + (long)many_odd_3 + *many_odd_5 + many_odd_7)                   \
	MANY(many_even, many_even_2 + many_even_4.a + many_even_6)                                 \
	MANY(many_late, many_late_6 *many_late_7)                                                  \
	MANY(many_early, many_early_1 *many_early_2 + (long)many_early_3)                          \
	MANY(many_called, (sink = 1, fflush(stdout), many_called_1))                               \
	MANY(many_all, many_all_1 + many_all_2 + (long)many_all_3 + many_all_4.a + many_all_4.b +  \
			       *many_all_5 + many_all_6 + many_all_7)                              \
	FEW(few_none, 2)                                                                           \
	FEW(few_first, few_first_1)                                                                \
	FEW(few_byte, few_byte_2)                                                                  \
	FEW(few_float, few_float_3)                                                                \
	FEW(few_short, few_short_4)                                                                \
	FEW(few_ends, few_ends_1 - few_ends_4)                                                     \
	FEW(few_middle, few_middle_2 + (long)few_middle_3)                                         \
	FEW(few_integers, few_integers_1 + few_integers_2 + few_integers_4)                        \
	FEW(few_copied, (sink = few_copied_1, sink = few_copied_4, few_copied_1))                  \
	FEW(few_constant, (few_constant_1 = 5, few_constant_1 + few_constant_4))                   \
	FEW(few_changed, (few_changed_1 = zero, sink = 0, few_changed_1 + few_changed_2))          \
	FEW(few_maybe, zero ? few_maybe_1 : few_maybe_4)                                           \
	FEW(few_looped, few_looped_2 % 3 ? few_looped_2 : few_looped_1)                            \
	FEW(few_never, 0 * few_never_1 + few_never_4)                                              \
	FEW(few_same, few_same_1 == few_same_2)                                                    \
	FEW(few_all, few_all_1 + few_all_2 + (long)few_all_3 + few_all_4)

FUNCTIONS(MANY, FEW)

#define CALL_MANY(name, use)                                                                       \
	n++;                                                                                       \
	tell(#name " " #name "_1=%d " #name "_2=%d " #name "_3=%d.5 " #name "_4.a=%d " #name       \
		   "_4.b=%d " #name "_5=\"text\" " #name "_6=%d " #name "_7=%d",                   \
	     n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6);                                         \
	name(n, n + 1, n + 2.5, (struct wide){ n + 3, n + 4 }, "text", n + 5, n + 6);

#define CALL_FEW(name, use)                                                                        \
	n++;                                                                                       \
	tell(#name " " #name "_1=%d " #name "_2=%d " #name "_3=%d.5 " #name "_4=%d", n, n + 1, n,  \
	     -n);                                                                                  \
	name(n, (unsigned char)(n + 1), (float)n + .5f, (short)-n);

int main(int argc, char **argv)
{
	int n = argc + zero + 100;

	(void)argv;
	FUNCTIONS(CALL_MANY, CALL_FEW)
	return 0;
}
