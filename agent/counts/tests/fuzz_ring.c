/* SPDX-License-Identifier: MIT */
/*
 * With anything that a program has written into its ring: an event that is taken from it is one
 * whose strings are its own, and reading comes to an end. Before that: what was put is got, in
 * order, across the ring's end, and what finds no room is counted. An event whose string is
 * elsewhere shows that the oracle can fail.
 */
#define FUZZ_RUNS 250000

#include <errno.h>
#include <string.h>

#include "agent/counts/ring.h"
#include "results/tests/fuzz.h"

/* Three values, of which the first and the third are strings, and two words, the second one. */
static uint64_t wanted =
	3 | 5 << RING_HOW_STRINGS | 2 << RING_HOW_MEMORY | UINT64_C(2) << RING_HOW_POINTED;

/* Of those that say nothing of it, anything. */
static uint64_t how(unsigned table, uint32_t id, void *arg)
{
	(void)table;
	return arg ? *(uint64_t *)arg : (uint64_t)id << 32 | id;
}

static bool is_sound(const struct trace_event *event)
{
	const char *end = event->text + sizeof(event->text);

	if (event->values + event->vectors > RING_VALUES || event->words > RING_MEMORY)
		return false;
	for (unsigned i = 0; i < RING_STRINGS; i++) {
		const char *text = event->string[i];

		if (text && (text < event->text || text >= end ||
			     !memchr(text, '\0', (size_t)(end - text))))
			return false;
	}
	return true;
}

/* What was in it is gone, and it begins so far before its end. */
static struct event_ring *new_ring(uint64_t before)
{
	struct event_ring *ring = calloc(1, sizeof(*ring));

	must(ring != NULL);
	atomic_store(&ring->written, RING_SIZE - before);
	atomic_store(&ring->read, RING_SIZE - before);
	return ring;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct event_ring *ring;
	struct trace_event event;
	size_t events = 0;
	int ret;

	if (!ring)
		ring = new_ring(0);
	if (size > RING_SIZE)
		return 0;
	atomic_store(&ring->read, RING_SIZE - 40);
	atomic_store(&ring->written, RING_SIZE - 40 + size);
	ring_copy_in(ring, RING_SIZE - 40, data, size);
	while ((ret = ring_get(ring, how, size % 2 ? NULL : &wanted, &event)) > 0) {
		must(is_sound(&event));
		events++;
	}
	must(ret == 0 || ret == -EBADMSG);
	must(events <= size / sizeof(struct ring_event));
	return 0;
}

#ifndef TMAX_LIBFUZZER
struct sample {
	struct ring_event head;
	uint64_t value[3];
	uint64_t words, memory[2];
	char strings[16];
};

static const struct sample sample = {
	.head = { .time = 7, .id = 3, .table = 1, .values = 3, .words = sizeof(sample) / 8 },
	.value = { 1, 2, 3 },
	.words = 2,
	.memory = { 4, 5 },
	.strings = "\3abc\5first\4word",
};

static void must_go_round(void)
{
	struct event_ring *ring = new_ring(100);
	struct trace_event event;
	uint64_t put = 0, got = 0;

	for (unsigned round = 0; round < 3; round++) {
		struct sample one = sample;

		for (; !atomic_load(&ring->lost); put++) {
			one.value[1] = put;
			ring_put(ring, &one, sizeof(one));
		}
		put--;
		atomic_store(&ring->lost, 0);
		for (; ring_get(ring, how, &wanted, &event) > 0; got++)
			must(event.value[1] == got && event.id == 3 && event.table == 1 &&
			     event.time == 7 && !strcmp(event.string[0], "abc") &&
			     !event.string[1] && !strcmp(event.string[2], "first") &&
			     event.words == 2 && event.memory[0] == 4 && event.memory[1] == 5 &&
			     !event.string[RING_FIRST] &&
			     !strcmp(event.string[RING_FIRST + 1], "word"));
		must(got == put && put == (round + 1) * (RING_SIZE / sizeof(one)));
	}
	free(ring);
}

static void must_fail(void)
{
	struct trace_event event = { .values = 1 };

	event.string[0] = sample.strings;
	must(!is_sound(&event));
	memset(event.text, 'x', sizeof(event.text));
	event.string[0] = event.text;
	must(!is_sound(&event));
	event = (struct trace_event){ .words = RING_MEMORY + 1 };
	must(!is_sound(&event));
}

int main(int argc, char **argv)
{
	static const char *const tokens[] = { "\xff", "\xff\xff\xff\xff", "\x40", "\x41", NULL };
	const struct fuzz_input inputs[] = { { (const void *)&sample, sizeof(sample) } };
	const struct fuzz_corpus corpus = { .inputs = inputs, .count = 1, .tokens = tokens };

	must_go_round();
	must_fail();
	return fuzz_main(argc, argv, &corpus);
}
#endif
