/* SPDX-License-Identifier: MIT */
/*
 * Planets by a symplectic integrator: a few small functions that are called often.
 *
 * usage: nbody STEPS
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define BODIES 5

struct vector {
	double x, y, z;
};

struct body {
	struct vector at, speed;
	double mass;
};

/* Astronomical units, days, masses of the sun times 4 pi^2 / 365.24^2. */
static struct body bodies[BODIES] = {
	{ { 0, 0, 0 }, { 0, 0, 0 }, 2.959e-4 },
	{ { 4.841, -1.160, -0.104 }, { 0.001660, 0.007699, -0.0000690 }, 2.825e-7 },
	{ { 8.343, 4.125, -0.4035 }, { -0.002767, 0.004999, 0.0000230 }, 8.459e-8 },
	{ { 12.894, -15.111, -0.2233 }, { 0.002965, 0.002378, -0.0000297 }, 1.292e-8 },
	{ { 15.380, -25.919, 0.1793 }, { 0.002681, 0.001628, -0.0000952 }, 1.524e-8 },
};

static __attribute__((noinline)) struct vector between(const struct body *a, const struct body *b)
{
	return (struct vector){ a->at.x - b->at.x, a->at.y - b->at.y, a->at.z - b->at.z };
}

static __attribute__((noinline)) double square(const struct vector *v)
{
	return v->x * v->x + v->y * v->y + v->z * v->z;
}

static __attribute__((noinline)) void pull(struct body *body, const struct vector *v, double force)
{
	body->speed.x += v->x * force;
	body->speed.y += v->y * force;
	body->speed.z += v->z * force;
}

static __attribute__((noinline)) void move_bodies(struct body *body, double days)
{
	body->at.x += body->speed.x * days;
	body->at.y += body->speed.y * days;
	body->at.z += body->speed.z * days;
}

static __attribute__((noinline)) void step_bodies(double days)
{
	for (int i = 0; i < BODIES; i++)
		for (int j = i + 1; j < BODIES; j++) {
			struct vector v = between(&bodies[i], &bodies[j]);
			double far = square(&v);
			double force = days / (far * sqrt(far));

			pull(&bodies[i], &v, -bodies[j].mass * force);
			pull(&bodies[j], &v, bodies[i].mass * force);
		}
	for (int i = 0; i < BODIES; i++)
		move_bodies(&bodies[i], days);
}

static __attribute__((noinline)) double energy(void)
{
	double sum = 0;

	for (int i = 0; i < BODIES; i++) {
		sum += bodies[i].mass * square(&bodies[i].speed) / 2;
		for (int j = i + 1; j < BODIES; j++) {
			struct vector v = between(&bodies[i], &bodies[j]);

			sum -= bodies[i].mass * bodies[j].mass / sqrt(square(&v));
		}
	}
	return sum;
}

int main(int argc, char **argv)
{
	long steps = argc == 2 ? strtol(argv[1], NULL, 10) : 0;

	if (steps < 1) {
		fprintf(stderr, "usage: nbody STEPS\n");
		return 64;
	}
	printf("%.17g\n", energy());
	for (long i = 0; i < steps; i++)
		step_bodies(0.01);
	printf("%.17g\n", energy());
	return 0;
}
