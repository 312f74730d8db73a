/* SPDX-License-Identifier: MIT */
/*
 * Which CPU do the cells that failed have in common? Pure.
 */
#ifndef CONFORM_SUSPECTS_H
#define CONFORM_SUSPECTS_H

#include <stdbool.h>
#include <stddef.h>

#define SUSPECTS_MAX   8
#define SUSPECT_CHANCE 0.01 /* that some CPU is named that has no part in it */

struct tried_pair {
	unsigned writer, executor; /* by index */
	bool failed;
};

enum role {
	ROLE_EITHER,
	ROLE_WRITER,
	ROLE_EXECUTOR,
	ROLES
};

struct suspect {
	unsigned cpu; /* by index */
	enum role role;
	unsigned cells, failed; /* that it had that role in */
	double chance; /* of so many, or more, if failures fell on cells at random: for all CPUs and
			  roles together */
};

/*
 * suspects_find - the CPUs that stand out, the most striking first. When one is named, its cells
 * accuse no other. Returns how many; two with the same chance are not told apart, and both named.
 * If all cells fail, or too few, none stands out. -ENOMEM.
 */
int suspects_find(const struct tried_pair *pairs, size_t count, unsigned cpus,
		  struct suspect suspects[SUSPECTS_MAX]);

const char *role_name(enum role role); /* "as either", ... */

#endif
