/* SPDX-License-Identifier: MIT */
/*
 * Prices of options by the formula of Black and Scholes, by several threads that share nothing.
 *
 * usage: blackscholes THREADS OPTIONS ROUNDS
 */
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS_MAX 256

struct deal {
	double spot, strike, rate, volatility, years;
	int put;
	double price;
};

struct part {
	pthread_t thread;
	struct deal *first;
	long n, rounds;
};

static __attribute__((noinline)) double normal(double x)
{
	return erfc(-x * M_SQRT1_2) / 2;
}

static __attribute__((noinline)) double price(const struct deal *deal)
{
	double root = deal->volatility * sqrt(deal->years);
	double d1 = (log(deal->spot / deal->strike) +
		     (deal->rate + deal->volatility * deal->volatility / 2) * deal->years) /
		    root;
	double later = deal->strike * exp(-deal->rate * deal->years);

	if (deal->put)
		return later * normal(root - d1) - deal->spot * normal(-d1);
	return deal->spot * normal(d1) - later * normal(d1 - root);
}

static void *price_deals(void *data)
{
	struct part *part = data;

	for (long round = 0; round < part->rounds; round++)
		for (long i = 0; i < part->n; i++)
			part->first[i].price = price(&part->first[i]);
	return NULL;
}

static uint32_t draw_number(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static void fill_deals(struct deal *deals, long n)
{
	uint32_t state = 1;

	for (long i = 0; i < n; i++)
		deals[i] = (struct deal){
			.spot = 20 + draw_number(&state) % 100,
			.strike = 20 + draw_number(&state) % 100,
			.rate = (1 + draw_number(&state) % 10) / 100.,
			.volatility = (5 + draw_number(&state) % 60) / 100.,
			.years = (1 + draw_number(&state) % 40) / 10.,
			.put = (int)(draw_number(&state) % 2),
		};
}

static int run_deals(struct deal *deals, long threads, long n, long rounds)
{
	static struct part part[THREADS_MAX];

	for (long t = 0; t < threads; t++) {
		long first = n * t / threads;

		part[t].first = deals + first;
		part[t].n = n * (t + 1) / threads - first;
		part[t].rounds = rounds;
		if (pthread_create(&part[t].thread, NULL, price_deals, &part[t]))
			return -1;
	}
	for (long t = 0; t < threads; t++)
		pthread_join(part[t].thread, NULL);
	return 0;
}

int main(int argc, char **argv)
{
	long threads = argc == 4 ? strtol(argv[1], NULL, 10) : 0;
	long n = argc == 4 ? strtol(argv[2], NULL, 10) : 0;
	long rounds = argc == 4 ? strtol(argv[3], NULL, 10) : 0;
	struct deal *deals;

	if (threads < 1 || threads > THREADS_MAX || n < 1 || n > 10000000 || rounds < 1) {
		fprintf(stderr, "usage: blackscholes THREADS OPTIONS ROUNDS\n");
		return 64;
	}
	deals = calloc((size_t)n, sizeof(*deals));
	if (!deals)
		return 1;
	fill_deals(deals, n);
	if (run_deals(deals, threads, n, rounds) < 0) {
		fprintf(stderr, "blackscholes: no more threads\n");
		return 1;
	}
	for (long i = 0; i < n; i++)
		printf("%.17g\n", deals[i].price);
	free(deals);
	return 0;
}
