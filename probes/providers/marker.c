/* SPDX-License-Identifier: MIT */
/* Markers: their probes, by the notes of a file, and the arguments that probe functions read. */
#include "probes/providers/marker.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/core/entry.h"
#include "probes/include/fastinst/args.h"

#define NAME_SIZE  256
#define BREAKPOINT 0xcc
#define INSN_MAX   15
#define JUMP	   5  /* bytes of it */
#define LOOK	   96 /* bytes behind a note's address; padding has 63 at most */

struct marker_discovery {
	const struct elf *elf;
	struct object *object;
};

static bool find_symbol(const void *data, const char *name, size_t len, uint64_t *address)
{
	const struct marker_discovery *d = data;

	if (!notes_symbol(d->elf, name, len, address))
		return false;
	*address += d->object->base;
	return true;
}

static struct marker *make_marker(const struct marker_discovery *d, const struct note *note,
				  const uint8_t *back)
{
	const struct operand_symbols symbols = { .find = find_symbol, .object = d };
	struct operand operands[OPERANDS_MAX];
	unsigned count = operands_parse(note->operands, &symbols, operands);
	struct marker *marker = calloc(1, sizeof(*marker) + count * sizeof(*operands));

	if (!marker)
		return NULL;
	marker->count = count;
	marker->back = back;
	memcpy(marker->operands, operands, count * sizeof(*operands));
	if (note->semaphore)
		marker->semaphore = (uint16_t *)(d->object->base + note->semaphore);
	return marker;
}

/* --- Its site --------------------------------------------------------------------------------- */

/* Bytes of a ModRM byte, and what it says that follows. */
static size_t operand_length(const uint8_t *code, size_t left)
{
	static const uint8_t displacement[] = { 0, 1, 4, 0 };
	unsigned mod = left ? code[0] >> 6 : 0, rm = left ? code[0] & 7 : 0;
	bool has_sib = mod < 3 && rm == 4;
	/* Without a base register there are four bytes. */
	bool no_base = mod == 0 && (has_sib ? left > 1 && (code[1] & 7) == 5 : rm == 5);

	return 1 + has_sib + (no_base ? 4 : displacement[mod]);
}

size_t nop_length(const uint8_t *code, size_t left)
{
	static const uint8_t prefixes[] = { 0x66, 0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65 };
	size_t len = 0;

	while (len < left && memchr(prefixes, code[len], sizeof(prefixes)))
		len++;
	if (len < left && code[len] == 0x90)
		return ++len > INSN_MAX ? 0 : len;
	if (len < left && (code[len] & 0xf0) == 0x40)
		len++;
	/* 0F 1F /0 */
	if (left < len + 3 || code[len] != 0x0f || code[len + 1] != 0x1f || code[len + 2] & 0x38)
		return 0;
	len += 2 + operand_length(code + len + 2, left - len - 2);
	return len > left || len > INSN_MAX ? 0 : len;
}

/*
 * Assemblers pad by the same NOPs, up to an aligned address: behind a marker of one byte the head
 * of a loop may come, and jumps from elsewhere lead to its padding. No padding up to 8 bytes has a
 * NOP of 8.
 */
static bool may_be_padding(const uint8_t *code, size_t left, uint64_t address)
{
	size_t len = nop_length(code, left), alignment = len < 8 ? 8 : 16;

	for (; len; len = nop_length(code, left)) {
		address += len;
		if (address % alignment == 0)
			return true;
		code += len;
		left -= len;
	}
	return false;
}

/*
 * The NOP that becomes a jump. What a tracer changes is the first instruction, which may be that
 * NOP, or one of one byte before it.
 *
 *	90 0F1F440008			fastinst, which no assembler pads by
 *	90 662E0F1F840000000000		libbpf's usdt.h since July 2026
 *	90 0F1F440000			the same before
 *	0F1F440000			a USDT_NOP of the program's own
 */
struct marker_site {
	size_t skip; /* bytes before it */
	size_t len;
};

static const char *find_site(const uint8_t *code, size_t left, uint64_t address,
			     struct marker_site *site)
{
	static const uint8_t own[] = { 0x0f, 0x1f, 0x44, 0x00, 0x08 };
	size_t len = nop_length(code, left);

	if (*code == BREAKPOINT)
		return PROBE_BREAKPOINT;
	if (!len)
		return "no NOP stands where its note points";
	site->skip = len == 1;
	site->len = site->skip ? nop_length(code + 1, left - 1) : len;
	if (site->len < JUMP)
		return "one 1-byte NOP has no room for a jump: compile with fastinst's sys/sdt.h";
	if (site->skip && (site->len != sizeof(own) || memcmp(code + 1, own, sizeof(own))) &&
	    may_be_padding(code + 1, left - 1, address + 1))
		return "the NOP behind its 1-byte NOP may be padding, which other code jumps to";
	return NULL;
}

/*
 * Why the site cannot be used, or NULL. The file says what the compiler left there, and memory,
 * which is looked at only where it is code, whether that still stands: a uprobe is a breakpoint, or
 * a CALL that the kernel has put there since.
 */
static const char *refusal_of_note(const struct marker_discovery *d, const struct note *note,
				   struct marker_site *site)
{
	const struct object *object = d->object;
	uintptr_t at = object->base + note->address;
	const uint8_t *code = NULL, *memory = (const uint8_t *)at;
	size_t left = LOOK;
	const char *why;

	for (; left && !code; left -= !code)
		if (object_covers(object, at, left, PF_X | PF_R))
			code = elf_constant(d->elf, note->address, left);
	if (!code)
		return "its note points outside the code, as of a function that the linker dropped";
	if (note->semaphore &&
	    !object_covers(object, object->base + note->semaphore, 2, PF_W | PF_R))
		return "its semaphore is no data of the program";
	why = find_site(code, left, note->address, site);
	if (why || !memcmp(memory, code, site->skip + site->len))
		return why;
	return memory[0] == BREAKPOINT || memory[site->skip] == BREAKPOINT
		       ? PROBE_BREAKPOINT
		       : "a uprobe, or another program, has changed its NOP";
}

static int add_marker(const struct note *note, void *data)
{
	const struct marker_discovery *d = data;
	char name[NAME_SIZE];
	struct marker_site site = { 0 };
	struct probe probe = {
		.provider = &marker_provider,
		.object = d->object,
		.kind = FI_MARKER,
		.len = JUMP,
		.args = note->operands,
		.reason = refusal_of_note(d, note, &site),
	};

	probe.site = (uint8_t *)(d->object->base + note->address + site.skip);
	snprintf(name, sizeof(name), "%s.%s", note->provider, note->name);
	probe.name = strdup(name);
	if (!d->object->is_file)
		probe.extra = make_marker(d, note, probe.site + site.len);
	if (!probe.name || (!probe.extra && !d->object->is_file)) {
		free((char *)probe.name);
		free(probe.extra);
		return -ENOMEM;
	}
	if (!probe.reason)
		memcpy(probe.off, probe.site, JUMP);
	return probe_add(&probe, NULL);
}

static int discover_markers(struct object *object, const struct elf *elf)
{
	return notes_read(elf, add_marker, &(struct marker_discovery){ elf, object });
}

/* --- Its stub -------------------------------------------------------------------------------- */

/*
 * From the jump at a marker to the trampoline of the core, and back.
 *
 *	stub:	lea	-128(%rsp), %rsp	over the red zone, before anything is pushed
 *		push	$id
 *		call	*1f(%rip)		marker_entry
 *		jmp	behind the marker
 *	1:	.quad	marker_entry
 *
 * marker_entry pushes the callee-saved registers, so that operands in them can be read, and calls
 * the core's trampoline as an entry's stub does. That saves and restores all other registers and
 * the flags, so nothing here may change a flag. RET 136 takes away the id and the red zone, and
 * shadow stacks agree with it.
 *
 * A stub is never freed nor changed: a thread may be in it at any time after the marker is off.
 */
static_assert(offsetof(struct marker_saved, back) == 48, "marker_entry takes away six registers");
static_assert(offsetof(struct marker_saved, id) == 56, "marker_entry reads it from there");
static_assert(sizeof(struct marker_saved) == 64 + 128, "RET takes away 136 behind the address");

#define PUSH(what) "	push " what "\n.cfi_adjust_cfa_offset 8\n"

/* clang-format off */
asm(".pushsection .text\n"
    ".p2align 6\n"
    ".globl marker_entry\n"
    ".hidden marker_entry\n"
    ".type marker_entry, @function\n"
    "marker_entry:\n"
    ".cfi_startproc\n"
    ".cfi_def_cfa_offset 8\n"
    "	endbr64\n"
    PUSH("%rbx") PUSH("%rbp") PUSH("%r12") PUSH("%r13") PUSH("%r14") PUSH("%r15")
    "	call 1f\n"
    "	lea 48(%rsp), %rsp\n"
    ".cfi_adjust_cfa_offset -48\n"
    "	ret $136\n"
    ".cfi_adjust_cfa_offset 56\n"
    "1:" PUSH("64(%rsp)")
    "	jmp probe_entry\n"
    ".cfi_endproc\n"
    ".size marker_entry, . - marker_entry\n"
    ".popsection\n");
/* clang-format on */

static const uint8_t stub_code[] = {
	0x48, 0x8d, 0x64, 0x24, 0x80,	    /* lea -128(%rsp), %rsp */
	0x68, 0x00, 0x00, 0x00, 0x00,	    /* push $id */
	0xff, 0x15, 0x08, 0x00, 0x00, 0x00, /* call *8(%rip) */
	0xe9, 0x00, 0x00, 0x00, 0x00,	    /* jmp back */
	0xcc, 0xcc, 0xcc,
};
#define STUB_ID	  6
#define STUB_BACK 16

static_assert(sizeof(stub_code) == 24, "the address is at 24, 8 behind the call");

int stub_make(uint8_t stub[STUB_BYTES], const uint8_t *at, uint32_t id, const uint8_t *back)
{
	void (*entry)(void) = marker_entry;

	memcpy(stub, stub_code, sizeof(stub_code));
	memcpy(stub + STUB_ID, &id, sizeof(id));
	memcpy(stub + sizeof(stub_code), &entry, sizeof(entry));
	return site_rel32(stub + STUB_BACK, 0xe9, at + STUB_BACK, back);
}

static int arm_marker(struct probe *probe)
{
	uint8_t code[STUB_BYTES], *stub = near_stub(probe, STUB_BYTES);
	const struct marker *marker = probe->extra;
	int ret = stub ? stub_make(code, stub, probe->id, marker->back) : -ENOSPC;

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
