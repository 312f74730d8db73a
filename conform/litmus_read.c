/* SPDX-License-Identifier: MIT */
/* Reading a litmus test: a statement a line, whose first word says which. */
#include <errno.h>
#include <string.h>

#include "base/command_line.h"
#include "base/text.h"
#include "base/text_file.h"
#include "conform/litmus.h"

#define LETTERS	 "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
#define ANY_KIND (LITMUS_SITE | LITMUS_VAR | LITMUS_VALUE)
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* --- Names ------------------------------------------------------------------------------------ */

static int take_name(const struct word_line *w, const char *bytes, char *name)
{
	const char *word = w->word[w->count > 1];

	if (w->count < 2 || strlen(word) >= LITMUS_NAME || word[strspn(word, bytes)])
		return words_refuse(w, 1, "a name");
	memcpy(name, word, strlen(word) + 1);
	return 0;
}

/* The symbol of the first so many bytes of a word, of these kinds: by index, or -1. */
static int find_symbol(const struct litmus *l, const char *word, size_t bytes, unsigned kinds)
{
	for (unsigned i = 0; i < l->symbols; i++)
		if ((l->symbol[i].kind & kinds) && strlen(l->symbol[i].name) == bytes &&
		    memcmp(l->symbol[i].name, word, bytes) == 0)
			return (int)i;
	return -1;
}

/* "+N" behind a name; nothing is +0. */
static bool is_offset(const char *word, uint64_t max, uint64_t *offset)
{
	*offset = 0;
	return !*word || (*word == '+' && number_in(word + 1, 0, max, offset));
}

/* Bytes up to the end of the line: how many, or -EINVAL. */
static int take_bytes(const struct word_line *w, unsigned i, unsigned most, uint8_t *bytes)
{
	unsigned n = 0;

	for (; n == 0 || i + n < w->count; n++) {
		int ret = n == most ? words_end(w, i + n) : words_byte(w, i + n, &bytes[n]);

		if (ret < 0)
			return ret;
	}
	return (int)n;
}

/* --- Statements ------------------------------------------------------------------------------- */

static int take_text(const struct word_line *w, struct litmus *l, size_t at)
{
	if (w->count < 2)
		return words_refuse(w, 1, "a text");
	text_printable((char *)l + at, LITMUS_TEXT, words_rest(w, 1));
	return 0;
}

static int take_said(const struct word_line *w, struct litmus *l, size_t at)
{
	static const char *const names[] = { "unsaid", "allowed", "forbidden" };
	struct litmus_said *said = (void *)((char *)l + at);
	int verdict = words_choice(w, 1, names, COUNT(names));

	if (verdict < 0)
		return verdict;
	if (w->count < 3)
		return words_refuse(w, 2, "where that is said");
	said->verdict = (enum litmus_verdict)verdict;
	text_printable(said->source, sizeof(said->source), words_rest(w, 2));
	return 0;
}

/* Where a site stands: "inline", "64-3", "4096+0", or "s+16" of an earlier one. */
static int take_place(const struct word_line *w, const struct litmus *l, struct litmus_symbol *s)
{
	const char *word = w->word[w->count > 2 ? 2 : w->count];
	size_t bytes = strcspn(word, "+-");
	char at[LITMUS_NAME];
	uint64_t boundary, offset;

	s->in_line = strcmp(word, "inline") == 0;
	s->behind = find_symbol(l, word, bytes, LITMUS_SITE);
	if (s->in_line)
		return 0;
	snprintf(at, sizeof(at), "%.*s", (int)bytes, word);
	if (word[bytes] && number_in(word + bytes + 1, 0, LITMUS_BOUNDARY / 4, &offset)) {
		s->offset = word[bytes] == '-' ? -(int)offset : (int)offset;
		if (s->behind >= 0 && s->offset >= 0 && !l->symbol[s->behind].in_line)
			return 0;
		if (number_in(at, 8, LITMUS_BOUNDARY, &boundary) && offset < boundary &&
		    (boundary & (boundary - 1)) == 0) {
			s->boundary = (unsigned)boundary;
			return 0;
		}
	}
	return words_refuse(w, 2, "inline, BOUNDARY+N, BOUNDARY-N or SITE+N");
}

/* A symbol is read into the one behind the last, and counts when all of its line is right. */
static int take_symbol(const struct word_line *w, struct litmus *l, size_t kind)
{
	struct litmus_symbol *s = &l->symbol[l->symbols];
	uint64_t number = 0;
	int ret;

	if (l->symbols == LITMUS_SYMBOLS)
		return words_refuse(w, 0, "at most %d names", LITMUS_SYMBOLS);
	*s = (struct litmus_symbol){ .kind = (enum litmus_kind)kind };
	ret = take_name(w, LETTERS, s->name);
	if (ret == 0 && find_symbol(l, s->name, strlen(s->name), ANY_KIND) >= 0)
		ret = words_refuse(w, 1, "a name that is not taken");
	if (ret == 0 && kind == LITMUS_VAR) {
		ret = words_number(w, 2, 0, UINT32_MAX, &number);
		s->value = (uint32_t)number;
		ret = ret < 0 ? ret : words_end(w, 3);
	} else if (ret == 0 && kind == LITMUS_VALUE) {
		ret = take_bytes(w, 2, 4, s->code);
		memcpy(&s->value, s->code, sizeof(s->value));
	} else if (ret == 0) {
		ret = take_place(w, l, s);
		ret = ret < 0 ? ret : take_bytes(w, 3, LITMUS_CODE, s->code);
		s->size = (unsigned)ret;
	}
	if (ret < 0)
		return ret;
	l->symbols++;
	return 0;
}

static int take_thread(const struct word_line *w, struct litmus *l, size_t unused)
{
	(void)unused;
	if (l->threads == LITMUS_THREADS)
		return words_refuse(w, 0, "at most %d threads", LITMUS_THREADS);
	l->threads++;
	return words_end(w, 1);
}

/* The column of a register or a variable; made, unless it is there. NULL: no room. */
static struct litmus_column *make_column(struct litmus *l, unsigned thread, unsigned index)
{
	struct litmus_column *c = l->column;

	while (c < l->column + l->columns && (c->thread != thread || c->index != index))
		c++;
	if (c == l->column + LITMUS_COLUMNS)
		return NULL;
	if (c == l->column + l->columns)
		l->columns++;
	c->thread = thread;
	c->index = index;
	return c;
}

/* THREAD:rN=VALUE, or VAR=VALUE; a value is a number, a name, or "other". */
static bool is_asked(struct litmus *l, const char *word)
{
	const char *is = strchr(word, '='), *value = is ? is + 1 : "";
	int named = find_symbol(l, value, strlen(value), LITMUS_VALUE), var;
	unsigned before = l->columns;
	struct litmus_column *c;
	uint64_t number = 0;

	if (!is ||
	    (named < 0 && strcmp(value, "other") != 0 && !number_in(value, 0, UINT32_MAX, &number)))
		return false;
	var = find_symbol(l, word, (size_t)(is - word), LITMUS_VAR);
	if (var >= 0)
		c = make_column(l, LITMUS_THREADS, (unsigned)var);
	else if (is - word == 4 && word[1] == ':' && word[2] == 'r')
		c = make_column(l, (unsigned)(word[0] - '0'), (unsigned)(word[3] - '0'));
	else
		return false;
	/* An event that is not there writes no register. */
	if (!c || c->asked || (var < 0 && l->columns > before))
		return false;
	c->asked = strcmp(value, "other") == 0 ? LITMUS_OTHER : LITMUS_EQUAL;
	c->value = named < 0 ? (uint32_t)number : l->symbol[named].value;
	return true;
}

static int take_exists(const struct word_line *w, struct litmus *l, size_t unused)
{
	(void)unused;
	for (unsigned i = 1; i == 1 || i < w->count; i++)
		if (i >= w->count || !is_asked(l, w->word[i]))
			return words_refuse(w, i,
					    "VAR=VALUE, or THREAD:rN=VALUE of a register "
					    "that is written above");
	return 0;
}

/* --- Events ----------------------------------------------------------------------------------- */

/* Does a thread run that site in its own code already? */
static bool is_run(const struct litmus *l, unsigned site)
{
	for (unsigned t = 0; t < l->threads; t++)
		for (unsigned i = 0; i < l->thread[t].events; i++)
			if (l->thread[t].event[i].op == LITMUS_RUN &&
			    l->thread[t].event[i].target == site)
				return true;
	return false;
}

/* [alias:|colour:]SITE[+N], or a variable */
static int take_target(const struct word_line *w, const struct litmus *l, struct litmus_event *e)
{
	static const char *const views[] = { "", "alias:", "colour:" };
	const char *word = w->word[w->count > 1];
	unsigned kinds = e->op < LITMUS_FETCH ? LITMUS_SITE | LITMUS_VAR : LITMUS_SITE;
	uint64_t offset;
	int found;

	if (w->count < 2)
		word = "";
	for (unsigned v = LITMUS_ALIAS; v < LITMUS_VIEWS && !e->view; v++) {
		if (strncmp(word, views[v], strlen(views[v])) == 0) {
			word += strlen(views[v]);
			e->view = (enum litmus_view)v;
			kinds = LITMUS_SITE;
		}
	}
	found = find_symbol(l, word, strcspn(word, "+"), kinds);
	/* Nothing but bytes of sites has an offset. */
	if (found < 0 || !is_offset(word + strcspn(word, "+"), LITMUS_CODE, &offset) ||
	    (offset && (e->op >= LITMUS_FETCH || l->symbol[found].kind == LITMUS_VAR)))
		return words_refuse(w, 1, kinds & LITMUS_VAR ? "a site or a variable" : "a site");
	if (e->op == LITMUS_FETCH && l->symbol[found].in_line)
		return words_refuse(w, 1, "a site that is not inline");
	if (e->op == LITMUS_RUN &&
	    (!l->symbol[found].in_line || e->view || is_run(l, (unsigned)found)))
		return words_refuse(w, 1, "an inline site that is not run yet");
	e->target = (unsigned)found;
	e->offset = (unsigned)offset;
	return 0;
}

static int take_operand(const struct word_line *w, struct litmus *l, struct litmus_event *e)
{
	const struct litmus_symbol *s = &l->symbol[e->target];
	const char *reg = w->word[w->count > 2 ? 2 : w->count];
	uint8_t byte[8] = { 0 };
	int ret;

	e->size = 4;
	if (e->op == LITMUS_CLFLUSH)
		return words_end(w, 2);
	if (e->op > LITMUS_NT) {
		if (reg[0] != 'r' || reg[1] < '0' || reg[1] >= '0' + LITMUS_REGS)
			return words_refuse(w, 2, "a register from r0 to r%d", LITMUS_REGS - 1);
		e->reg = (unsigned)(reg[1] - '0');
		if (reg[2] || !make_column(l, l->threads - 1, e->reg))
			return words_refuse(w, 2, "one of at most %d registers", LITMUS_COLUMNS);
		ret = words_end(w, 3);
	} else if (s->kind == LITMUS_VAR) {
		ret = words_number(w, 2, 0, UINT32_MAX, &e->value);
		ret = ret < 0 ? ret : words_end(w, 3);
	} else {
		ret = take_bytes(w, 2, sizeof(byte), byte);
		e->size = (unsigned)ret;
		memcpy(&e->value, byte, sizeof(byte));
		if (ret >= 0 && ((ret & (ret - 1)) || (e->op == LITMUS_NT && ret < 4)))
			return words_refuse(
				w, 2, e->op == LITMUS_NT ? "4 or 8 bytes" : "1, 2, 4 or 8 bytes");
	}
	if (ret >= 0 && e->op <= LITMUS_LOAD && s->kind == LITMUS_SITE &&
	    e->offset + e->size > s->size)
		return words_refuse(w, 1, "%u bytes inside the site", e->size);
	return ret < 0 ? ret : 0;
}

static int take_event(const struct word_line *w, struct litmus *l, enum litmus_op op)
{
	struct litmus_thread *t = l->threads ? &l->thread[l->threads - 1] : NULL;
	struct litmus_event e = { .op = op };
	int ret = 0;

	if (!t || t->events == LITMUS_EVENTS)
		return words_refuse(w, 0, "a thread of at most %d events", LITMUS_EVENTS);
	if (op >= LITMUS_JUMP)
		ret = words_end(w, 1);
	else
		ret = take_target(w, l, &e);
	if (ret == 0 && op < LITMUS_JUMP)
		ret = take_operand(w, l, &e);
	if (ret == 0)
		t->event[t->events++] = e;
	return ret;
}

/* --- A file ----------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	int (*take)(const struct word_line *w, struct litmus *l, size_t at);
	size_t at; /* where it goes, or of which kind it is */
} statements[] = {
	{ "about", take_text, offsetof(struct litmus, about) },
	{ "breaks", take_text, offsetof(struct litmus, breaks) },
	{ "amd", take_said, offsetof(struct litmus, amd) },
	{ "intel", take_said, offsetof(struct litmus, intel) },
	{ "value", take_symbol, LITMUS_VALUE },
	{ "var", take_symbol, LITMUS_VAR },
	{ "site", take_symbol, LITMUS_SITE },
	{ "thread", take_thread, 0 },
	{ "exists", take_exists, 0 },
};

static const char *const events[LITMUS_OPS] = {
	"store", "locked", "nt",	"load", "clflush", "fetch",  "run",
	"jump",	 "cpuid",  "serialize", "iret", "mfence",  "lfence", "sfence",
};

/* What a test must have. */
static int end_file(const struct word_line *w, const struct litmus *l)
{
	bool asked = false;

	for (unsigned i = 0; i < l->columns; i++)
		asked |= l->column[i].asked;
	if (!asked)
		return words_refuse(w, 0, "exists");
	for (unsigned i = 0; i < l->symbols; i++)
		if (l->symbol[i].in_line && !is_run(l, i))
			return words_refuse(w, 0, "a thread that runs '%s'", l->symbol[i].name);
	return 0;
}

static int take_statement(const struct word_line *w, void *arg)
{
	struct litmus *l = arg;

	if (!l->name[0]) {
		if (strcmp(w->word[0], "litmus") != 0)
			return words_refuse(w, 0, "litmus NAME");
		return take_name(w, LETTERS ".+-", l->name) < 0 ? -EINVAL : words_end(w, 2);
	}
	if (w->count == 0)
		return end_file(w, l);
	for (unsigned i = 0; i < COUNT(statements); i++)
		if (strcmp(w->word[0], statements[i].name) == 0)
			return statements[i].take(w, l, statements[i].at);
	for (unsigned i = 0; i < LITMUS_OPS; i++)
		if (strcmp(w->word[0], events[i]) == 0)
			return take_event(w, l, (enum litmus_op)i);
	return words_refuse(w, 0, "a statement or an event of tmax-litmus(1)");
}

int litmus_read(FILE *stream, const char *file, struct litmus *l, char *why)
{
	*l = (struct litmus){ .name = "" };
	return words_read(stream, file, take_statement, l, why);
}

int litmus_load(const char *name, struct litmus *l, char *why)
{
	char path[4096], file[sizeof("litmus/.litmus") + LITMUS_NAME];
	FILE *stream;
	int ret;

	why[0] = '\0';
	snprintf(path, sizeof(path), "%s", name);
	snprintf(file, sizeof(file), "litmus/%.*s.litmus", LITMUS_NAME, name);
	if (!strchr(name, '/') && !strstr(name, ".litmus")) {
		ret = data_file(file, path, sizeof(path));
		if (ret < 0)
			return ret;
	}
	stream = fopen(path, "re");
	if (!stream)
		return -errno;
	ret = litmus_read(stream, name, l, why);
	fclose(stream);
	return ret;
}

int litmus_names(glob_t *found)
{
	char pattern[4096];
	int ret = data_file("litmus", pattern, sizeof(pattern) - sizeof("/*.litmus"));

	if (ret < 0)
		return ret;
	strcat(pattern, "/*.litmus");
	return glob(pattern, 0, NULL, found) == 0 ? 0 : -ENOENT;
}
