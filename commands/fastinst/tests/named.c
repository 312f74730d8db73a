/* SPDX-License-Identifier: MIT */
/* named [SECONDS] - functions with names as C++ and Rust make them, each called ten times. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FUNCTION(name, symbol)                                                                     \
	int name(int x) __asm__(symbol);                                                           \
	__attribute__((noinline)) int name(int x)                                                  \
	{                                                                                          \
		return x + 1;                                                                      \
	}

FUNCTION(add_int, "_ZN4shop4Cart3addEi")
FUNCTION(add_text, "_ZN4shop4Cart3addEiPKc")
FUNCTION(at, "_ZN4shop4CartixEi")
FUNCTION(total, "_RNvNtC7mycrate4cart5total")
FUNCTION(render, "_ZN7mycrate4cart6render17h0123456789abcdefE")
FUNCTION(plain, "plain")
FUNCTION(broken, "_ZN4shop")
int elsewhere(int x);

static int call_all(void)
{
	int sum = 0;

	for (int i = 0; i < 10; i++)
		sum += add_int(i) + add_text(i) + at(i) + total(i) + render(i) + plain(i) +
		       broken(i) + elsewhere(i);
	return sum;
}

int main(int argc, char **argv)
{
	int left = argc > 1 ? atoi(argv[1]) * 20 : 0, sum = call_all();

	if (left) {
		puts("ready");
		fflush(stdout);
	}
	for (; left > 0; left--) {
		usleep(50000);
		sum += call_all();
	}
	printf("%d\n", sum);
	return 0;
}
