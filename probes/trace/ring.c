/* SPDX-License-Identifier: MIT */
#include "probes/trace/ring.h"

#include <errno.h>

static void copy_out(const struct ring *ring, uint64_t at, void *to, size_t len)
{
	size_t start = at % RING_SIZE;
	size_t first = len < RING_SIZE - start ? len : RING_SIZE - start;

	memcpy(to, ring->data + start, first);
	memcpy((char *)to + first, ring->data, len - first);
}

/* From a copy, so that it does not change while it is looked at. */
static int take_strings(struct trace_event *event, const uint8_t *from, size_t len,
			unsigned strings)
{
	char *text = event->text;

	for (unsigned i = 0; i < event->values && i < RING_STRINGS; i++) {
		size_t size;

		if (!(strings >> i & 1))
			continue;
		if (!len--)
			return -EBADMSG;
		size = *from++;
		if (size == RING_UNREADABLE)
			continue;
		if (size > RING_STRING || size > len)
			return -EBADMSG;
		memcpy(text, from, size);
		text[size] = '\0';
		event->string[i] = text;
		event->cut[i] = size == RING_STRING;
		text += size + 1;
		from += size;
		len -= size;
	}
	return 1;
}

int ring_get(struct ring *ring, unsigned (*strings)(unsigned table, uint32_t id, void *arg),
	     void *arg, struct trace_event *event)
{
	uint64_t at = atomic_load_explicit(&ring->read, memory_order_relaxed);
	/* Pairs with the release of ring_put(). */
	uint64_t there = atomic_load_explicit(&ring->written, memory_order_acquire) - at;
	uint8_t copy[RING_EVENT_MAX];
	struct ring_event head;
	unsigned integers, vectors;
	size_t len, values;

	if (!there)
		return 0;
	if (there > RING_SIZE || there < sizeof(head))
		return -EBADMSG;
	copy_out(ring, at, &head, sizeof(head));
	len = 8 * (size_t)head.words;
	integers = head.values & 0xf;
	vectors = head.values >> 4;
	values = 8 * (size_t)(integers + vectors);
	if (len > there || len > sizeof(copy) || integers + vectors > RING_VALUES ||
	    len < sizeof(head) + values)
		return -EBADMSG;
	copy_out(ring, at, copy, len);
	memset(event, 0, offsetof(struct trace_event, text));
	event->time = head.time;
	event->id = head.id;
	event->table = head.table;
	event->values = integers;
	event->vectors = vectors;
	memcpy(event->value, copy + sizeof(head), values);
	/* Pairs with the acquire of ring_put(): the copy is made before the room is given back. */
	atomic_store_explicit(&ring->read, at + len, memory_order_release);
	return take_strings(event, copy + sizeof(head) + values, len - sizeof(head) - values,
			    strings(head.table, head.id, arg));
}
