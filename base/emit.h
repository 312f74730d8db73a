/* SPDX-License-Identifier: MIT */
/* Writing machine code, one instruction behind the other. */
#ifndef BASE_EMIT_H
#define BASE_EMIT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct emit {
	uint8_t *at; /* where the next byte goes; NULL: nothing is written, only counted */
	size_t done; /* bytes so far */
};

static inline void put(struct emit *e, const void *bytes, size_t len)
{
	e->done += len;
	if (!e->at)
		return;
	memcpy(e->at, bytes, len);
	e->at += len;
}

/* PUT - the bytes as they are listed. */
#define PUT(e, ...)                                                                                \
	put(e, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

/* put_copies - the same byte so many times. */
static inline void put_copies(struct emit *e, uint8_t byte, size_t count)
{
	while (count--)
		put(e, &byte, 1);
}

/* put_rel32 - the displacement to target. @behind: bytes of the instruction that follow it. */
static inline void put_rel32(struct emit *e, const void *target, unsigned behind)
{
	int32_t rel = e->at ? (int32_t)((const uint8_t *)target - (e->at + 4 + behind)) : 0;

	put(e, &rel, sizeof(rel));
}

/* put_call - a call of target as it stands at site, which need not be where it is written. */
static inline void put_call(struct emit *e, const uint8_t *site, const uint8_t *target)
{
	int32_t rel = (int32_t)(target - (site + 5));

	PUT(e, 0xe8);
	put(e, &rel, sizeof(rel));
}

#endif
