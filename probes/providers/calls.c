/* SPDX-License-Identifier: MIT */
/*
 * Off, a call is a NOP, and a tail call (a jump) a RET: one instruction for one, so any thread may
 * be running it. A tail call is turned on as a jump: the trampoline returns to the caller of the
 * function, as the RET does.
 *
 * In the middle of a function a CALL would overwrite the red zone. Where the compiler has put a
 * CALL itself the red zone is not in use.
 */
#include "probes/providers/calls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <patchcore/batch.h>

#define CALL   0xe8
#define JMP    0xe9
#define NOP    0x90
#define RET    0xc3
#define TEST   0xa9 /* of eax with the four bytes behind it */
#define ADDR32 0x67 /* before a CALL it makes it a byte longer, and no more */
#define SITE_5 5
#define SITE_6 6

static const uint8_t nops[][SITE_6] = { { 0x0f, 0x1f, 0x44, 0x00, 0x00 },
					{ 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00 } };
static const uint8_t rets[][SITE_6] = { { RET, 0x0f, 0x1f, 0x40, 0x00 },
					{ RET, 0x0f, 0x1f, 0x44, 0x00, 0x00 } };

/* --- Off, and probes -------------------------------------------------------------------------- */

static const uint8_t *get_off_bytes(const struct call_site *site)
{
	return (site->tail ? rets : nops)[site->len == SITE_6];
}

/* The core refuses a site that cannot be changed, by its bytes. */
static int turn_off_sites(struct object *object, const struct call_sites *sites)
{
	struct pc_op *ops = calloc(sites->n + 1, sizeof(*ops));
	size_t n = 0;

	if (!ops)
		return -ENOMEM;
	for (size_t i = 0; i < sites->n; i++) {
		const struct call_site *site = &sites->site[i];
		const uint8_t *off = get_off_bytes(site);

		if (site->reason)
			continue;
		if (object->is_file) {
			memcpy(site->at, off, site->len);
			continue;
		}
		ops[n++] = (struct pc_op){ .addr = site->at, .bytes = off, .len = site->len };
		object_note(object, site->at, site->len);
	}
	if (n) {
		object_open(1);
		site_patch(ops, n);
		object_close();
	}
	free(ops);
	return 0;
}

static const char *make_name(const struct calls *calls, const struct object *object,
			     const struct call_site *site)
{
	uintptr_t start = object->base + site->function->addr;
	char *name;

	if (!calls->offsets)
		return strdup(site->name);
	return asprintf(&name, "%s+0x%zx", site->function->name,
			(size_t)((uintptr_t)site->at - start)) < 0
		       ? NULL
		       : name;
}

static int add_probe(const struct calls *calls, struct object *object, const struct call_site *site)
{
	struct probe probe = {
		.provider = calls->provider,
		.object = object,
		.name = make_name(calls, object, site),
		.kind = site->to->kind,
		.site = site->at,
		.len = site->len,
		.reason = site->reason,
		.extra = (void *)site->to->extra,
	};

	if (!probe.name)
		return -ENOMEM;
	memcpy(probe.off, get_off_bytes(site), site->len);
	return probe_add(&probe, NULL);
}

/* Refuse sites of functions that another provider counts under the same name. */
static int refuse_twice(const struct object *object, const struct call_sites *sites,
			enum fi_kind kind)
{
	struct beside beside;
	int ret = beside_find(&beside, object, kind);

	for (size_t i = 0; i < sites->n && beside.n; i++) {
		struct call_site *site = &sites->site[i];
		uintptr_t start = object->base + site->function->addr;

		if (!site->reason && site->own && site->to->kind == kind &&
		    beside_has(&beside, start, start + site->function->size))
			site->reason = CALLS_TWICE;
	}
	free(beside.site);
	return ret;
}

int calls_discover(const struct calls *calls, struct object *object, const struct elf *elf)
{
	struct call_sites sites;
	int ret = calls_find(calls, object, elf, &sites);

	for (const struct called *to = calls->to;
	     calls->by_argument && to->function && sites.n && !ret; to++)
		ret = refuse_twice(object, &sites, to->kind);
	if (!ret)
		ret = turn_off_sites(object, &sites);
	for (size_t i = 0; i < sites.n && !ret; i++)
		ret = add_probe(calls, object, &sites.site[i]);
	calls_free(&sites);
	return ret;
}

/* The stub returns by the return address, whether it was called or jumped to. */
int calls_arm(struct probe *probe)
{
	int ret = site_arm_call(probe);
	int32_t rel;

	if (probe->off[0] == RET) {
		probe->on[0] = JMP;
		probe->on[SITE_5] = NOP;
	} else if (probe->len == SITE_6) {
		memcpy(&rel, probe->on + 1, sizeof(rel));
		rel--;
		probe->on[0] = ADDR32;
		probe->on[1] = CALL;
		memcpy(probe->on + 2, &rel, sizeof(rel));
	}
	return ret;
}

/*
 * From now on off and on share all bytes but the opcode: a change is a store of one byte, wherever
 * the site lies. Off is a TEST, which may change flags, since the compiler assumes that a call
 * does; or a RET, behind which nothing is run.
 */
void calls_toggled(struct probe *probe, bool on)
{
	size_t opcode = probe->len == SITE_6 && probe->on[0] == ADDR32;

	if (!on || probe->off[opcode] == TEST)
		return;
	memcpy(probe->off, probe->on, sizeof(probe->off));
	probe->off[opcode] = probe->on[opcode] == JMP ? RET : TEST;
}
