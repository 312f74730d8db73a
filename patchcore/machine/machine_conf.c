/* SPDX-License-Identifier: MIT */
#include "patchcore/machine/machine_conf.h"

double machine_conf_p(const struct machine_conf_level *level)
{
	return level->line.upper_p > level->page.upper_p ? level->line.upper_p
							 : level->page.upper_p;
}

const struct machine_conf_level *machine_conf_surest(const struct machine_conf *conf)
{
	const struct machine_conf_level *surest = &conf->level[0];

	for (unsigned i = 1; i < conf->levels; i++)
		if (machine_conf_p(&conf->level[i]) < machine_conf_p(surest))
			surest = &conf->level[i];
	return surest;
}
