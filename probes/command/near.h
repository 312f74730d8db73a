/* SPDX-License-Identifier: MIT */
/* Names that a pattern without a match may mean: they contain its letters, with a few errors. */
#ifndef PROBES_COMMAND_NEAR_H
#define PROBES_COMMAND_NEAR_H

#include <stddef.h>

#define NEAR_NAMES   3
#define NEAR_LETTERS 64

struct near {
	const char *pattern;
	char letter[NEAR_LETTERS]; /* of its function */
	unsigned letters;
	struct near_name {
		char *text;
		size_t distance;
	} name[NEAR_NAMES]; /* the nearest first */
	size_t n;
};

/* near_begin - look for that pattern, which stays where it is. */
void near_begin(struct near *near, const char *pattern);

/* near_look - at the name of a function that has a probe. */
void near_look(struct near *near, const char *function);

/* near_tell - complain that nothing matches there, and of what is near. Frees all. */
void near_tell(struct near *near, const char *where);

#endif
