/* SPDX-License-Identifier: MIT */
/* Functions with one compare each; test_compares.sh compiles them with trace-cmp. */
#include <stdint.h>

int same1(int8_t a, int8_t b);
int same2(int16_t a, int16_t b);
int same4(int32_t a, int32_t b);
int same8(int64_t a, int64_t b);
int is1(int8_t a);
int is2(int16_t a);
int is4(int32_t a);
int is8(int64_t a);
int same_float(float a, float b);
int same_double(double a, double b);
int chosen4(int32_t a);
int chosen8(int64_t a);

int same1(int8_t a, int8_t b)
{
	return a == b;
}

int same2(int16_t a, int16_t b)
{
	return a == b;
}

int same4(int32_t a, int32_t b)
{
	return a == b;
}

int same8(int64_t a, int64_t b)
{
	return a == b;
}

int is1(int8_t a)
{
	return a == 100;
}

int is2(int16_t a)
{
	return a == 10000;
}

int is4(int32_t a)
{
	return a == 1000000000;
}

int is8(int64_t a)
{
	return a == 1000000000000000000;
}

int same_float(float a, float b)
{
	return a == b;
}

int same_double(double a, double b)
{
	return a == b;
}

int chosen4(int32_t a)
{
	switch (a) {
	case -2:
		return same4(a, 1);
	case 1000:
		return 7;
	case 100000:
		return is4(a);
	default:
		return 3;
	}
}

int chosen8(int64_t a)
{
	switch (a) {
	case -2:
		return same8(a, 1);
	case 1000:
		return 7;
	case 100000:
		return is8(a);
	default:
		return 3;
	}
}
