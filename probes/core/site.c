/* SPDX-License-Identifier: MIT */
/*
 * The code of a site, on and off. The two differ in one of these ways:
 *
 *  - inside 8 aligned bytes, or in one byte: one store each way, at once, as no wait is shared.
 *  - a CALL that crosses an 8-byte boundary: it is patched in once by the word protocol, in a batch
 *    with all others. From then on pc_deactivate_call() and pc_activate_call() turn it off and on:
 *    one store, no INT3, no sync.
 *  - other bytes across a boundary, or the provider wants a NOP: the word protocol each time.
 *  - several instructions, 1-byte NOPs too, and one that takes their place: threads may stand
 *    between them, so pc_patch_over_batch() turns it on, with one look at all threads for the whole
 *    batch. Off again is a change like the others, and leaves one NOP for NOPs.
 */
#include <assert.h>
#include <cpuid.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <patchcore/batch.h>
#include <patchcore/merge.h>
#include <patchcore/patchcore.h>
#include <patchcore/signals.h>

#include "base/clock.h"
#include "probes/core/core.h"
#include "probes/core/entry.h"

#define CALL	       0xe8
#define JMP	       0xe9
#define NOP	       0x90
#define PUSH	       0x68
#define WORTH_OPEN     4   /* sites of one segment from which on its pages are opened as a whole */
#define START_PATIENCE 0.1 /* seconds that a thread may take to start */

int site_rel32(uint8_t *bytes, uint8_t opcode, const void *from, const void *to)
{
	int64_t distance = (int64_t)((uintptr_t)to - (uintptr_t)from) - 5;
	int32_t rel = (int32_t)distance;

	if (rel != distance)
		return -ERANGE;
	bytes[0] = opcode;
	memcpy(bytes + 1, &rel, sizeof(rel));
	return 0;
}

int site_entry(uint8_t bytes[SITE_ENTRY], const uint8_t *at, uint32_t id)
{
	bytes[0] = PUSH;
	memcpy(bytes + 1, &id, sizeof(id));
	return site_rel32(bytes + 5, JMP, at + 5, near_entry(at, id));
}

int site_arm(struct probe *probe, uint8_t opcode, const uint8_t *code, size_t len)
{
	int ret = near_write(probe->stub, code, len);

	return ret ? ret : site_rel32(probe->on, opcode, probe->site, probe->stub);
}

int site_arm_call(struct probe *probe)
{
	const uint8_t *stub = near_stub(probe, SITE_ENTRY);
	uint8_t code[SITE_ENTRY];
	int ret = stub ? site_entry(code, stub, probe->id) : -ENOSPC;

	return ret ? ret : site_arm(probe, CALL, code, sizeof(code));
}

/* The index of the one byte in which off and on differ. -1: they differ in more. */
static int find_only_byte(const struct probe *probe)
{
	uint64_t off, on;
	int byte;

	static_assert(SITE_MAX == sizeof(off), "they are compared as numbers");
	memcpy(&off, probe->off, sizeof(off));
	memcpy(&on, probe->on, sizeof(on));
	if (off == on)
		return -1;
	byte = __builtin_ctzll(off ^ on) / 8;
	return (off ^ on) >> 8 * byte > 0xff ? -1 : byte;
}

static bool crosses_word(const void *at, size_t len)
{
	return (uintptr_t)at / 8 != ((uintptr_t)at + len - 1) / 8;
}

static bool probe_crosses(const struct probe *probe)
{
	return crosses_word(probe->site, probe->len);
}

/* --- INT3 ------------------------------------------------------------------------------------- */

/*
 * A thread that is just starting blocks all signals until it gets a CPU. One that goes on blocking
 * SIGTRAP is not waited for again within a second.
 */
static int wait_for_open_traps(void)
{
	static double hopeless_until;
	const struct timespec pause = { .tv_nsec = 1000000 };
	double began = seconds_now();
	struct pc_signals report;
	int ret;

	while ((ret = pc_check_signals(&report)) == -EBUSY && report.owner == PC_TRAP_OURS &&
	       began > hopeless_until && seconds_now() < began + START_PATIENCE)
		nanosleep(&pause, NULL);
	if (ret == -EBUSY)
		hopeless_until = seconds_now() + 1;
	return ret;
}

/*
 * 0, or -EBUSY: an INT3 would end the program, as a thread has SIGTRAP blocked, or SIGTRAP goes to
 * a handler of the program's. A look at all threads holds for a hundred times as long as it took,
 * since a profile changes sites all the time.
 */
static int check_traps(void)
{
	static double until;
	double began = seconds_now();

	/* Other errors: threads cannot be looked at, and none is known to be in danger. */
	if (began < until || process_is_single())
		return 0;
	if (wait_for_open_traps() == -EBUSY)
		return -EBUSY;
	until = seconds_now() + 100 * (seconds_now() - began);
	return 0;
}

void site_patch(struct pc_op *ops, size_t n)
{
	bool has_trap = false;
	int refusal;

	for (size_t i = 0; i < n; i++)
		has_trap |= crosses_word(ops[i].addr, ops[i].len);
	refusal = has_trap ? check_traps() : 0;
	if (!refusal)
		pc_patch_batch(ops, n);
	for (size_t i = 0; i < n && refusal; i++)
		ops[i].result = refusal;
}

/* --- A new probe ------------------------------------------------------------------------------ */

/* This thread may have fetched what stood there. */
static void serialise_cpu(void)
{
	unsigned a, b, c, d;

	__cpuid(0, a, b, c, d);
}

/*
 * Several 1-byte NOPs, where the provider wants one instruction, and the process has one thread: no
 * INT3 and no membarrier where no thread can meet half of it.
 */
static void merge_alone(struct probe *probe)
{
	const struct pc_how unseen = { .flags = PC_UNSEEN };
	int ret;

	if (probe_crosses(probe))
		ret = pc_patch_how(probe->site, probe->off, probe->len, &unseen);
	else
		ret = pc_patch_merge(probe->site, probe->off, probe->len, PC_NOBODY_INSIDE);
	if (!ret)
		probe->merge = false;
}

/* Else at the first activation, which takes a look at all threads. */
void site_merge_early(const struct object *object)
{
	bool is_single = false;

	for (const struct probe *probe = object->probes; probe; probe = probe->sibling) {
		if (!probe->merge)
			continue;
		if (!is_single && !(is_single = process_is_single()))
			return;
		object_note(probe->object, probe->site, probe->len);
	}
	if (!is_single)
		return;
	object_open(1);
	for (struct probe *probe = object->probes; probe; probe = probe->sibling)
		if (probe->merge)
			merge_alone(probe);
	object_close();
	serialise_cpu();
}

/* --- On and off ------------------------------------------------------------------------------- */

struct probe_batch {
	struct pc_op *ops;
	size_t n;
	struct pc_over *overs; /* several instructions each; they share a look at all threads */
	size_t n_overs;
	int first_error;
	bool on;
	bool asked, alone; /* check_alone() */
};

/* Whether no other thread can stand between several instructions. */
static bool check_alone(struct probe_batch *batch)
{
	if (!batch->asked)
		batch->alone = process_is_single();
	batch->asked = true;
	return batch->alone;
}

/* Note that the probe's code has been changed. */
static void note_change(struct probe *probe, bool on)
{
	probe->is_on = on;
	probe->merge &= !on;
	if (probe->provider->toggled)
		probe->provider->toggled(probe, on);
	if (on && probe->on[0] == CALL && probe_crosses(probe) && !probe->provider->off_is_nop)
		probe->has_call = pc_call_init(&probe->call, probe->site) == 0;
}

static bool has_bytes(const struct probe *probe, const uint8_t *bytes)
{
	/* Most are that long, and a length that is known is compared without a call. */
	if (probe->len == 5)
		return !memcmp(probe->site, bytes, 5);
	return !memcmp(probe->site, bytes, probe->len);
}

#define NOT_ALONE 1

/* Change it by one store. NOT_ALONE: that takes more, and nothing was done. */
static inline int change_alone(struct probe *probe, bool on)
{
	const uint8_t *bytes = on ? probe->on : probe->off;
	int ret, byte;

	if (probe->is_on == on)
		return 0;
	if (probe->has_call) {
		ret = on ? pc_activate_call(&probe->call, NULL) : pc_deactivate_call(&probe->call);
		if (!ret)
			probe->is_on = on;
		return ret;
	}
	byte = find_only_byte(probe);
	if (probe->merge || (on && probe->starts > 1) || (byte < 0 && probe_crosses(probe)))
		return NOT_ALONE;
	if (!has_bytes(probe, on ? probe->off : probe->on))
		return -ESTALE;
	ret = byte < 0 ? pc_patch(probe->site, bytes, probe->len)
		       : pc_patch(probe->site + byte, bytes + byte, 1);
	if (!ret)
		note_change(probe, on);
	return ret;
}

/* Change it by one store, or put it into the batch. */
static int change_in_batch(struct probe_batch *batch, struct probe *probe)
{
	struct pc_op op = { probe->site, batch->on ? probe->on : probe->off, probe->len,
			    -ECANCELED };
	int ret;

	if (probe->result)
		return 0;
	ret = change_alone(probe, batch->on);
	if (ret != NOT_ALONE)
		return ret;
	if (!probe->merge && !has_bytes(probe, batch->on ? probe->off : probe->on))
		return -ESTALE;
	/* For one thread several instructions are as one: then all share their membarriers. */
	if (probe->merge ||
	    (batch->on && probe->starts > 1 && (probe->off[0] == NOP || !check_alone(batch)))) {
		struct pc_over *over = &batch->overs[batch->n_overs++];

		*over = (struct pc_over){ op, probe->merge ? 0 : probe->starts, 1 };
		probe->result = &over->op.result;
		return 0;
	}
	batch->ops[batch->n] = op;
	probe->result = &batch->ops[batch->n++].result;
	return 0;
}

/* Else each change opens its pages by itself, which takes ten system calls. */
static void open_pages(const uint32_t *ids, size_t n, bool on)
{
	for (size_t i = 0; i < n; i++) {
		const struct probe *probe = probe_get(ids[i]);

		if (probe->is_on != on)
			object_note(probe->object, probe->site, probe->len);
	}
	object_open(WORTH_OPEN);
}

/* Change the sites where several instructions become one. */
static void run_overs(struct probe_batch *batch)
{
	int refusal = batch->n_overs && !check_alone(batch) ? check_traps() : 0;

	if (batch->n_overs && !refusal)
		pc_patch_over_batch(batch->overs, batch->n_overs,
				    check_alone(batch) ? PC_NOBODY_INSIDE : PC_CHECK_THREADS);
	for (size_t i = 0; i < batch->n_overs && refusal; i++)
		batch->overs[i].op.result = refusal;
}

/* What a probe has been in the batch for; one that is named twice is there once. */
static void finish_probe(struct probe_batch *batch, struct probe *probe)
{
	int ret = probe->result ? *probe->result : 0;

	if (probe->result && !ret)
		note_change(probe, batch->on);
	probe->result = NULL;
	keep_first_error(&batch->first_error, ret);
}

static int toggle_probes(struct probe_batch *batch, const uint32_t *ids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		keep_first_error(&batch->first_error, change_in_batch(batch, probe_get(ids[i])));
	run_overs(batch);
	site_patch(batch->ops, batch->n);
	for (size_t i = 0; i < n; i++)
		finish_probe(batch, probe_get(ids[i]));
	object_close();
	return batch->first_error;
}

int site_toggle(const uint32_t *ids, size_t n, bool on)
{
	struct probe_batch batch = { .on = on };
	int ret;

	if (n >= WORTH_OPEN || object_is_kept())
		open_pages(ids, n, on);
	ret = n == 1 ? change_alone(probe_get(*ids), on) : NOT_ALONE;
	if (ret != NOT_ALONE) {
		/* Pages that an earlier change could not close. */
		object_close();
		return ret;
	}
	if (!n)
		return 0;
	/* Not zeroed: of most batches little is used. */
	batch.ops = reallocarray(NULL, n, sizeof(*batch.ops) + sizeof(*batch.overs));
	if (!batch.ops)
		return -ENOMEM;
	batch.overs = (struct pc_over *)(batch.ops + n);
	ret = toggle_probes(&batch, ids, n);
	free(batch.ops);
	return ret;
}

/* A jump over a call that is off may be two bytes of it. */
int site_restore(void *data)
{
	uint32_t n = fi_probes();
	int error = 0;

	(void)data;
	/* If an INT3 would end the program, they stay jumps. */
	if (check_traps() < 0)
		return 0;
	for (uint32_t id = 0; id < n; id++) {
		struct probe *probe = probe_get(id);

		if (!probe->has_call || probe->object->gone)
			continue;
		pc_call_fini(&probe->call);
		probe->has_call = false;
		if (pc_patch(probe->site, probe->off, probe->len) < 0)
			error = -EAGAIN;
	}
	return error;
}
