/* SPDX-License-Identifier: MIT */
/* Histograms of outcomes, and what vendors say of them. */
#include <stdarg.h>
#include <string.h>

#include "conform/litmus.h"

const char *litmus_verdict_name(enum litmus_verdict verdict)
{
	static const char *const names[] = { "not said", "allowed", "forbidden" };

	return names[verdict];
}

enum litmus_verdict litmus_said(const struct litmus *l, const char *vendor)
{
	if (strcmp(vendor, "AuthenticAMD") == 0)
		return l->amd.verdict;
	if (strcmp(vendor, "GenuineIntel") == 0)
		return l->intel.verdict;
	return l->amd.verdict == l->intel.verdict ? l->amd.verdict : LITMUS_UNSAID;
}

/* Add to a text of LITMUS_STATE_TEXT bytes. */
__attribute__((format(printf, 2, 3))) static void add_text(char *text, const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + used, LITMUS_STATE_TEXT - used, format, args);
	va_end(args);
}

/* The name of a number, as registers have it; NULL: it has none. */
static const char *value_name(const struct litmus *l, uint32_t value)
{
	for (unsigned i = 0; i < l->symbols; i++)
		if (l->symbol[i].kind == LITMUS_VALUE && l->symbol[i].value == value)
			return l->symbol[i].name;
	return NULL;
}

static void add_column(const struct litmus *l, const struct litmus_column *c, uint32_t value,
		       char *text)
{
	const char *name = value_name(l, value);

	if (c->thread == LITMUS_THREADS)
		add_text(text, "%s=", l->symbol[c->index].name);
	else
		add_text(text, "%u:r%u=", c->thread, c->index);
	if (name)
		add_text(text, "%s", name);
	else
		add_text(text, value < 256 ? "%u" : "0x%08x", value);
}

char *litmus_state_text(const struct litmus *l, const uint32_t *value, char *text)
{
	text[0] = '\0';
	for (unsigned i = 0; i < l->columns; i++) {
		const struct litmus_column *c = &l->column[i];

		if (!value && !c->asked)
			continue;
		if (text[0])
			add_text(text, value ? " " : " /\\ ");
		if (!value && c->asked == LITMUS_OTHER)
			add_text(text, "%u:r%u=other", c->thread, c->index);
		else
			add_column(l, c, value ? value[i] : c->value, text);
		if (value)
			add_text(text, ";");
	}
	return text;
}

bool litmus_is_asked(const struct litmus *l, const uint32_t *value)
{
	for (unsigned i = 0; i < l->columns; i++) {
		const struct litmus_column *c = &l->column[i];

		if ((c->asked == LITMUS_EQUAL && value[i] != c->value) ||
		    (c->asked == LITMUS_OTHER && value_name(l, value[i])))
			return false;
	}
	return true;
}

uint64_t litmus_seen(const struct litmus *l, const struct litmus_result *r)
{
	uint64_t seen = 0;

	for (unsigned i = 0; i < r->states; i++)
		seen += litmus_is_asked(l, r->state[i].value) ? r->state[i].count : 0;
	return seen;
}

void litmus_count(const struct litmus *l, struct litmus_result *r, const uint32_t *value,
		  uint64_t count)
{
	size_t bytes = l->columns * sizeof(*value);
	unsigned i = 0;

	while (i < r->states && memcmp(r->state[i].value, value, bytes) != 0)
		i++;
	r->instances += count;
	if (i == LITMUS_STATES) {
		r->others += count;
		return;
	}
	if (i == r->states) {
		memcpy(r->state[i].value, value, bytes);
		r->states++;
	}
	r->state[i].count += count;
}

void litmus_add(const struct litmus *l, struct litmus_result *sum, const struct litmus_result *r)
{
	for (unsigned i = 0; i < r->states; i++)
		litmus_count(l, sum, r->state[i].value, r->state[i].count);
	sum->instances += r->others;
	sum->others += r->others;
	sum->seconds += r->seconds;
	if (sum->outcome == OUTCOME_DONE) {
		sum->outcome = r->outcome;
		sum->signal = r->signal;
		sum->error = r->error;
	}
}
