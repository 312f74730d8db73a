/* SPDX-License-Identifier: MIT */
/*
 * Which sync this machine allows. Private.
 */
#ifndef PATCHCORE_POLICY_H
#define PATCHCORE_POLICY_H

#include <stdbool.h>

#include "patchcore/machine_conf.h"
#include "patchcore/patchcore.h"
#include "patchcore/word.h"

/* What is known about the machine, after start-up never changed. */
struct facts {
	bool have_conf;	 /* valid, of this machine, and found to be usable */
	bool membarrier; /* SYNC_CORE registered */
	bool trap;	 /* SIGTRAP is ours, and INT3 raises it */
	struct machine_conf conf;
	char conf_path[256];
	char conf_reason[200]; /* why there is no config to use */
	char trap_reason[200]; /* why there is no trap to use */
};

/* facts_learn - find and check the config, register membarrier. */
void facts_learn(struct facts *facts);

/*
 * policy_choose - the sync to use for what the caller asked.
 *
 * sync->policy is AUTO when none is safe. reason says why in one line.
 */
void policy_choose(const struct facts *facts, enum pc_policy asked, double accept_p,
		   struct sync *sync, char *reason, size_t size);

#endif
