/* SPDX-License-Identifier: MIT */
/* Reading events from the ring of a thread, of which nothing is believed. */
#include "agent/counts/ring.h"

#include <errno.h>

static void copy_out(const struct event_ring *ring, uint64_t at, void *to, size_t len)
{
	size_t start = at % RING_SIZE;
	size_t first = len < RING_SIZE - start ? len : RING_SIZE - start;

	memcpy(to, ring->data + start, first);
	memcpy((char *)to + first, ring->data, len - first);
}

/* @from: a copy, which the program cannot change. Returns bytes read; 0: they are wrong. */
static size_t take_memory(struct trace_event *event, const uint8_t *from, size_t len)
{
	uint64_t words;

	if (len < sizeof(words))
		return 0;
	memcpy(&words, from, sizeof(words));
	if (words > RING_MEMORY || len - sizeof(words) < 8 * words)
		return 0;
	event->words = (unsigned)words;
	memcpy(event->memory, from + sizeof(words), 8 * words);
	return sizeof(words) + 8 * words;
}

static int take_strings(struct trace_event *event, const uint8_t *from, size_t len,
			unsigned strings)
{
	char *text = event->text;
	size_t size;

	for (unsigned i = 0; i < RING_STRINGS; i++) {
		bool is_there = i < RING_FIRST ? i < event->values : i - RING_FIRST < event->words;

		if (!(strings >> i & 1) || !is_there)
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

int ring_get(struct event_ring *ring, uint64_t (*how)(unsigned table, uint32_t id, void *arg),
	     void *arg, struct trace_event *event)
{
	uint64_t at = atomic_load_explicit(&ring->read, memory_order_relaxed);
	/* Pairs with the release of ring_put(). */
	uint64_t there = atomic_load_explicit(&ring->written, memory_order_acquire) - at;
	uint8_t copy[RING_EVENT_MAX];
	struct ring_event head;
	unsigned integers, vectors;
	uint64_t taken;
	size_t len, used;

	if (!there)
		return 0;
	if (there > RING_SIZE || there < sizeof(head))
		return -EBADMSG;
	copy_out(ring, at, &head, sizeof(head));
	len = 8 * (size_t)head.words;
	integers = head.values & 0xf;
	vectors = head.values >> 4;
	used = sizeof(head) + 8 * (size_t)(integers + vectors);
	if (len > there || len > sizeof(copy) || integers + vectors > RING_VALUES || len < used)
		return -EBADMSG;
	copy_out(ring, at, copy, len);
	memset(event, 0, offsetof(struct trace_event, text));
	event->time = head.time;
	event->id = head.id;
	event->table = head.table;
	event->values = integers;
	event->vectors = vectors;
	memcpy(event->value, copy + sizeof(head), used - sizeof(head));
	/* Pairs with the acquire of ring_put(): the copy is made before the room is given back. */
	atomic_store_explicit(&ring->read, at + len, memory_order_release);
	taken = how(head.table, head.id, arg);
	if (ring_memory(taken)) {
		size_t memory = take_memory(event, copy + used, len - used);

		if (!memory)
			return -EBADMSG;
		used += memory;
	}
	return take_strings(event, copy + used, len - used, ring_strings(taken));
}
