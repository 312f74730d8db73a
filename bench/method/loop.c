/* SPDX-License-Identifier: MIT */
#include "bench/method/loop.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/emit.h"
#include "patchcore/patchcore.h"

#define PAGE 4096u

/*
 * The map: a page of data, one of targets, and the loop around the start of the fourth, or
 * of the fifth if the fourth begins at a multiple of two pages.
 * Targets stand on lines of their own, and so does what is out of the hot line.
 */
enum {
	DATA_FLAG = 0,
	DATA_POINTER = 256,
	TARGETS = PAGE,
	TARGET_STRIDE = 512,
	AWAY = PAGE + 2048,
	LOOP = 3 * PAGE, /* a multiple of any boundary */
	BYTES = 5 * PAGE
};

static void put_call_pointer(struct emit *e, const struct loop *loop)
{
	PUT(e, 0xff, 0x15);
	put_rel32(e, loop->pointer, 0);
}

static void emit_loop(struct loop *loop, const struct loop_spec *spec)
{
	static const uint8_t nop[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
	unsigned boundary = spec->boundary ? spec->boundary : 64;
	uint8_t *body = (uint8_t *)loop->map + LOOP;
	struct emit e, away = { 0 };

	/*
	 * The body begins at its line, or as far in front of an odd multiple of the boundary as the
	 * split says. The stack is not aligned for the targets: they are ours and use none.
	 */
	if ((uintptr_t)body % (2 * PAGE) == 0)
		body += PAGE;
	if (spec->kind == LOOP_EMPTY)
		body += LOOP_SITE_BYTES;
	body += spec->split == 0 ? 64 : boundary == PAGE ? 0 : 128 + boundary;
	body -= spec->split;
	e = (struct emit){ .at = body };
	switch (spec->kind) {
	case LOOP_EMPTY:
		break;
	case LOOP_SITE:
		loop->site = body;
		memcpy(loop->bytes[LOOP_NOP], nop, sizeof(nop));
		for (unsigned i = 0; i < 2; i++) {
			struct emit code = { .at = loop->bytes[LOOP_CALL_0 + i] };

			put_call(&code, body, loop->target[i]);
		}
		put(&e, loop->bytes[LOOP_CALL_0], LOOP_SITE_BYTES);
		break;
	case LOOP_DIRECT:
		put_call(&e, body, loop->target[0]);
		break;
	case LOOP_FLAG:
	case LOOP_FLAG_POINTER:
		/* cmp byte [flag], 0; jne away; the way back is behind it. */
		away.at = (uint8_t *)loop->map + AWAY;
		PUT(&e, 0x80, 0x3d);
		put_rel32(&e, loop->flag, 1);
		PUT(&e, 0x00, 0x0f, 0x85);
		put_rel32(&e, away.at, 0);
		if (spec->kind == LOOP_FLAG_POINTER)
			put_call_pointer(&away, loop);
		else
			put_call(&away, away.at, loop->target[0]);
		PUT(&away, 0xe9);
		put_rel32(&away, e.at, 0);
		break;
	case LOOP_POINTER:
		put_call_pointer(&e, loop);
		break;
	}
	/*
	 * Twenty-four independent instructions, of the kinds that a core has most units for: what
	 * else is in the loop takes time of its own.
	 */
	for (unsigned i = 0; i < 4 && spec->work; i++) {
		PUT(&e, 0x48, 0x8d, 0x47, 0x08); /* lea rax, [rdi + 8] */
		PUT(&e, 0x48, 0x8d, 0x4f, 0x10); /* lea rcx, [rdi + 16] */
		PUT(&e, 0x4c, 0x8d, 0x47, 0x18); /* lea r8, [rdi + 24] */
		PUT(&e, 0x48, 0x8b, 0x16);	 /* mov rdx, [rsi] */
		PUT(&e, 0x49, 0x89, 0xf9);	 /* mov r9, rdi */
		PUT(&e, 0x90);			 /* nop */
	}
	PUT(&e, 0x48, 0xff, 0xcf, 0x0f, 0x85); /* dec rdi; jnz */
	put_rel32(&e, body, 0);
	PUT(&e, 0xc3);
	loop->run = (loop_fn *)(uintptr_t)body;
}

const char *loop_split_name(unsigned split)
{
	static const char *const names[] = { "0", "1|4", "2|3", "3|2", "4|1" };

	return names[split];
}

int loop_build(struct loop *loop, const struct loop_spec *spec)
{
	uint8_t *map = mmap(NULL, BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct emit target;

	if (map == MAP_FAILED)
		return -errno;
	*loop = (struct loop){ .map = map };
	if (spec->kind == LOOP_FLAG || spec->kind == LOOP_FLAG_POINTER) {
		loop->flag = (_Atomic(uint8_t) *)(map + DATA_FLAG);
		atomic_init(loop->flag, 1);
	}
	for (unsigned i = 0; i < 2; i++) {
		loop->target[i] = map + TARGETS + i * TARGET_STRIDE;
		target = (struct emit){ .at = loop->target[i] };
		if (spec->target == LOOP_COUNT)
			PUT(&target, 0x48, 0xff, 0x46, (uint8_t)(8 * i)); /* inc qword [rsi + 8n] */
		PUT(&target, 0xc3);
	}
	if (spec->kind == LOOP_POINTER || spec->kind == LOOP_FLAG_POINTER) {
		loop->pointer = (_Atomic(void *) *)(map + DATA_POINTER);
		atomic_init(loop->pointer, loop->target[0]);
	}
	emit_loop(loop, spec);
	return 0;
}

void loop_free(struct loop *loop)
{
	if (!loop->map)
		return;
	pc_forget(loop->map, BYTES);
	munmap(loop->map, BYTES);
	*loop = (struct loop){ 0 };
}
