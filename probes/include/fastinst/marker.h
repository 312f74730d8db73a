/* SPDX-License-Identifier: MIT */
/*
 * Markers: named places in a program, for C and C++, that cost a NOP until they are turned on:
 * fi_marker(3).
 *
 *	FI_MARKER(shop, sold, item, price);
 *
 * A marker is six bytes, 90 0F 1F 44 00 08, and a note in the section .note.stapsdt that points
 * at the 90: an SDT probe like any other, and a place for a debugger's breakpoint. libfastinst
 * turns the five bytes behind it into a jump and back. It is never a call, which would overwrite
 * the red zone of a leaf function.
 *
 * The note says where the compiler has each argument; they are looked up only by a probe function
 * that asks. What the compiler has to compute for the marker alone, it computes also while it is
 * off. Header only: a program with markers need not be linked with libfastinst.
 */
#ifndef FASTINST_MARKER_H
#define FASTINST_MARKER_H

#if !defined(__x86_64__) || defined(__ILP32__)
#error "markers are for x86-64"
#endif

/* What stands at a marker: a NOP for debuggers, and one that libfastinst changes. */
#define FI_MARKER_CODE "nop\n\t.byte 0x0f, 0x1f, 0x44, 0x00, 0x08\n"

#define FI_STRING_(x) #x
#define FI_STRING(x)  FI_STRING_(x)

/*
 * Floating point as its bits. A constant of it stands in a table without a name, and readers cannot
 * make sense of what the note would say of that; its bits are a plain number.
 */
static inline __attribute__((always_inline)) unsigned int fi_bits_4(float x)
{
	union {
		float value;
		unsigned int bits;
	} both = { x };

	return both.bits;
}

static inline __attribute__((always_inline)) unsigned long fi_bits_8(double x)
{
	union {
		double value;
		unsigned long bits;
	} both = { x };

	return both.bits;
}

/* An argument as its value: arrays and functions are pointers, bit-fields whole integers. */
#ifdef __cplusplus
extern "C++" {
/* Two characters for a type with a sign. */
template <typename T> char (&fi_sign_of(T))[1];
char (&fi_sign_of(char))[(char)-1 < (char)1 ? 2 : 1];
char (&fi_sign_of(signed char))[2];
char (&fi_sign_of(short))[2];
char (&fi_sign_of(int))[2];
char (&fi_sign_of(long))[2];
char (&fi_sign_of(long long))[2];
template <typename T> inline __attribute__((always_inline)) T fi_value(T x)
{
	return x;
}
inline __attribute__((always_inline)) unsigned int fi_value(float x)
{
	return fi_bits_4(x);
}
inline __attribute__((always_inline)) unsigned long fi_value(double x)
{
	return fi_bits_8(x);
}
}
#define FI_VALUE(x)  fi_value(x)
#define FI_SIGNED(x) (sizeof(fi_sign_of(x)) == 2)
#else
#define FI_PLAIN(x)    ((void)0, (x))
/* A choice that is not taken must be valid, too: there x is replaced by a number. */
#define FI_IF(type, x) __extension__ _Generic(FI_PLAIN(x), type : FI_PLAIN(x), default : (type)0)
#define FI_VALUE(x)                                                                                \
	__extension__ _Generic(FI_PLAIN(x), float                                                  \
			       : fi_bits_4(FI_IF(float, x)), double                                \
			       : fi_bits_8(FI_IF(double, x)), default                              \
			       : FI_PLAIN(x))
#define FI_SIGNED(x)                                                                               \
	__extension__ _Generic(FI_VALUE(x), char                                                   \
			       : (char)-1 < 0, signed char : 1, short : 1, int : 1, long : 1,      \
				 long long : 1, default : 0)
#endif
#define FI_SIZE(x) ((FI_SIGNED(x) ? -1 : 1) * (int)sizeof(__typeof__(FI_VALUE(x))))

#ifndef FI_MARKER_CONSTRAINT
#define FI_MARKER_CONSTRAINT "nor"
#endif
#define FI_OPERAND(n, x) [fi_s##n] "n"(FI_SIZE(x)), [fi_a##n] FI_MARKER_CONSTRAINT(FI_VALUE(x))
#define FI_FORMAT(n)	 "%c[fi_s" #n "]@%[fi_a" #n "]"

/* The last argument is number 1, so the format begins with the highest number. */
#define FI_OPERANDS_0()
#define FI_OPERANDS_1(a)       FI_OPERAND(1, a)
#define FI_OPERANDS_2(a, ...)  FI_OPERAND(2, a), FI_OPERANDS_1(__VA_ARGS__)
#define FI_OPERANDS_3(a, ...)  FI_OPERAND(3, a), FI_OPERANDS_2(__VA_ARGS__)
#define FI_OPERANDS_4(a, ...)  FI_OPERAND(4, a), FI_OPERANDS_3(__VA_ARGS__)
#define FI_OPERANDS_5(a, ...)  FI_OPERAND(5, a), FI_OPERANDS_4(__VA_ARGS__)
#define FI_OPERANDS_6(a, ...)  FI_OPERAND(6, a), FI_OPERANDS_5(__VA_ARGS__)
#define FI_OPERANDS_7(a, ...)  FI_OPERAND(7, a), FI_OPERANDS_6(__VA_ARGS__)
#define FI_OPERANDS_8(a, ...)  FI_OPERAND(8, a), FI_OPERANDS_7(__VA_ARGS__)
#define FI_OPERANDS_9(a, ...)  FI_OPERAND(9, a), FI_OPERANDS_8(__VA_ARGS__)
#define FI_OPERANDS_10(a, ...) FI_OPERAND(10, a), FI_OPERANDS_9(__VA_ARGS__)
#define FI_OPERANDS_11(a, ...) FI_OPERAND(11, a), FI_OPERANDS_10(__VA_ARGS__)
#define FI_OPERANDS_12(a, ...) FI_OPERAND(12, a), FI_OPERANDS_11(__VA_ARGS__)

#define FI_FORMAT_0  ""
#define FI_FORMAT_1  FI_FORMAT(1)
#define FI_FORMAT_2  FI_FORMAT(2) " " FI_FORMAT_1
#define FI_FORMAT_3  FI_FORMAT(3) " " FI_FORMAT_2
#define FI_FORMAT_4  FI_FORMAT(4) " " FI_FORMAT_3
#define FI_FORMAT_5  FI_FORMAT(5) " " FI_FORMAT_4
#define FI_FORMAT_6  FI_FORMAT(6) " " FI_FORMAT_5
#define FI_FORMAT_7  FI_FORMAT(7) " " FI_FORMAT_6
#define FI_FORMAT_8  FI_FORMAT(8) " " FI_FORMAT_7
#define FI_FORMAT_9  FI_FORMAT(9) " " FI_FORMAT_8
#define FI_FORMAT_10 FI_FORMAT(10) " " FI_FORMAT_9
#define FI_FORMAT_11 FI_FORMAT(11) " " FI_FORMAT_10
#define FI_FORMAT_12 FI_FORMAT(12) " " FI_FORMAT_11

/*
 * The note (version 3): address of the marker, of _.stapsdt.base (by which readers see that
 * addresses were shifted after linking), and of a semaphore; then three strings. "?" puts it into
 * the group of the function, so that a linker that drops one copy of an inline function drops its
 * notes, too.
 */
#define FI_NOTE(semaphore, provider, name, format)                                                 \
	".pushsection .note.stapsdt,\"?\",\"note\"\n"                                              \
	"\t.balign 4\n"                                                                            \
	"\t.4byte 992f-991f, 994f-993f, 3\n"                                                       \
	"991:\t.asciz \"stapsdt\"\n"                                                               \
	"992:\t.balign 4\n"                                                                        \
	"993:\t.8byte 990b\n"                                                                      \
	"\t.8byte _.stapsdt.base\n"                                                                \
	"\t.8byte " semaphore "\n"                                                                 \
	"\t.asciz \"" provider "\"\n"                                                              \
	"\t.asciz \"" name "\"\n"                                                                  \
	"\t.asciz \"" format "\"\n"                                                                \
	"994:\t.balign 4\n"                                                                        \
	".popsection\n"                                                                            \
	".ifndef _.stapsdt.base\n"                                                                 \
	".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"                    \
	"\t.weak _.stapsdt.base\n"                                                                 \
	"\t.hidden _.stapsdt.base\n"                                                               \
	"_.stapsdt.base:\t.space 1\n"                                                              \
	"\t.size _.stapsdt.base, 1\n"                                                              \
	".popsection\n"                                                                            \
	".endif\n"

#define FI_MARK(semaphore, provider, name, n, operands)                                            \
	do {                                                                                       \
		__asm__ __volatile__(                                                              \
			"990:\t" FI_MARKER_CODE FI_NOTE(semaphore, FI_STRING(provider),            \
							FI_STRING(name), FI_FORMAT_##n)            \
			: /* nothing is changed */                                                 \
			: FI_OPERANDS_##n operands);                                               \
	} while (0)

/* Of a name and its arguments: how many arguments. */
#define FI_COUNT_(a, b, c, d, e, f, g, h, i, j, k, l, m, count, ...) count
#define FI_COUNT(...)						     FI_COUNT_(__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, )
#define FI_MARK_N_(provider, name, n, ...)			     FI_MARK("0", provider, name, n, (__VA_ARGS__))
#define FI_MARK_N(provider, name, n, ...)			     FI_MARK_N_(provider, name, n, ##__VA_ARGS__)

/* FI_MARKER(provider, name, up to 12 arguments) - a marker. */
#define FI_MARKER(provider, ...)	   FI_MARKER_(FI_COUNT(__VA_ARGS__), provider, __VA_ARGS__)
#define FI_MARKER_(n, provider, name, ...) FI_MARK_N(provider, name, n, ##__VA_ARGS__)

#endif
