/* SPDX-License-Identifier: MIT */
/* Markers: their probes, by the notes of a file, and the arguments that probe functions read. */
#include "probes/providers/marker.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/include/fastinst/args.h"

#define NAME_SIZE  256
#define NOP	   0x90
#define BREAKPOINT 0xcc

static const uint8_t off_code[] = { 0x0f, 0x1f, 0x44, 0x00, 0x08 };

struct discovery {
	const struct elf *elf;
	struct object *object;
};

static bool find_symbol(const void *data, const char *name, size_t len, uint64_t *address)
{
	const struct discovery *d = data;

	if (!notes_symbol(d->elf, name, len, address))
		return false;
	*address += d->object->base;
	return true;
}

static struct marker *make_marker(const struct discovery *d, const struct note *note)
{
	const struct operand_symbols symbols = { .find = find_symbol, .object = d };
	struct operand operands[OPERANDS_MAX];
	unsigned count = operands_parse(note->operands, &symbols, operands);
	struct marker *marker = calloc(1, sizeof(*marker) + count * sizeof(*operands));

	if (!marker)
		return NULL;
	marker->count = count;
	memcpy(marker->operands, operands, count * sizeof(*operands));
	if (note->semaphore)
		marker->semaphore = (uint16_t *)(d->object->base + note->semaphore);
	return marker;
}

/* Why the site cannot be used, or NULL. The memory is looked at only where it is code. */
static const char *refusal_of_note(const struct object *object, const struct note *note)
{
	uintptr_t at = object->base + note->address;
	const uint8_t *site = (const uint8_t *)at;

	if (!object_covers(object, at, 1, PF_X | PF_R))
		return "its note points outside the code, as of a function that the linker dropped";
	if (note->semaphore &&
	    !object_covers(object, object->base + note->semaphore, 2, PF_W | PF_R))
		return "its semaphore is no data of the program";
	if (*site == BREAKPOINT)
		return PROBE_BREAKPOINT;
	if (*site != NOP)
		return "no NOP stands where its note points";
	if (!object_covers(object, at, 1 + sizeof(off_code), PF_X | PF_R) ||
	    memcmp(site + 1, off_code, sizeof(off_code)) != 0)
		return "one 1-byte NOP has no room for a jump: compile with fastinst's sys/sdt.h";
	return NULL;
}

static int add_marker(const struct note *note, void *data)
{
	const struct discovery *d = data;
	char name[NAME_SIZE];
	struct probe probe = {
		.provider = &marker_provider,
		.object = d->object,
		.kind = FI_MARKER,
		.site = (uint8_t *)(d->object->base + note->address + 1),
		.len = sizeof(off_code),
		.args = note->operands,
		.reason = refusal_of_note(d->object, note),
	};

	snprintf(name, sizeof(name), "%s.%s", note->provider, note->name);
	probe.name = strdup(name);
	if (!d->object->is_file)
		probe.extra = make_marker(d, note);
	if (!probe.name || (!probe.extra && !d->object->is_file)) {
		free((char *)probe.name);
		free(probe.extra);
		return -ENOMEM;
	}
	memcpy(probe.off, off_code, sizeof(off_code));
	return probe_add(&probe, NULL);
}

static int discover_markers(struct object *object, const struct elf *elf)
{
	return notes_read(elf, add_marker, &(struct discovery){ elf, object });
}

static int arm_marker(struct probe *probe)
{
	uint8_t code[STUB_BYTES], *stub = near_stub(probe, STUB_BYTES);
	int ret = stub ? stub_make(code, stub, probe->id, probe->site + probe->len) : -ENOSPC;

	return ret ? ret : site_arm(probe, 0xe9, code, sizeof(code));
}

/* Programs skip a marker, and what it takes to get its arguments, while its semaphore is 0. */
static void count_semaphore(struct probe *probe, bool on)
{
	const struct marker *marker = probe->extra;

	if (marker->semaphore)
		__atomic_add_fetch(marker->semaphore, on ? 1 : -1, __ATOMIC_RELAXED);
}

const struct provider marker_provider = {
	.name = "marker",
	.discover = discover_markers,
	.arm = arm_marker,
	.toggled = count_semaphore,
	.owns_extra = true,
};

/* --- Arguments: async-signal-safe, as probe functions run in handlers, too ------------------- */

static const struct marker *find_marker(uint32_t id)
{
	const struct probe *probe = probe_get(id);

	return probe && probe->provider == &marker_provider ? probe->extra : NULL;
}

int fi_marker_regs(uint32_t id, const struct fi_regs *regs, uint64_t all[16])
{
	const struct marker_saved *saved;

	if (!regs || !all)
		return -EINVAL;
	if (!find_marker(id))
		return -ENOENT;
	saved = (const void *)(uintptr_t)regs->rsp;
	const uint64_t values[16] = {
		regs->rax,  regs->rcx, regs->rdx,  saved->rbx, regs->rsp + sizeof(*saved),
		saved->rbp, regs->rsi, regs->rdi,  regs->r8,   regs->r9,
		regs->r10,  regs->r11, saved->r12, saved->r13, saved->r14,
		saved->r15,
	};
	memcpy(all, values, sizeof(values));
	return 0;
}

int fi_marker_args(uint32_t id)
{
	const struct marker *marker = find_marker(id);

	return marker ? (int)marker->count : -ENOENT;
}

const char *fi_marker_refusal(uint32_t id, unsigned number)
{
	const struct marker *marker = find_marker(id);

	return marker && number < marker->count ? marker->operands[number].reason : NULL;
}

int fi_marker_arg(uint32_t id, const struct fi_regs *regs, unsigned number, int64_t *value)
{
	const struct marker *marker = find_marker(id);
	uint64_t all[16];
	int ret = value ? fi_marker_regs(id, regs, all) : -EINVAL;

	if (ret < 0)
		return ret;
	if (number >= marker->count)
		return -ENOENT;
	return operand_value(&marker->operands[number], all, value) ? 0 : -ENOTSUP;
}
