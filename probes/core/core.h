/* SPDX-License-Identifier: MIT */
/* What the files of the core share. */
#ifndef PROBES_CORE_CORE_H
#define PROBES_CORE_CORE_H

#include <regex.h>

#include "probes/core/provider.h"
#include "probes/insn/insn.h"

/*
 * core_lock - the one lock: objects, probes, their code. -EDEADLK: the thread holds it. -ESHUTDOWN:
 * not between core_open() and core_close(). Executors never take it.
 */
int core_lock(void);
void core_unlock(void);
int core_open(void);
void core_close(void);

/* near_unload, block_unload - unmap stubs, and blocks of counters: see fi_unload(). */
void near_unload(void);
void block_unload(void);

/* --- Under the lock --- */

/*
 * probe_is_anew - whether the site has the bytes of the file, not those that were written there:
 * the file was unloaded and loaded again. A debugger's breakpoint does not count.
 */
bool probe_is_anew(const struct probe *probe);

/* probes_found - calls of probe_add(), those for probes that were known before included. */
extern uint32_t probes_found __attribute__((visibility("hidden")));

/*
 * objects_look - list objects that were loaded since the last look, and mark unloaded ones gone.
 * -ENOMEM. objects_list - all loaded objects, in the loader's order. object_list_missing - refuse
 * the probes of an object that was loaded before and that no provider has found again.
 */
int objects_look(const struct provider *const *providers);
struct object *objects_list(void);
void object_list_missing(struct object *object);

/* object_is_of - whether the file is what was loaded: it may have been replaced since. */
bool object_is_of(const struct object *object, const struct elf *elf);

/* object_scan - have providers look at new objects; probes of unloaded ones are marked gone. */
int object_scan(const struct provider *const *providers);

/* object_again - have one provider look at all known objects. */
int object_again(const struct provider *provider);

/* process_is_single - whether no thread but the calling one can run the program's code: see
 * fi_own_thread(). */
bool process_is_single(void);

/* keep_first_error - note a result, unless an error was noted before. */
static inline void keep_first_error(int *error, int ret)
{
	if (ret < 0 && !*error)
		*error = ret;
}

/* site_toggle - turn the probes of ids on or off by changing code; 0 or the first error. */
int site_toggle(const uint32_t *ids, size_t n, bool on);

/* source_look_up - fill in file and line of a probe, by debug information. -ENODATA. */
int source_look_up(struct probe *probe);

/* site_restore - write the compiler's bytes to calls that are off. For objects_hold(). */
int site_restore(void *data);

/* site_merge_early - make one NOP of 1-byte NOPs, while the process has one thread. */
void site_merge_early(const struct object *object);

/* object_turn_on - turn on what was on when the object was unloaded. For objects_hold(). */
int object_turn_on(void *object);

/* object_at - the object with code at the address, as of the last look; NULL: none. */
const struct object *object_at(uintptr_t address);

/*
 * leaf_word - make a copy of the function that saves the registers it clobbers and sets those it
 * reads: the word of a slot for it. 0: the function is not copied.
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

/* callback_tell - call the registered callbacks for new probes. */
void callback_tell(void);

#endif
