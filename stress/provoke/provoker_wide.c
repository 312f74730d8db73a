/* SPDX-License-Identifier: MIT */
#include "stress/provoke/provoker_work.h"

#include <immintrin.h>

#define STEPS 256 /* of eight independent chains: enough to fill the pipes */

__attribute__((target("avx512f"))) static void burst_512(void)
{
	const __m512d factor = _mm512_set1_pd(0.999), term = _mm512_set1_pd(0.001);
	__m512d sum[8];

#pragma GCC unroll 8
	for (unsigned k = 0; k < 8; k++)
		sum[k] = _mm512_set1_pd(k);
	for (unsigned i = 0; i < STEPS; i++) {
#pragma GCC unroll 8
		for (unsigned k = 0; k < 8; k++)
			sum[k] = _mm512_fmadd_pd(sum[k], factor, term);
	}
	__asm__ volatile("" : : "m"(sum));
}

__attribute__((target("avx2,fma"))) static void burst_256(void)
{
	const __m256d factor = _mm256_set1_pd(0.999), term = _mm256_set1_pd(0.001);
	__m256d sum[8];

#pragma GCC unroll 8
	for (unsigned k = 0; k < 8; k++)
		sum[k] = _mm256_set1_pd(k);
	for (unsigned i = 0; i < STEPS; i++) {
#pragma GCC unroll 8
		for (unsigned k = 0; k < 8; k++)
			sum[k] = _mm256_fmadd_pd(sum[k], factor, term);
	}
	__asm__ volatile("" : : "m"(sum));
}

bool wide_possible(void)
{
	return __builtin_cpu_supports("avx512f") ||
	       (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
}

void wide_burst(void)
{
	if (__builtin_cpu_supports("avx512f"))
		burst_512();
	else
		burst_256();
}
