/* SPDX-License-Identifier: MIT */
#include "patchcore/machine/choice.h"

#include <stdatomic.h>
#include <stdlib.h>

static struct pc_choice *choices;

/* The process's own. NULL before pc_init() and after pc_fini(). Release; patchers acquire. */
static _Atomic(struct pc_choice *) current;

struct pc_choice *choice_get(const struct facts *facts, unsigned learned, enum pc_policy policy,
			     double accept_p)
{
	struct pc_choice *choice = choices;

	while (choice && (choice->learned != learned || choice->asked != policy ||
			  choice->accept_p != accept_p))
		choice = choice->next;
	if (choice)
		return choice;
	choice = calloc(1, sizeof(*choice));
	if (!choice)
		return NULL;
	choice->learned = learned;
	choice->asked = policy;
	choice->accept_p = accept_p;
	policy_choose(facts, policy, accept_p, &choice->syncs, choice->reason,
		      sizeof(choice->reason));
	choice->next = choices;
	choices = choice;
	return choice;
}

void choice_use(struct pc_choice *choice)
{
	atomic_store_explicit(&current, choice, memory_order_release);
}

const struct pc_choice *choice_in_use(void)
{
	return atomic_load_explicit(&current, memory_order_relaxed);
}

const struct sync *choice_sync_of(const struct pc_choice *choice)
{
	const struct pc_choice *own = atomic_load_explicit(&current, memory_order_acquire);

	if (!own)
		return NULL;
	return choice ? &choice->syncs.page : &own->syncs.page;
}

const struct sync *choice_sync(void)
{
	return choice_sync_of(NULL);
}
