/* SPDX-License-Identifier: MIT */
/*
 * What the files of the core share.
 */
#ifndef PROBES_CORE_CORE_H
#define PROBES_CORE_CORE_H

#include <regex.h>

#include "probes/core/provider.h"
#include "probes/insn/effects.h"

/*
 * core_lock - the one lock: objects, probes, their code. -EDEADLK: the thread holds it. -ESHUTDOWN:
 * not between core_open() and core_close(). Executors never take it.
 */
int core_lock(void);
void core_unlock(void);
int core_open(void);
void core_close(void);

/* near_unload, block_unload - their memory goes: see fi_unload(). */
void near_unload(void);
void block_unload(void);

/* --- Under the lock --- */

/*
 * probe_is_anew - whether its bytes are not those that were left there, but such as a file that was
 * loaded anew may have. A breakpoint of a debugger is none.
 */
bool probe_is_anew(const struct probe *probe);

/* probes_found - how often one was added, also one that was there before. */
extern uint32_t probes_found __attribute__((visibility("hidden")));

/*
 * objects_look - list those that were loaded since, and mark those that left gone. -ENOMEM.
 * objects_list - all that are loaded, in their order. object_list_missing - of one that was loaded
 * before, the probes that were not found again are refused.
 */
int objects_look(const struct provider *const *providers);
struct object *objects_list(void);
void object_list_missing(struct object *object);

/* object_is_of - whether the file is what was loaded: it may have been replaced since. */
bool object_is_of(const struct object *object, const struct elf *elf);

/* object_scan - the providers get new objects; probes of those that left are marked gone. */
int object_scan(const struct provider *const *providers);

/* object_again - one provider gets all objects that are known. */
int object_again(const struct provider *provider);

/* process_is_single - whether no thread but the calling one can run the program's code: see
 * fi_own_thread(). */
bool process_is_single(void);

/* core_now - seconds, on a clock that nothing sets. */
double core_now(void);

/* site_toggle - turn the probes of ids on or off by changing code; 0 or the first error. */
int site_toggle(const uint32_t *ids, size_t n, bool on);

/* source_look_up - fill in file and line of a probe, by debug information. -ENODATA. */
int source_look_up(struct probe *probe);

/* site_restore - for objects_hold(): calls that are off become what the compiler left. */
int site_restore(void *data);

/* site_merge_early - make one NOP of several where that is cheap: while there is one thread. */
void site_merge_early(const struct object *object);

/* object_turn_on - the probes that were on when the object was unloaded. For objects_hold(). */
int object_turn_on(void *object);

/* object_at - what is loaded there and can be run, as of the last look; NULL: nothing. */
const struct object *object_at(uintptr_t address);

/*
 * leaf_word - for slots: a copy of the function that saves what it changes and hands over what it
 * reads. The same for as long as its bytes are the same. 0: it has to be called where it is.
 */
uintptr_t leaf_word(uintptr_t function, const struct effects *leaf);

/* --- Without it --- */

/* A glob (fnmatch(3)), or an extended regular expression between two '/'. */
struct names {
	const char *glob;
	bool is_regex;
	regex_t regex;
};

/* names_parse - the pattern stays where it is. -EINVAL: it begins with a '/', and is none. */
int names_parse(struct names *names, const char *pattern);
bool names_match(const struct names *names, const char *name);
void names_free(struct names *names);

/* callback_tell - tell of the probes that have not been told of yet. */
void callback_tell(void);

#endif
