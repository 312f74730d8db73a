/* SPDX-License-Identifier: MIT */
#include "stress/cell/variant.h"

#include "patchcore/machine/wait.h"
#include "stress/cell/code.h"

/* Begun when the INT3 is visible. Returns the ticks that the first wait is to last from there. */
typedef uint64_t first_fn(struct word *word, struct moment visible);

static uint64_t first_wait(const struct word *word)
{
	return word_stretch(word, word->sync->first_wait);
}

/* A locked store that changes nothing: it takes the line from the executors. */
static void store_same(uint8_t *at)
{
	__asm__ volatile("lock orb $0, %0" : "+m"(*at) : : "memory");
}

/* The store of the back part then queues behind what an executor still waits for. */
static void touch_back(struct word *word)
{
	uint64_t start = ticks_now(), latency;

	store_same(word->back_at);
	latency = ticks_now() - start;
	if (latency > word->latency)
		word->latency = latency;
}

static uint64_t touch(struct word *word, struct moment visible)
{
	touch_back(word);
	return ticks_now() - visible.ticks + first_wait(word);
}

static uint64_t read_back(struct word *word, struct moment visible)
{
	(void)visible;
	(void)*(volatile uint8_t *)word->back_at;
	return first_wait(word);
}

static uint64_t halves(struct word *word, struct moment visible)
{
	ticks_wait_since(visible, first_wait(word) / 2);
	touch_back(word);
	return ticks_now() - visible.ticks + first_wait(word) / 2;
}

static uint64_t again(struct word *word, struct moment visible)
{
	ticks_wait_since(visible, first_wait(word) / 2);
	store_same(word->front_at);
	return first_wait(word);
}

/* Like word_patch() of a straddler, under policy wait. */
static int toggle(uint8_t *site, const uint8_t *bytes, const struct sync *sync, first_fn *first)
{
	struct change change = change_in_place(site, bytes, CODE_LENGTH);
	struct moment visible, asked;
	struct word *word;
	int ret = word_begin(&word, &change, sync);

	if (ret < 0)
		return ret;
	visible = word_note_store(word, WORD_PART_INT3, word->asked);
	ticks_wait_since(visible, first(word, visible));
	asked = moment_now();
	word_store_back(word);
	visible = word_note_store(word, WORD_PART_BACK, asked);
	ticks_wait_since(visible, word_stretch(word, sync->second_wait));
	asked = moment_now();
	word_store_front(word);
	word_note_store(word, WORD_PART_FRONT, asked);
	word_release(word);
	return 0;
}

int toggle_touch(uint8_t *site, const uint8_t *bytes, const struct sync *sync)
{
	return toggle(site, bytes, sync, touch);
}

int toggle_read(uint8_t *site, const uint8_t *bytes, const struct sync *sync)
{
	return toggle(site, bytes, sync, read_back);
}

int toggle_halves(uint8_t *site, const uint8_t *bytes, const struct sync *sync)
{
	return toggle(site, bytes, sync, halves);
}

int toggle_again(uint8_t *site, const uint8_t *bytes, const struct sync *sync)
{
	return toggle(site, bytes, sync, again);
}
