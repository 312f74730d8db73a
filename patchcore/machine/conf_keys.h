/* SPDX-License-Identifier: MIT */
/*
 * The values of a config, each by itself. Private.
 */
#ifndef PATCHCORE_MACHINE_CONF_KEYS_H
#define PATCHCORE_MACHINE_CONF_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "patchcore/machine/machine_conf.h"

#define CONF_KEYS	15
#define CONF_LEVEL_KEYS 10

/* What the library must know, and from which schema on. */
struct conf_key {
	const char *section;
	const char *name;
	bool (*read)(struct machine_conf *conf, const char *value); /* false: it is not valid */
	unsigned since;
	bool any_length; /* inih would cut it */
};

extern const struct conf_key conf_keys[CONF_KEYS];

/* The same of a level, each of which has a section of its own; up to schema 3 one stands in [wait].
 */
struct conf_level_key {
	const char *name;
	bool (*read)(struct machine_conf_level *level, const char *value);
	const char *in_wait; /* its name there, or NULL */
	unsigned since;	     /* there */
};

extern const struct conf_level_key conf_level_keys[CONF_LEVEL_KEYS];

/* conf_number - digits and nothing else, from min to max. */
bool conf_number(const char *text, uint64_t min, uint64_t max, uint64_t *value);

#endif
