/* SPDX-License-Identifier: MIT */
/*
 * The same of C++. Compiled with OTHER_FILE it is the other file, which has what the first one only
 * declares.
 */
#include <utility>

#include "tell.h"

#define FUNCTION __attribute__((noinline))

struct elsewhere {
	long value;

	elsewhere(long);
};

#ifdef OTHER_FILE
elsewhere::elsewhere(long value) : value(value)
{
}
#else

struct holder {
	elsewhere homing_part;
	double homing_more;
};

struct base {
	int first = 5;
};

struct middle : virtual base {
	int second = 6;

	FUNCTION ~middle();
};

struct last : middle {
	int third = 7;
};

struct defaulted {
	long value;
	double more;

	defaulted(long value, double more) : value(value), more(more)
	{
	}
	defaulted(const defaulted &) = default;
};

static volatile long sink;

middle::~middle()
{
	sink = second;
}

template <class... Some> FUNCTION void packed(Some... packed_a, int packed_b)
{
	sink = packed_b + (0 + ... + packed_a);
}

FUNCTION void homing(holder homing_a, long homing_b, double homing_c)
{
	sink = homing_a.homing_part.value + homing_b + (long)homing_c;
}

FUNCTION void paired(std::pair<int, double> paired_a, int paired_b)
{
	sink = paired_a.first + (long)paired_a.second + paired_b;
}

FUNCTION void by_default(defaulted by_default_a, int by_default_b)
{
	sink = by_default_a.value + (long)by_default_a.more + by_default_b;
}

int main(int argc, char **)
{
	int n = argc;

	tell("packed packed_a=* packed_b=%d", n + 2);
	packed<int, int>(1, 2, n + 2);
	tell("homing homing_a.homing_part.value=%d homing_a.homing_more=1.5 homing_b=%d "
	     "homing_c=2.5",
	     n + 40, n + 6);
	homing({ elsewhere(n + 40), 1.5 }, n + 6, 2.5);
	tell("paired paired_a.first=%d paired_a.second=4.5 paired_b=%d", n + 2, n + 3);
	paired({ n + 2, 4.5 }, n + 3);
	tell("by_default by_default_a.value=%d by_default_a.more=1.5 by_default_b=%d", n, n + 4);
	by_default(defaulted(n, 1.5), n + 4);
	{
		struct last last;

		/* Those of last, and of middle as a part of it. */
		tell("last this=* vtt=* __in_chrg=none __vtt_parm=*");
		sink = last.third;
	}
	return 0;
}
#endif
