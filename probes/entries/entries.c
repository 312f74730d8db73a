/* SPDX-License-Identifier: MIT */
/*
 * Entries of functions that nothing was compiled into, where survey.h shows that their first
 * instructions can be moved.
 *
 * Off, the function is as it was compiled. On, it begins with a jump to a stub:
 *
 *	stub:	call	1f		counts, as at any other entry
 *		...			the instructions that stood at the entry
 *		jmp	behind them
 *	1:	push	$id
 *		jmp	near_entry
 *
 * It is off unless asked for: for other providers' sites a compiler has left room, while here the
 * proof assumes code as compilers make it, which hand-written code need not be.
 */
#include <elf.h>
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/core/core.h"
#include "probes/elf/elf.h"
#include "probes/entries/survey.h"

#define STUB_CALL 5
#define STUB_SIZE (STUB_CALL + SURVEY_ROOM + 5 + SITE_ENTRY)

static char *selection; /* as fi_take_entries() has it */
static atomic_bool asked;

int fi_take_entries(const char *objects)
{
	char *copy = objects ? strdup(objects) : NULL;
	int ret;

	if (objects && !copy)
		return -ENOMEM;
	ret = core_lock();
	free(selection);
	selection = copy;
	atomic_store(&asked, copy != NULL);
	if (!ret)
		core_unlock();
	return 0;
}

bool entries_take_request(void)
{
	return atomic_exchange(&asked, false);
}

/* A probe in what the trampoline calls, or in what changes code, would recurse. */
static bool is_ours(const struct object *object, const char *name)
{
	static const char ours[] = "@(libc.so|ld-linux|libpthread|libpatchcore|libfastinst|libZydis"
				   "|libZycore|linux-vdso|libasan|libtsan|libubsan|libclang_rt)*";

	return !fnmatch(ours, name, FNM_EXTMATCH) || object_is_own(object);
}

static bool is_selected(const struct object *object)
{
	const char *name = basename(object->path);

	if (!selection || is_ours(object, name))
		return false;
	return *selection ? !fnmatch(selection, name, 0) : object->stays;
}

/* --- Probes ---------------------------------------------------------------------------------- */

/* Without a symbol, the address in the file, which addr2line(1) and objdump(1) take. */
static const char *make_name(const struct survey_site *site)
{
	char *name;

	if (*site->name)
		return strdup(site->name);
	return asprintf(&name, "0x%" PRIx64, site->function) < 0 ? NULL : name;
}

static int add_entry(struct object *object, const struct beside *others,
		     const struct survey_site *site)
{
	struct probe probe = {
		.provider = &entries_provider,
		.object = object,
		.name = make_name(site),
		.kind = FI_ENTRY,
		.site = (uint8_t *)(object->base + site->site),
		.len = SURVEY_JUMP,
		.starts = site->starts & ((1u << SURVEY_JUMP) - 1),
		.reason = site->reason,
	};
	struct survey_site *kept = NULL;

	if (!probe.name)
		return -ENOMEM;
	if (!probe.reason && !strncmp(site->name, "Builtins_", strlen("Builtins_")))
		probe.reason = "V8 copies its built-in functions, and runs the copies";
	if (!probe.reason &&
	    beside_has(others, object->base + site->function, object->base + site->end))
		probe.reason = "the compiler left room for a probe at its entry";
	if (!probe.reason &&
	    !object_covers(object, (uintptr_t)probe.site,
			   site->len > SURVEY_JUMP ? site->len : SURVEY_JUMP, PF_X | PF_R))
		probe.reason = "it is no code of this object in memory";
	if (!probe.reason) {
		kept = malloc(sizeof(*kept));
		if (!kept)
			return -ENOMEM;
		*kept = *site;
		probe.extra = kept;
		memcpy(probe.off, site->code, SURVEY_JUMP);
	}
	return probe_add(&probe, NULL);
}

static int discover_entries(struct object *object, const struct elf *elf)
{
	struct survey survey = { 0 };
	struct beside others;
	int ret;

	if (object->surveyed || !is_selected(object))
		return 0;
	ret = beside_find(&others, object, FI_ENTRY);
	if (!ret)
		ret = survey_make(&survey, elf);
	/* Functions that were taken stay so. */
	object->surveyed = !ret;
	for (size_t i = 0; i < survey.n && !ret; i++)
		ret = add_entry(object, &others, &survey.site[i]);
	free(others.site);
	survey_free(&survey);
	return ret;
}

static int arm_entry(struct probe *probe)
{
	const struct survey_site *site = probe->extra;
	uint8_t *stub = near_stub(probe, STUB_SIZE);
	uint8_t code[STUB_SIZE] = { 0 };
	int ret, at = STUB_CALL;

	if (!stub)
		return -ENOSPC;
	ret = survey_move(site, (uintptr_t)probe->site, (uintptr_t)stub + STUB_CALL, code + at);
	if (ret < 0)
		return ret;
	at += ret;
	ret = 0;
	if (!site->ends) {
		ret = site_rel32(code + at, 0xe9, stub + at, probe->site + site->len);
		at += 5;
	}
	if (!ret)
		ret = site_rel32(code, 0xe8, stub, stub + at);
	if (!ret)
		ret = site_entry(code + at, stub + at, probe->id);
	return ret ? ret : site_arm(probe, 0xe9, code, sizeof(code));
}

const struct provider entries_provider = {
	.name = "entries",
	.discover = discover_entries,
	.arm = arm_entry,
	.owns_extra = true,
};
