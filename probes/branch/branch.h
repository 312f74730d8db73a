/* SPDX-License-Identifier: MIT */
/*
 * The provider of static branches and static calls. They are no probes: they have no ids, and what
 * turns on all probes of a program leaves them alone.
 */
#ifndef PROBES_BRANCH_BRANCH_H
#define PROBES_BRANCH_BRANCH_H

#include "probes/core/core.h"
#include "probes/elf/elf.h"

#define BRANCH_LEN     5
#define BRANCH_DAMAGED "its entry points outside the code"

struct entry;

extern const struct provider branch_provider;

/* branch_refusal - why the site of an entry cannot be changed, or NULL. */
const char *branch_refusal(const struct object *object, const struct entry *entry);

/*
 * branch_describe - have a function fill in states, max of them, and count all, in n. How many
 * there are; -EINVAL, -ESHUTDOWN.
 */
struct branch_list {
	void *states;
	size_t max, n;
};
long branch_describe(int (*describe)(void *list), void *states, size_t max);

/* Of the calls of an object: see struct provider. */
int call_discover(struct object *object, const struct elf *elf);
bool calls_stand(const struct object *object);

#endif
