/* SPDX-License-Identifier: MIT */
/*
 * usage: simulate FOLDER MACHINES [HOURS [here]]
 *
 * Writes a store of evidence for each of so many machines: five are marginal, and a third of the
 * third kind gets a bad microcode at half time. here: all are of this machine's kind, tested at
 * every placement, and none is marginal.
 */
#include <stdlib.h>
#include <sys/stat.h>

#include "fleet/tests/world.h"

#define MARGINAL 5u
#define HOURS	 12u

static int write_machine(struct world *w, const char *folder, unsigned i, unsigned machines)
{
	unsigned nth = i / (machines / MARGINAL);
	bool odd = i % (machines / MARGINAL) == nth && nth < MARGINAL;
	bool updated = i % 9 == 2;
	char path[256];
	int ret = 0;

	odd &= !w->here;
	snprintf(path, sizeof(path), "%s/%s-%u.evidence", folder, odd ? "marginal" : "node", i);
	for (unsigned day = 0; day < w->hours && ret == 0; day++) {
		struct evidence_run run =
			world_hour(w, i % WORLD_KINDS, updated && day >= w->hours / 2,
				   odd ? WORLD_MARGINAL : 1, day);

		ret = evidence_append(path, &run);
		sums_free(&run.sums);
	}
	return ret;
}

int main(int argc, char **argv)
{
	struct world world = { .hours = HOURS, .unevenness = 0.8, .storms = 0.15 };
	unsigned machines = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
	int ret = 0;

	if (machines < MARGINAL)
		return 64;
	if (argc > 3)
		world.hours = (unsigned)atoi(argv[3]);
	world.here = argc > 4;
	mkdir(argv[1], 0777);
	world.rng = gsl_rng_alloc(gsl_rng_taus);
	for (unsigned i = 0; i < machines && ret == 0; i++)
		ret = write_machine(&world, argv[1], i, machines);
	gsl_rng_free(world.rng);
	return ret < 0;
}
