/* SPDX-License-Identifier: MIT */
/*
 * Static branches and static calls.
 *
 * A change of branches has two steps: the counts of the named switches, then in one batch the code
 * of all sites that differs from its switch. If that fails, the counts go back, and the code is
 * changed again.
 *
 * A static call is sixteen aligned bytes to which all callers of one name call.
 *
 *	FF 25 rel32	jmp *slot(%rip), as it is compiled
 *	E9 rel32	jmp target, where that is in reach
 *
 * Both lie in one aligned word: either replaces the other by one store. pc_call_init() takes FF 25,
 * too, but keeps the load of the slot, which is saved here. The slot is written first: while the
 * code is FF 25 that is the change, and with E9 nothing reads the slot.
 */
#include "probes/providers/branch.h"

#include <elf.h>
#include <errno.h>
#include <fnmatch.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <patchcore/batch.h>
#include <patchcore/patchcore.h>

#include "base/array.h"
#include "probes/include/fastinst/branch.h"

#define TRIES	  1000 /* of a site that another thread is changing */
#define SLOT_LEN  6    /* of the jump of a static call as it is compiled */
#define JMP_REL32 0xe9

static const uint8_t nop[BRANCH_LEN] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

struct flag {
	bool usual;
	bool moved; /* by the change that is under way */
	unsigned count;
	unsigned vetoes;
	struct flag *next;
	char name[];
};

struct branch_site {
	struct flag *flag;
	struct object *object;
	uint8_t *at;
	uint8_t jump[BRANCH_LEN];
	bool usual;
	bool jumps;	    /* the code now */
	const char *reason; /* why it is left alone, or NULL */
};

static struct flag *flags;
static struct branch_site *sites;
static size_t sites_n;
static const char *settings_wrong;

/* States for a caller: a function fills in max of them, and counts all in n. */
struct branch_list {
	void *states;
	size_t max, n;
};

static long describe_states(int (*describe)(void *list), void *states, size_t max)
{
	struct branch_list list = { .states = states, .max = max };
	int ret = states || !max ? objects_lock_hold(describe, &list) : -EINVAL;

	return ret < 0 ? ret : (long)list.n;
}

static bool switch_value(const struct flag *flag)
{
	return flag->vetoes ? flag->usual : flag->count > 0;
}

/* --- Entries in files ------------------------------------------------------------------------- */

/*
 * The sections fi_branch_sites and fi_call_sites: entries of any length, each a struct head and the
 * name with its 0, filled up to a multiple of four.
 */
struct head {
	uint32_t length;
	int32_t site;	/* or the jump of a call, from here */
	int32_t other;	/* side, or the slot of a call, from here */
	uint32_t usual; /* side; 0 of a call */
};

static int read_section(const struct elf_section *section, entry_fn *tell, void *data)
{
	const uint8_t *at = section->bytes, *end = at + section->len;
	struct head head;
	int ret = 0;

	while ((size_t)(end - at) > sizeof(head) && ret == 0) {
		uint64_t address = section->addr + (uint64_t)(at - section->bytes);
		const char *name = (const char *)at + sizeof(head);

		memcpy(&head, at, sizeof(head));
		if (head.length <= sizeof(head) || head.length > (size_t)(end - at) ||
		    head.usual > 1 || !memchr(name, 0, head.length - sizeof(head)))
			return 0;
		ret = tell(
			&(struct branch_entry){ .site = address + 4 + (uint64_t)(int64_t)head.site,
						.other =
							address + 8 + (uint64_t)(int64_t)head.other,
						.usual = head.usual,
						.name = name },
			data);
		at += head.length;
	}
	return ret;
}

int entries_read(const struct elf *elf, const char *name, entry_fn *tell, void *data)
{
	struct elf_section section;
	int ret = 0;

	for (uint32_t i = 0; !ret && elf_next_section(elf, &i, &section);)
		if (section.bytes && (section.flags & SHF_ALLOC) && strcmp(section.name, name) == 0)
			ret = read_section(&section, tell, data);
	return ret;
}

/* --- The code --------------------------------------------------------------------------------- */

static bool has_to_change(const struct branch_site *site)
{
	return !site->reason && !site->object->gone &&
	       site->jumps != (switch_value(site->flag) != site->usual);
}

/* Another thread may just change the same bytes, or fork. */
static int patch_sites(struct pc_op *ops, size_t n)
{
	site_patch(ops, n);
	for (size_t i = 0; i < n; i++)
		for (int tries = 0; ops[i].result == -EAGAIN && tries < TRIES; tries++) {
			sched_yield();
			ops[i].result = pc_patch(ops[i].addr, ops[i].bytes, ops[i].len);
		}
	for (size_t i = 0; i < n; i++)
		if (ops[i].result)
			return ops[i].result;
	return 0;
}

/* Change all sites to the values of their switches. The order of ops is the list's, both times. */
static int apply_switches(void *unused)
{
	struct pc_op *ops = calloc(sites_n + 1, sizeof(*ops));
	size_t n = 0;
	int ret;

	(void)unused;
	if (!ops)
		return -ENOMEM;
	for (size_t i = 0; i < sites_n; i++)
		if (has_to_change(&sites[i]))
			ops[n++] = (struct pc_op){ .addr = sites[i].at,
						   .bytes = sites[i].jumps ? nop : sites[i].jump,
						   .len = BRANCH_LEN,
						   .result = -ECANCELED };
	ret = n ? patch_sites(ops, n) : 0;
	n = 0;
	for (size_t i = 0; i < sites_n; i++)
		if (has_to_change(&sites[i]) && ops[n++].result == 0)
			sites[i].jumps = !sites[i].jumps;
	free(ops);
	return ret;
}

/* --- Static calls ----------------------------------------------------------------------------- */

struct static_call {
	const char *name;
	const struct object *object;
	uint8_t *at; /* NULL: not found since the object was loaded again */
	void **slot;
	bool direct;
};

static struct static_call *calls;
static size_t calls_n;

/* The jump that the compiler has put there. */
static void encode_slot_jump(const struct static_call *call, uint8_t code[SLOT_LEN])
{
	int32_t rel = (int32_t)((uint8_t *)call->slot - (call->at + SLOT_LEN));

	memcpy(code, (const uint8_t[]){ 0xff, 0x25 }, 2);
	memcpy(code + 2, &rel, sizeof(rel));
}

static int point_call(struct static_call *call, void *target)
{
	void *old = __atomic_load_n(call->slot, __ATOMIC_RELAXED);
	uint8_t code[SLOT_LEN];
	bool direct = !site_rel32(code, JMP_REL32, call->at, target);
	int ret = 0;

	__atomic_store_n(call->slot, target, __ATOMIC_RELEASE);
	if (!direct)
		encode_slot_jump(call, code);
	if (direct || call->direct)
		ret = pc_patch(call->at, code, direct ? BRANCH_LEN : SLOT_LEN);
	if (!ret)
		call->direct = direct;
	else
		__atomic_store_n(call->slot, old, __ATOMIC_RELEASE);
	return ret;
}

static bool is_call(const struct static_call *call)
{
	uint8_t code[SLOT_LEN];

	encode_slot_jump(call, code);
	return (uintptr_t)call->at % 16 == 0 && (uintptr_t)call->slot % sizeof(void *) == 0 &&
	       object_covers(call->object, (uintptr_t)call->at, 16, PF_X | PF_R) &&
	       object_covers(call->object, (uintptr_t)call->slot, sizeof(void *), PF_R | PF_W) &&
	       memcmp(call->at, code, sizeof(code)) == 0;
}

static int add_call(const struct branch_entry *entry, void *data)
{
	const struct object *object = data;
	struct static_call *call, now = {
		.object = object,
		.at = (uint8_t *)(object->base + entry->site),
		.slot = (void **)(object->base + entry->other),
	};
	size_t i = 0;

	/* The file is damaged; the call stays as compiled. */
	if (!is_call(&now))
		return 0;
	/* The object may have had it when it was loaded before: names stay valid. */
	while (i < calls_n && (calls[i].object != object || calls[i].at ||
			       strcmp(calls[i].name, entry->name) != 0))
		i++;
	if (i == calls_n) {
		now.name = strdup(entry->name);
		if (!now.name || ARRAY_ADD(calls, calls_n, now)) {
			free((char *)now.name);
			return -ENOMEM;
		}
	} else {
		now.name = calls[i].name;
		calls[i] = now;
	}
	call = &calls[i];
	/* If that fails, the slot serves. */
	point_call(call, *call->slot);
	return 0;
}

/* --- New sites -------------------------------------------------------------------------------- */

/* Set a new switch by the last part of FASTINST_BRANCHES that names it. */
static void set_by_environment(struct flag *flag)
{
	const char *all = secure_getenv("FASTINST_BRANCHES");
	char *copy = all ? strdup(all) : NULL, *rest = copy, *word;

	while (rest && (word = strsep(&rest, ","))) {
		char *value = strrchr(word, '=');

		if (!*word)
			continue;
		if (value)
			*value++ = '\0';
		else
			settings_wrong = "FASTINST_BRANCHES: each part is GLOB=on, =off or =veto";
		if (!value || fnmatch(word, flag->name, 0) != 0)
			continue;
		if (!strcmp(value, "on") || !strcmp(value, "off"))
			flag->count = !strcmp(value, "on");
		else if (!strcmp(value, "veto"))
			flag->vetoes = 1;
		else
			settings_wrong = "FASTINST_BRANCHES: a value is none of on, off, veto";
	}
	free(copy);
}

static struct flag *get_flag(const struct branch_entry *entry)
{
	struct flag *flag = flags;

	while (flag && strcmp(flag->name, entry->name) != 0)
		flag = flag->next;
	if (flag)
		return flag;
	flag = calloc(1, sizeof(*flag) + strlen(entry->name) + 1);
	if (!flag)
		return NULL;
	strcpy(flag->name, entry->name);
	flag->usual = entry->usual;
	flag->count = entry->usual;
	flag->next = flags;
	set_by_environment(flag);
	flags = flag;
	return flag;
}

const char *branch_refusal(const struct object *object, const struct branch_entry *entry)
{
	uintptr_t at = object->base + entry->site;

	if (!object_covers(object, at, BRANCH_LEN, PF_X | PF_R) ||
	    !object_covers(object, object->base + entry->other, 1, PF_X))
		return BRANCH_DAMAGED;
	if (memcmp((const void *)at, nop, BRANCH_LEN) != 0)
		return "other bytes stand there than the compiler puts there";
	return NULL;
}

static int add_site(const struct branch_entry *entry, void *data)
{
	struct object *object = data;
	struct branch_site site = {
		.flag = get_flag(entry),
		.object = object,
		.at = (uint8_t *)(object->base + entry->site),
		.usual = entry->usual,
		.reason = branch_refusal(object, entry),
	};

	if (!site.flag)
		return -ENOMEM;
	if (!site.reason && site.usual != site.flag->usual)
		site.reason = "the switch is usually true at one site and usually false at another";
	if (site_rel32(site.jump, JMP_REL32, site.at, (const void *)(object->base + entry->other)) <
	    0)
		site.reason = BRANCH_DAMAGED;
	return ARRAY_ADD(sites, sites_n, site);
}

static int discover_branches(struct object *object, const struct elf *elf)
{
	size_t kept = 0;
	int ret;

	/* The sites of when the object was loaded before. */
	for (size_t i = 0; i < sites_n; i++)
		if (sites[i].object != object)
			sites[kept++] = sites[i];
	sites_n = kept;
	ret = entries_read(elf, "fi_branch_sites", add_site, object);
	for (size_t i = 0; i < calls_n; i++)
		if (calls[i].object == object) {
			calls[i].at = NULL;
			calls[i].direct = false;
		}
	if (!ret)
		ret = entries_read(elf, "fi_call_sites", add_call, object);
	/* If that fails, the next change tries again, and fi_branches() shows it. */
	if (!ret)
		apply_switches(NULL);
	return ret;
}

static bool has_its_jumps(const struct object *object)
{
	for (size_t i = 0; i < sites_n; i++)
		if (sites[i].object == object && sites[i].jumps &&
		    memcmp(sites[i].at, sites[i].jump, BRANCH_LEN))
			return false;
	for (size_t i = 0; i < calls_n; i++)
		if (calls[i].object == object && calls[i].direct && *calls[i].at != JMP_REL32)
			return false;
	return true;
}

const struct provider branch_provider = {
	.name = "branch",
	.discover = discover_branches,
	.stands = has_its_jumps,
};

/* --- What callers ask for --------------------------------------------------------------------- */

/* Change a number, but not below 0. Has it changed? */
static bool step_count(unsigned *number, int by)
{
	if (by == 0 || (by < 0 && *number == 0))
		return false;
	*number += (unsigned)by;
	return true;
}

/* Change counts or vetoes by that much; the other one is 0. */
static long change_switches(const char *pattern, int count, int vetoes)
{
	struct names names;
	long found = 0, ret = pattern ? names_parse(&names, pattern) : -EINVAL;

	if (ret < 0)
		return ret;
	ret = core_lock();
	if (ret < 0)
		goto free;
	for (struct flag *flag = flags; flag; flag = flag->next) {
		bool named = names_match(&names, flag->name);

		found += named;
		flag->moved = named && (step_count(&flag->count, count) ||
					step_count(&flag->vetoes, vetoes));
	}
	ret = objects_hold(apply_switches, NULL);
	for (struct flag *flag = flags; flag && ret; flag = flag->next)
		if (flag->moved) {
			flag->count -= (unsigned)count;
			flag->vetoes -= (unsigned)vetoes;
		}
	if (ret)
		objects_hold(apply_switches, NULL);
	core_unlock();
free:
	names_free(&names);
	return ret ? ret : found;
}

long fi_branch_on(const char *pattern)
{
	return change_switches(pattern, 1, 0);
}

long fi_branch_off(const char *pattern)
{
	return change_switches(pattern, -1, 0);
}

long fi_branch_veto(const char *pattern)
{
	return change_switches(pattern, 0, 1);
}

long fi_branch_allow(const char *pattern)
{
	return change_switches(pattern, 0, -1);
}

static void describe_switch(const struct flag *flag, struct fi_branch_state *state)
{
	*state = (struct fi_branch_state){ .name = flag->name,
					   .value = switch_value(flag),
					   .usual = flag->usual,
					   .count = flag->count,
					   .vetoes = flag->vetoes };
	for (size_t i = 0; i < sites_n; i++) {
		const struct branch_site *site = &sites[i];

		if (site->flag != flag || site->object->gone)
			continue;
		state->sites++;
		if (!site->reason && !has_to_change(site))
			continue;
		state->refused++;
		state->reason = site->reason ? site->reason : "its code could not be changed";
	}
}

static int describe_switches(void *data)
{
	struct branch_list *list = data;
	struct fi_branch_state *states = list->states;

	for (const struct flag *flag = flags; flag; flag = flag->next)
		if (list->n++ < list->max)
			describe_switch(flag, &states[list->n - 1]);
	return 0;
}

long fi_branches(struct fi_branch_state *states, size_t max)
{
	return describe_states(describe_switches, states, max);
}

const char *fi_branch_settings(void)
{
	return settings_wrong;
}

/* An order to change a call. */
struct retarget_order {
	void *at;
	void *function;
};

static int retarget_held(void *data)
{
	const struct retarget_order *wish = data;

	for (size_t i = 0; i < calls_n; i++)
		if (calls[i].at == wish->at && !calls[i].object->gone)
			return point_call(&calls[i], wish->function);
	return -ENOENT;
}

int fi_call_retarget(void *at, void *function)
{
	if (!at || !function)
		return -EINVAL;
	return objects_lock_hold(retarget_held, &(struct retarget_order){ at, function });
}

static int describe_calls(void *data)
{
	struct branch_list *list = data;
	struct fi_call_state *states = list->states;

	for (size_t i = 0; i < calls_n; i++)
		if (calls[i].at && !calls[i].object->gone && list->n++ < list->max)
			states[list->n - 1] = (struct fi_call_state){ .name = calls[i].name,
								      .target = *calls[i].slot,
								      .direct = calls[i].direct };
	return 0;
}

long fi_calls(struct fi_call_state *states, size_t max)
{
	return describe_states(describe_calls, states, max);
}
