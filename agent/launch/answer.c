/* SPDX-License-Identifier: MIT */
/* The answer of the thread that inject.c has made, and the library taken out again. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>

#include "agent/launch/steps.h"
#include "base/array.h"
#include "base/clock.h"

#define PATIENCE_LIBRARY 10.0 /* seconds */
#define PATIENCE_INSIDE	 3.0
#define PAGE		 4096

static int wait_answer(struct inject *inject, const struct target *target, struct letter *letter)
{
	double until = seconds_now() + PATIENCE_LIBRARY;

	do {
		pause_us(100);
		if (!target_read(target, letter->start + PAGE, letter, sizeof(*letter)))
			return say_why(target, -ESRCH, "it ended before the library was loaded");
	} while (!letter->done && seconds_now() < until);
	if (!letter->done)
		return say_why(target, -ETIMEDOUT,
			       "the library has not answered within ten seconds, and still may");
	inject->result = letter->result;
	return 0;
}

/* The thread waits for @read, which is written last. */
static void write_letter(const struct target *target, struct letter *letter, int32_t read)
{
	uint64_t at = letter->start + PAGE;

	letter->done = letter->read = 0;
	target_write(target, at, letter, sizeof(*letter));
	target_write(target, at + offsetof(struct letter, read), &read, sizeof(read));
}

/* The new thread unmaps its memory after it has closed the library. */
static void wait_for_unmapping(const struct target *target, const struct letter *letter)
{
	double until = seconds_now() + PATIENCE_LIBRARY;
	int32_t any;

	while (target_read(target, letter->start, &any, sizeof(any)) && seconds_now() < until)
		pause_us(100);
}

/* --- Unloading -------------------------------------------------------------------------------- */

/*
 * All threads but the library's own are stopped while it is unloaded. Each stops where it holds no
 * lock of the C library, and outside of fork(), whose second half would be missing.
 */
static void release_threads(struct threads *all)
{
	for (size_t i = 0; i < all->n; i++)
		release_thread(all->id[i]);
	free(all->id);
	*all = (struct threads){ 0 };
}

/* False: the thread is at no safe place, or returns to the agent's code. */
static bool stop_if_safe(const struct target *target, const struct letter *letter,
			 struct threads *all, pid_t thread)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_SEIZE, thread, 0, 0) < 0)
		return errno == ESRCH;
	if (ARRAY_ADD(all->id, all->n, thread))
		return false; /* it is let go when this process ends */
	if (!interrupt_thread(thread) || ptrace(PTRACE_GETREGS, thread, 0, &regs) < 0)
		return false;
	if (regs.rip - letter->start >= letter->length)
		return !target_trapped(target, thread) && !target_safe(target, &regs, true);
	ptrace(PTRACE_DETACH, thread, 0, 0);
	all->n--;
	return true;
}

/* 0, or a thread that cannot be stopped. Two equal lists: no thread was made meanwhile. */
static pid_t stop_threads(const struct target *target, const struct letter *letter,
			  struct threads *all)
{
	pid_t failed = 0;
	size_t before;

	do {
		struct threads now = list_threads(target);

		before = all->n;
		failed = now.n ? 0 : target->pid;
		for (size_t i = 0; i < now.n && !failed; i++) {
			size_t k = 0;

			while (k < all->n && all->id[k] != now.id[i])
				k++;
			if (k == all->n && !stop_if_safe(target, letter, all, now.id[i]))
				failed = now.id[i];
		}
		free(now.id);
	} while (!failed && all->n != before);
	if (failed)
		release_threads(all);
	return failed;
}

/* Stubs that the agent has made, as it told: their size, and where they are. */
static void mark_stubs(struct target *target, char *text)
{
	uint64_t size = strtoull(text, &text, 16), start;

	while ((start = strtoull(text, &text, 16)))
		for (size_t i = 0; i < target->n; i++)
			target->mappings[i].agent |= target->mappings[i].start < start + size &&
						     target->mappings[i].end > start;
}

static int unload_library(struct inject *inject, struct target *target, struct letter *letter)
{
	double until = seconds_now() + PATIENCE_INSIDE;
	struct threads all = { 0 };
	int ret;

	letter->text[sizeof(letter->text) - 1] = '\0';
	mark_stubs(target, letter->text);
	while ((inject->inside = stop_threads(target, letter, &all)) && seconds_now() < until)
		pause_us(2000);
	if (inject->inside) {
		write_letter(target, letter, LETTER_END);
		return say_why(target, -EBUSY,
			       "thread %d is in it, or where it must not be stopped meanwhile",
			       (int)inject->inside);
	}
	strcpy(letter->text, inject->unload);
	write_letter(target, letter, LETTER_AGAIN);
	ret = wait_answer(inject, target, letter);
	if (!ret && inject->result > 0) {
		letter->closes += inject->result;
		inject->result = 0;
	}
	write_letter(target, letter, LETTER_END);
	wait_for_unmapping(target, letter);
	release_threads(&all);
	return ret;
}

int read_answer(struct inject *inject, struct target *target, struct letter *letter)
{
	int ret = wait_answer(inject, target, letter);

	if (ret)
		return ret;
	if (letter->error) {
		char said[256] = "";
		size_t left = PAGE - letter->error % PAGE;

		target_read(target, letter->error, said, left < 255 ? left : 255);
		ret = say_why(target, -ENOEXEC, "its loader says: %s", said);
	}
	letter->closes = inject->unload != NULL;
	if (inject->unload && !ret && !inject->result)
		return unload_library(inject, target, letter);
	write_letter(target, letter, LETTER_END);
	if (inject->unload)
		wait_for_unmapping(target, letter);
	return ret;
}
