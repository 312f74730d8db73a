/* SPDX-License-Identifier: MIT */
/*
 * Functions that print what they are given, and what they return, as fastinst trace is to show it:
 * arguments on the stack, large structs, arrays, unions, and numbers of 128 bits, in C and C++.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#define NOINLINE __attribute__((noinline))

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 uwide;
typedef float four __attribute__((vector_size(16)));

enum color {
	RED = -1,
	GREEN = 5,
};

struct arrays {
	short s[3];
	char text[4];
	bool b[2];
	enum color c[1];
};

struct pairs {
	struct {
		float f;
		int i;
	} p[2];
};

struct square {
	signed char c[2][3];
};

struct names {
	const char *name[2];
};

struct flexible {
	int n;
	char text[];
};

union either {
	int i;
	double d;
	unsigned char b[2];
};

struct choice {
	int kind;
	union {
		float f;
		struct {
			short low, high;
		};
	};
	union either e;
};

struct large {
	const char *name;
	double d;
	unsigned a : 3;
	int b : 30;
	int c : 4;
	float f[3];
};

struct full {
	long l[8];
};

struct cut {
	int i[15];
	short s[3];
	char last;
};

struct texts {
	char text[100];
};

struct many {
	struct {
		char c;
	} s[3][3];
	int rest[30];
};

struct __attribute__((packed)) packed {
	char c;
	double d;
	short s[2];
};

struct __attribute__((packed)) spread {
	char c;
	wide w;
	unsigned long l : 60;
};

struct __attribute__((aligned(16))) aligned {
	int i;
};

struct __attribute__((aligned(32))) aligned32 {
	int i;
};

struct longs {
	long double l[2];
	wide w;
};

struct one {
	long double l;
};

struct point {
	double x;
	float y;
};

struct swapped {
	long l;
	double d;
};

struct string {
	const char *text;
	unsigned len;
};

#ifdef __cplusplus
struct base {
	long first;
};

struct derived : base {
	static int none;
	int second[4];
};

struct copied {
	long number[3];
	explicit copied(int n) : number()
	{
		number[0] = n;
	}
	copied(const copied &other) : number()
	{
		number[0] = other.number[0];
	}
};

struct nothing {
};

struct holder {
	nothing n;
	derived d;
};

struct method {
	long l;
};
#endif

#ifdef __cplusplus
extern "C" {
#endif

NOINLINE static void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

NOINLINE long narrow(long a, long b, long c, long d, long e, long f, signed char g, short h, bool i,
		     char j, unsigned k, enum color l, const char *m, unsigned char n)
{
	say("narrow(a=%ld, b=%ld, c=%ld, d=%ld, e=%ld, f=%ld, g=%d, h=%d, i=%s, j='%c', k=%u, "
	    "l=%d, m=\"%s\", n=%u)",
	    a, b, c, d, e, f, g, h, i ? "true" : "false", j, k, (int)l, m, (unsigned)n);
	say("< narrow = %ld", a + g);
	return a + g;
}

NOINLINE float floats(double a, double b, double c, double d, double e, double f, double g, float h,
		      float i, double j, int k, four l, int m, float n)
{
	say("floats(a=%g, b=%g, c=%g, d=%g, e=%g, f=%g, g=%g, h=%g, i=%g, j=%g, k=%d, l=?, m=%d, "
	    "n=%g)",
	    a, b, c, d, e, f, g, (double)h, (double)i, j, k, m, (double)n);
	say("< floats = %g", (double)(i + l[0]));
	return i + l[0];
}

NOINLINE long double long_doubles(long double a, int b, int c, int d, int e, int f, int g, int h,
				  long double i, _Complex long double j, int k)
{
	say("long_doubles(a=%.20Lg, b=%d, c=%d, d=%d, e=%d, f=%d, g=%d, h=%d, i=%Lg, j.real=%Lg, "
	    "j.imag=%Lg, k=%d)",
	    a, b, c, d, e, f, g, h, i, __real__ j, __imag__ j, k);
	say("< long_doubles");
	return a + i;
}

/* The last register holds no half of one. */
NOINLINE wide wides(wide a, int b, uwide c, int d, wide e, int f, int g, wide h)
{
	say("wides(a=-18446744073709551617, b=%d, c=340282366920938463463374607431768211455, d=%d, "
	    "e=%ld, f=%d, g=%d, h=-170141183460469231731687303715884105728)",
	    b, d, (long)e, f, g);
	say("< wides = -18446744073709551617");
	return h == (wide)((uwide)1 << 127) && ~c == 0 ? a : 0;
}

/* Where they are is not the same with each compiler, or not told. */
NOINLINE int split(int a, int b, int c, int d, int e, wide f)
{
	say("split(a=%d, b=%d, c=%d, d=%d, e=%d, ...)", a, b, c, d, e);
	say("< split = %d", (int)f);
	return (int)f;
}

NOINLINE int between(int a, int b, int c, int d, int e, int f, int g, wide h, int i)
{
	say("between(a=%d, b=%d, c=%d, d=%d, e=%d, f=%d, g=%d, ...)", a, b, c, d, e, f, g);
	say("< between = %d", (int)h + i);
	return (int)h + i;
}

NOINLINE int maybe_packed(int a, int b, int c, int d, int e, int f, int g, struct one h)
{
	say("maybe_packed(a=%d, b=%d, c=%d, d=%d, e=%d, f=%d, g=%d, ...)", a, b, c, d, e, f, g);
	say("< maybe_packed = %d", (int)h.l);
	return (int)h.l;
}

NOINLINE int flexible(int a, struct flexible b)
{
	say("flexible(a=%d, ...)", a);
	say("< flexible = %d", b.n);
	return b.n;
}

NOINLINE struct arrays in_arrays(struct arrays a, struct pairs p, struct square s, struct names n,
				 int last)
{
	say("in_arrays(a.s=[%d, %d, %d], a.text=\"%.4s\", a.b=[%s, %s], a.c=[%d], p.p[0].f=%g, "
	    "p.p[0].i=%d, p.p[1].f=%g, p.p[1].i=%d, s.c=[%d, %d, %d, %d, %d, %d], "
	    "n.name=[\"%s\", \"%s\"], last=%d)",
	    a.s[0], a.s[1], a.s[2], a.text, a.b[0] ? "true" : "false", a.b[1] ? "true" : "false",
	    (int)a.c[0], (double)p.p[0].f, p.p[0].i, (double)p.p[1].f, p.p[1].i, s.c[0][0],
	    s.c[0][1], s.c[0][2], s.c[1][0], s.c[1][1], s.c[1][2], n.name[0], n.name[1], last);
	say("< in_arrays = {s=[%d, %d, %d], text=\"%.4s\", b=[%s, %s], c=[%d]}", a.s[0], a.s[1],
	    a.s[2], a.text, a.b[0] ? "true" : "false", a.b[1] ? "true" : "false", (int)a.c[0]);
	return a;
}

NOINLINE struct choice unions(union either a, struct choice b, union either c)
{
	say("unions(a.i=%d, a.d=%g, a.b=[%d, %d], b.kind=%d, b.f=%g, b.low=%d, b.high=%d, "
	    "b.e.i=%d, "
	    "b.e.d=%g, b.e.b=[%d, %d], c.i=%d, c.d=%g, c.b=[%d, %d])",
	    a.i, a.d, a.b[0], a.b[1], b.kind, (double)b.f, b.low, b.high, b.e.i, b.e.d, b.e.b[0],
	    b.e.b[1], c.i, c.d, c.b[0], c.b[1]);
	say("< unions = {kind=%d, f=%g, low=%d, high=%d, e.i=%d, e.d=%g, e.b=[%d, %d]}", b.kind,
	    (double)b.f, b.low, b.high, b.e.i, b.e.d, b.e.b[0], b.e.b[1]);
	return b;
}

NOINLINE struct large large(struct large a, int b, struct full c)
{
	say("large(a.name=\"%s\", a.d=%g, a.a=%u, a.b=%d, a.c=%d, a.f=[%g, %g, %g], b=%d, "
	    "c.l=[%ld, %ld, %ld, %ld, %ld, %ld, %ld, %ld])",
	    a.name, a.d, (unsigned)a.a, a.b, a.c, (double)a.f[0], (double)a.f[1], (double)a.f[2], b,
	    c.l[0], c.l[1], c.l[2], c.l[3], c.l[4], c.l[5], c.l[6], c.l[7]);
	say("< large = {name=\"%s\", d=%g, a=%u, b=%d, c=%d, f=[%g, %g, %g]}", a.name, a.d,
	    (unsigned)a.a, a.b, a.c, (double)a.f[0], (double)a.f[1], (double)a.f[2]);
	return a;
}

NOINLINE struct cut larger(struct cut a, struct texts b)
{
	say("larger(a.i=[%d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d], a.s=[%d, "
	    "%d, ...], a=..., b.text=\"%.64s\"...)",
	    a.i[0], a.i[1], a.i[2], a.i[3], a.i[4], a.i[5], a.i[6], a.i[7], a.i[8], a.i[9], a.i[10],
	    a.i[11], a.i[12], a.i[13], a.i[14], a.s[0], a.s[1], b.text);
	say("< larger = {i=[%d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d], s=[%d, "
	    "%d, ...], ...}",
	    a.i[0], a.i[1], a.i[2], a.i[3], a.i[4], a.i[5], a.i[6], a.i[7], a.i[8], a.i[9], a.i[10],
	    a.i[11], a.i[12], a.i[13], a.i[14], a.s[0], a.s[1]);
	return a;
}

NOINLINE long unaligned(struct packed a, int b, struct spread c, struct aligned d, int e,
			struct aligned f)
{
	say("unaligned(a.c=%d, a.d=%g, a.s=[%d, %d], b=%d, c.c=%d, c.w=%ld, c.l=%lu, d.i=%d, e=%d, "
	    "f.i=%d)",
	    a.c, a.d, a.s[0], a.s[1], b, c.c, (long)c.w, (unsigned long)c.l, d.i, e, f.i);
	say("< unaligned = %d", e);
	return e;
}

NOINLINE struct packed apart(int a, struct full b, int c, int d, int e, int f, int g, int h,
			     struct aligned32 i, int j, struct aligned k, struct longs l)
{
	const struct packed result = { 'p', 0.5, { 3, 4 } };

	say("apart(a=%d, b.l=[%ld, %ld, %ld, %ld, %ld, %ld, %ld, %ld], c=%d, d=%d, e=%d, f=%d, "
	    "g=%d, h=%d, i.i=%d, j=%d, k.i=%d, l.l=[%Lg, %Lg], l.w=%ld)",
	    a, b.l[0], b.l[1], b.l[2], b.l[3], b.l[4], b.l[5], b.l[6], b.l[7], c, d, e, f, g, h,
	    i.i, j, k.i, l.l[0], l.l[1], (long)l.w);
	say("< apart = {c='p', d=0.5, s=[3, 4]}");
	return result;
}

/* More words than are taken along. */
NOINLINE int far(struct full a, struct full b, struct full c, struct full d, int e)
{
	const long *l = d.l;

	say("far(a.l=[%ld, 0, 0, 0, 0, 0, 0, 0], b.l=[%ld, 0, 0, 0, 0, 0, 0, 0], c.l=[%ld, 0, 0, "
	    "0, 0, 0, 0, 0], d.l=[%ld, %ld, %ld, %ld, %ld, %ld, %ld, %ld], e=%d)",
	    a.l[0], b.l[0], c.l[0], l[0], l[1], l[2], l[3], l[4], l[5], l[6], l[7], e);
	say("< far = 5");
	return 5;
}

NOINLINE int farther(int a, struct full b, struct full c, struct full d, struct point p,
		     struct texts e, int f)
{
	say("farther(a=%d, b.l=[%ld, 0, 0, 0, 0, 0, 0, 0], c.l=[%ld, 0, 0, 0, 0, 0, 0, 0], "
	    "d.l=[%ld, 0, 0, 0, 0, 0, 0, 0], p.x=%g, p.y=%g, e.text=\"%.64s\"..., f=%d)",
	    a, b.l[0], c.l[0], d.l[0], p.x, (double)p.y, e.text, f);
	say("< farther = 6");
	return 6;
}

NOINLINE int too_far(struct full a, struct texts b, struct full c, struct full d, long e, int f)
{
	say("too_far(a.l=[%ld, 0, 0, 0, 0, 0, 0, 0], b.text=\"%.64s\"..., c.l=[%ld, 0, 0, 0, 0, 0, "
	    "0, 0], d.l=?, e=%ld, f=%d)",
	    a.l[0], b.text, c.l[0], e, f);
	say("< too_far = %ld", d.l[0] + c.l[0]);
	return (int)(d.l[0] + c.l[0]);
}

NOINLINE long deeper(long a, long b, long c, long d, long e, long f, long g, const char *h, wide i)
{
	say("deeper(a=%ld, b=%ld, c=%ld, d=%ld, e=%ld, f=%ld, g=%ld, h=\"%s\", i=%ld)", a, b, c, d,
	    e, f, g, h, (long)i);
	say("< deeper = %ld", g);
	return g;
}

NOINLINE long returned(long l)
{
	say("returned(l=%ld)", l);
	say("< returned = %ld", l);
	return l;
}

NOINLINE struct point gives_point(double x)
{
	const struct point p = { x, 2.5f };

	say("gives_point(x=%g)", x);
	say("< gives_point = {x=%g, y=2.5}", x);
	return p;
}

NOINLINE struct swapped gives_swapped(long l, double d)
{
	const struct swapped s = { l, d };

	say("gives_swapped(l=%ld, d=%g)", l, d);
	say("< gives_swapped = {l=%ld, d=%g}", l, d);
	return s;
}

NOINLINE struct string gives_string(const char *text)
{
	const struct string s = { text, 7 };

	say("gives_string(text=\"%s\")", text);
	say("< gives_string = {text=\"%s\", len=7}", text);
	return s;
}

NOINLINE _Complex double gives_complex(double real)
{
	_Complex double c;

	__real__ c = real;
	__imag__ c = -real;
	say("gives_complex(real=%g)", real);
	say("< gives_complex = {real=%g, imag=%g}", real, -real);
	return c;
}

/* By a jump, if it was optimised: at its exit nothing is returned yet. */
NOINLINE long tails(long l)
{
	say("tails(l=%ld)", l);
	return returned(l + 1);
}

/* In a register of the x87. */
NOINLINE struct one gives_one(int i)
{
	const struct one o = { (long double)i };

	say("gives_one(i=%d)", i);
	say("< gives_one");
	return o;
}

NOINLINE struct longs gives_longs(int i)
{
	const struct longs l = { { 0.25L, 3 }, -i };

	say("gives_longs(i=%d)", i);
	say("< gives_longs = {l=[0.25, 3], w=%d}", -i);
	return l;
}

/* The pointer to the result takes the first of six registers. */
NOINLINE struct full gives_full(int a, int b, int c, int d, int e, int f)
{
	const struct full l = { { a, b, c, d, e, f, 7, 8 } };

	say("gives_full(a=%d, b=%d, c=%d, d=%d, e=%d, f=%d)", a, b, c, d, e, f);
	say("< gives_full = {l=[%d, %d, %d, %d, %d, %d, 7, 8]}", a, b, c, d, e, f);
	return l;
}

#ifdef __cplusplus
NOINLINE derived classes(int a, int b, int c, int d, int e, copied f, const copied &g, derived h,
			 copied i, holder j, nothing k, int l)
{
	(void)k;
	say("classes(a=%d, b=%d, c=%d, d=%d, e=%d, f=PTR, g=PTR, h.first=%ld, h.second=[%d, %d, "
	    "%d, %d], i=PTR, j.n=?, j.d.first=%ld, j.d.second=[%d, 0, 0, 0], k=?, l=%d)",
	    a, b, c, d, e, h.first, h.second[0], h.second[1], h.second[2], h.second[3], j.d.first,
	    j.d.second[0], l);
	say("< classes = {first=%ld, second=[%d, %d, %d, %d]}", h.first, h.second[0], h.second[1],
	    h.second[2], h.second[3]);
	h.first += (f.number[0] + g.number[0] + i.number[0]) * (l == 1000);
	return h;
}

/* Like a struct, but a pointer to it is told, as at its entry. */
NOINLINE copied gives_copied(int n)
{
	say("gives_copied(n=%d)", n);
	say("< gives_copied = PTR");
	return copied(n);
}
#endif

#ifdef __cplusplus
}
#endif

static void call_large(void)
{
	const struct large large_one = { "large", 1e300, 5, -400000000, -8, { 0.5f, 1, -2 } };
	const struct full full = { { 1, -2, 3, -4, 5, -6, 7, -8 } };
	const struct full nine = { { 9 } }, eight = { { 8 } };
	const struct cut cut = { { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, -15 },
				 { -1, 2, 3 },
				 4 };
	const struct texts texts = { "sixty-four bytes and more: the text goes on, and on, "
				     "and on, until it ends" };
	const struct packed packed = { 1, -0.5, { 2, -3 } };
	const struct spread spread = { 7, -8, (1UL << 60) - 3 };
	const struct aligned aligned = { 4 }, other = { 6 };
	const struct aligned32 aligned32 = { 32 };
	const struct longs longs = { { 0.1L, -3 }, -9 };
	const struct point point = { 0.1, 0.2f };

	large(large_one, 3, full);
	larger(cut, texts);
	unaligned(packed, 2, spread, aligned, 5, other);
	apart(1, full, 3, 4, 5, 6, 7, 8, aligned32, 10, aligned, longs);
	far(nine, eight, nine, full, 5);
	farther(1, nine, eight, nine, point, texts, 6);
	too_far(nine, texts, eight, nine, -5, 6);
}

static void call_small(void)
{
	const struct arrays arrays = { { 1, -2, 3 }, "abc", { true, false }, { GREEN } };
	const struct pairs pairs = { { { 0.5f, 1 }, { 1.5f, -2 } } };
	const struct square square = { { { 1, 2, 3 }, { -4, -5, -6 } } };
	const struct names names = { { "first", "second" } };
	const struct flexible flexible_one = { .n = 9 };
	union either either;
	struct choice choice;

	either.d = 2.25;
	choice.kind = 3;
	choice.f = 1.5f;
	choice.e.d = -0.1;
	in_arrays(arrays, pairs, square, names, 9);
	flexible(3, flexible_one);
	unions(either, choice, either);
}

/* So many bytes further down, 16 at a time: over the edge of a page, too. */
NOINLINE static long call_deeper(size_t bytes)
{
	volatile char *room = (volatile char *)__builtin_alloca(bytes + 1);

	room[bytes] = 1;
	return deeper(1, 2, 3, 4, 5, 6, (long)bytes, "text", -(wide)bytes) + room[bytes];
}

int main(void)
{
	const four vector = { 1, 2, 3, 4 };
	const struct one one = { 8 };
	_Complex long double c;

	__real__ c = 1.5L;
	__imag__ c = -1e4000L;
	narrow(1, 2, 3, 4, 5, 6, -7, -8, true, 'j', 4000000000u, RED, "text", 200);
	floats(1, 2, 3, 4, 5, 6, 7, 8.5f, 9.5f, 0.1, 11, vector, -13, 0.1f);
	long_doubles(1 / 3.0L, 2, 3, 4, 5, 6, 7, 8, -0.1L, c, 11);
	wides(-(wide)((uwide)1 << 64) - 1, 2, ~(uwide)0, 4, 5, 6, -7, (wide)((uwide)1 << 127));
	split(1, 2, 3, 4, 5, 6);
	between(1, 2, 3, 4, 5, 6, 7, 8, 9);
	maybe_packed(1, 2, 3, 4, 5, 6, 7, one);
	call_small();
	call_large();
	for (size_t bytes = 0; bytes < 4096 + 256; bytes += 16)
		call_deeper(bytes);
	gives_point(0.1);
	gives_swapped(-4, 0.3);
	gives_string("string");
	gives_complex(1.25);
	tails(6);
	gives_one(4);
	gives_longs(5);
	gives_full(1, 2, 3, 4, 5, 6);
#ifdef __cplusplus
	derived d;
	holder h;
	d.first = 7;
	for (int i = 0; i < 4; i++)
		d.second[i] = i - 1;
	h.d = d;
	h.d.second[0] = h.d.second[1] = h.d.second[2] = h.d.second[3] = 0;
	classes(1, 2, 3, 4, 5, copied(6), copied(7), d, copied(9), h, nothing(), 12);
	gives_copied(3);
#endif
	return 0;
}
