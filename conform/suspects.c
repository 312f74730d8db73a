/* SPDX-License-Identifier: MIT */
#include "conform/rounds.h"

#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <stdlib.h>

struct cell_count {
	unsigned cells, failed;
};

static bool has_role(const struct tried_pair *p, unsigned cpu, enum role role)
{
	return (role != ROLE_EXECUTOR && p->writer == cpu) ||
	       (role != ROLE_WRITER && p->executor == cpu);
}

/* What each CPU had a part in; gone: cells of CPUs that are named already. */
static struct cell_count count_parts(const struct tried_pair *pairs, const bool *gone, size_t count,
				     struct cell_count *parts)
{
	struct cell_count all = { 0 };

	for (size_t i = 0; i < count; i++) {
		const struct tried_pair *p = &pairs[i];

		if (gone[i])
			continue;
		all.cells++;
		all.failed += p->failed;
		for (int role = 0; role < ROLES; role++) {
			for (int side = 0; side < 2; side++) {
				unsigned cpu = side ? p->executor : p->writer;

				if ((side && p->executor == p->writer) ||
				    !has_role(p, cpu, (enum role)role))
					continue;
				parts[cpu * ROLES + role].cells++;
				parts[cpu * ROLES + role].failed += p->failed;
			}
		}
	}
	return all;
}

/* Drawing its cells from all: at least so many of the failed ones. */
static double chance_of(const struct cell_count *part, const struct cell_count *all)
{
	if (part->failed == 0)
		return 1;
	return gsl_cdf_hypergeometric_Q(part->failed - 1, all->failed, all->cells - all->failed,
					part->cells);
}

int suspects_find(const struct tried_pair *pairs, size_t count, unsigned cpus,
		  struct suspect suspects[SUSPECTS_MAX])
{
	const double looks = (double)cpus * ROLES;
	bool *gone = calloc(count + 1, sizeof(*gone));
	struct cell_count *parts = NULL;
	int named = 0, before = -1;
	double least;

	while (gone && named > before && named < SUSPECTS_MAX) {
		struct cell_count all;

		free(parts);
		parts = calloc((size_t)cpus * ROLES + 1, sizeof(*parts));
		if (!parts)
			break;
		all = count_parts(pairs, gone, count, parts);
		before = named;
		least = 1;
		for (unsigned i = 0; i < cpus * ROLES; i++) {
			double chance = chance_of(&parts[i], &all);

			least = chance < least ? chance : least;
		}
		for (unsigned i = 0; i < cpus * ROLES && least * looks < SUSPECT_CHANCE; i++) {
			const struct suspect s = { i / ROLES, (enum role)(i % ROLES),
						   parts[i].cells, parts[i].failed, least * looks };

			/* One that has but one role is named once. */
			if (named == SUSPECTS_MAX ||
			    chance_of(&parts[i], &all) > least * (1 + 1e-9) ||
			    (named > before && suspects[named - 1].cpu == s.cpu))
				continue;
			suspects[named++] = s;
		}
		for (int k = before; k < named; k++)
			for (size_t i = 0; i < count; i++)
				gone[i] |= has_role(&pairs[i], suspects[k].cpu, suspects[k].role);
	}
	if (!gone || !parts)
		named = -ENOMEM;
	free(parts);
	free(gone);
	return named;
}

const char *role_name(enum role role)
{
	static const char *const names[ROLES] = {
		[ROLE_EITHER] = "either",
		[ROLE_WRITER] = "writer",
		[ROLE_EXECUTOR] = "executor",
	};

	return names[role];
}
