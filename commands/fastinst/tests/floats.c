/* SPDX-License-Identifier: MIT */
/*
 * Functions that print what they are given, as fastinst trace is to show it: floating point among
 * other arguments, and small structs, in C and C++.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define NOINLINE __attribute__((noinline))

struct two {
	int a, b;
};

struct point {
	double x;
	float y;
};

struct floats {
	float a, b;
};

struct mixed {
	double d;
	long l;
};

struct both {
	float f;
	int i;
};

struct bits {
	unsigned a : 3;
	int b : 7;
	unsigned char c;
	double d;
};

struct nested {
	struct floats f;
	short s[2];
};

struct pair {
	long a, b;
};

union either {
	int i;
	double d;
};

struct __attribute__((packed)) packed {
	char c;
	double d;
};

struct wide {
	long double l;
};

#ifdef __cplusplus
struct base {
	int first;
};

struct derived : base {
	static int none;
	float second;
};

struct copied {
	int number;
	explicit copied(int n) : number(n)
	{
	}
	copied(const copied &other) : number(other.number)
	{
	}
};

/* Each is handed over as a pointer. */
struct part {
	copied inside;
};

struct with_table {
	int number;
	virtual int get()
	{
		return number;
	}
};

template <class T> struct moved {
	T value;
	explicit moved(T t) : value(t)
	{
	}
	moved(moved &&other) : value(other.value)
	{
	}
};

struct ended {
	long big[3];
	~ended()
	{
		big[0] = 0;
	}
};

/* These are not. */
struct plain {
	float value;
	explicit plain(float f) : value(f)
	{
	}
	plain(const plain &other) = default;
	plain(copied &other) : value((float)other.number)
	{
	}
	plain &operator=(const plain &other);
};

struct nothing {
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

NOINLINE double ordered(float a, double b, int c, float d)
{
	say("ordered(a=%g, b=%g, c=%d, d=%g)", (double)a, b, c, (double)d);
	return (double)a + b;
}

NOINLINE float small(struct two t, struct point p, struct floats f, struct mixed m, struct both o,
		     struct bits b)
{
	say("small(t.a=%d, t.b=%d, p.x=%g, p.y=%g, f.a=%g, f.b=%g, m.d=%g, m.l=%ld, o.f=%g, "
	    "o.i=%d, "
	    "b.a=%d, b.b=%d, b.c=%d, b.d=%g)",
	    t.a, t.b, p.x, (double)p.y, (double)f.a, (double)f.b, m.d, m.l, (double)o.f, o.i,
	    (int)b.a, (int)b.b, b.c, b.d);
	return f.a;
}

NOINLINE int inside(struct nested n, union either e, struct packed p, struct wide w, double last)
{
	say("inside(n.f.a=%g, n.f.b=%g, n.s=[%d, %d], e.i=%d, e.d=%g, p.c=%d, p.d=%g, w.l=%Lg, "
	    "last=%g)",
	    (double)n.f.a, (double)n.f.b, n.s[0], n.s[1], e.i, e.d, p.c, p.d, w.l, last);
	return n.s[0] + e.i + p.c + (int)w.l;
}

NOINLINE double many(double a, double b, double c, double d, double e, double f, double g, double h,
		     double i, int j)
{
	say("many(a=%g, b=%g, c=%g, d=%g, e=%g, f=%g, g=%g, h=%g, i=%g, j=%d)", a, b, c, d, e, f, g,
	    h, i, j);
	return i;
}

/* One register is left for the pair, which takes two or none: what comes behind it has that one. */
NOINLINE long full(long a, long b, long c, long d, long e, struct pair f, long g, struct mixed h,
		   double i)
{
	say("full(a=%ld, b=%ld, c=%ld, d=%ld, e=%ld, f.a=%ld, f.b=%ld, g=%ld, h.d=%g, h.l=%ld, "
	    "i=%g)",
	    a, b, c, d, e, f.a, f.b, g, h.d, h.l, i);
	return f.a + h.l;
}

NOINLINE double odd(_Complex float c, _Complex double d, long double e, __int128 f, int last)
{
	say("odd(c.real=%g, c.imag=%g, d.real=%g, d.imag=%g, e=%Lg, f=%d, last=%d)",
	    (double)__real__ c, (double)__imag__ c, __real__ d, __imag__ d, e, (int)f, last);
	return (double)e + (double)f;
}

NOINLINE struct point gives(double v, int w)
{
	const struct point p = { v, (float)w };

	say("gives(v=%g, w=%d)", v, w);
	return p;
}

NOINLINE struct wide widens(int a)
{
	const struct wide w = { (long double)a };

	say("widens(a=%d)", a);
	return w;
}

NOINLINE int counts(int n, ...)
{
	say("counts(n=%d, ...)", n);
	return n;
}

#ifdef __cplusplus
NOINLINE float inherits(derived d, nothing e, double x)
{
	(void)e;
	say("inherits(d.first=%d, d.second=%g, e=?, x=%g)", d.first, (double)d.second, x);
	return d.second;
}

NOINLINE long pointers(copied a, part b, with_table c, moved<float> d, ended e, int f, double g)
{
	say("pointers(a=PTR, b=PTR, c=PTR, d=PTR, e=PTR, f=%d, g=%g)", f, g);
	return a.number + b.inside.number + c.get() + (int)d.value + e.big[2];
}

NOINLINE copied gets(int a, plain b)
{
	say("gets(a=%d, b.value=%g)", a, (double)b.value);
	return copied(a);
}
#endif

#ifdef __cplusplus
}
#endif

int main(void)
{
	const struct two two = { 1, -2 };
	const struct point point = { 1.5, 2.25f };
	const struct floats floats = { 0.1f, -0.2f };
	const struct mixed mixed = { 1e300, -7 };
	const struct both both = { 3.5f, 9 };
	const struct bits bits = { 5, -3, 200, 0.1 };
	const struct nested nested = { { 1.25f, 2.5f }, { 3, -4 } };
	const struct packed packed = { 1, 2 };
	const struct wide wide = { 3 };
	const struct pair pair = { 1, 2 };
	union either either;
	_Complex float narrow;
	_Complex double broad;
	volatile double sum = 0;

	either.d = 4;
	__real__ narrow = 1;
	__imag__ narrow = 2;
	__real__ broad = 3;
	__imag__ broad = -4;
	sum += ordered(0.1f, 0.1, -3, 1e30f) + ordered(INFINITY, -0.0, 0, -0.0f);
	for (int i = 0; i < 100; i++)
		sum += ordered((float)i / 8, i * 0.5, i, (float)-i);
	sum += (double)small(two, point, floats, mixed, both, bits);
	sum += inside(nested, either, packed, wide, 6.5);
	sum += many(1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
	sum += (double)full(1, 2, 3, 4, 5, pair, 7, mixed, 9);
	sum += odd(narrow, broad, 5, 6, 7);
	sum += gives(0.3, 4).x + (double)widens(3).l + counts(2, 1.5);
#ifdef __cplusplus
	struct derived derived;
	derived.first = 4;
	derived.second = 0.25f;
	sum += (double)inherits(derived, nothing(), 0.75);
	part part = { copied(1) };
	sum += (double)pointers(copied(3), part, with_table(), moved<float>(2), ended(), 6, 7.5);
	sum += gets(4, plain(0.5f)).number;
#endif
	return sum == 0;
}
