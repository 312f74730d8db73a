/* SPDX-License-Identifier: MIT */
/*
 * Reading the file of a protocol: a table of statements, one a line, and what must hold of the
 * whole. The manual page is tmax-protocol(5).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/command_line.h"
#include "base/names.h"
#include "stress/protocol/protocol.h"

#define TICKS_MAX   UINT64_C(1000000000)
#define STRETCH_MAX 64
#define COUNT(of)   (sizeof(of) / sizeof((of)[0]))

static const char *const crossing_names[CROSSING_COUNT] = {
	[CROSSING_NONE] = "none", [CROSSING_8] = "8",		[CROSSING_16] = "16",
	[CROSSING_32] = "32",	  [CROSSING_INSIDE] = "inside", [CROSSING_LINE] = "line",
	[CROSSING_PAGE] = "page",
};

static const char *const pair_names[PAIR_OWN + 1] = {
	[PAIR_CALL_NOP] = "call-nop", [PAIR_CALL_CALL] = "call-call",
	[PAIR_JMP_NOP] = "jmp-nop",   [PAIR_WORD] = "word",
	[PAIR_OWN] = "own",
};

NAMES(crossing, crossing, CROSSING_COUNT)
NAMES(pair, code_pair, PAIR_OWN + 1)

unsigned crossing_bytes(enum crossing c)
{
	static const unsigned bytes[CROSSING_COUNT] = { 0, 8, 16, 32, 8, 64, 4096 };

	return bytes[c];
}

bool protocol_supports(const struct protocol_file *p, enum crossing crossing, unsigned split)
{
	return p->supports[crossing] & 1u << split;
}

/* --- The site --------------------------------------------------------------------------------- */

struct reader {
	struct protocol_file *p;
	unsigned way;	/* whose steps are read: 0 there, 1 back */
	bool back_told; /* the file says how to go back */
};

typedef int take_statement(const struct word_line *w, struct reader *r);

static int take_text(const struct word_line *w, char *text, size_t size)
{
	if (w->count < 2)
		return words_refuse(w, 1, "a text");
	if (snprintf(text, size, "%s", words_rest(w, 1)) >= (int)size)
		return words_refuse(w, 1, "at most %zu bytes", size - 1);
	return 0;
}

static int take_name(const struct word_line *w, struct reader *r)
{
	const char *name = w->word[1];

	if (!*name || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(name) ||
	    strlen(name) >= sizeof(r->p->name))
		return words_refuse(w, 1, "a name of small letters, digits and -");
	strcpy(r->p->name, name);
	return words_end(w, 2);
}

static int take_source(const struct word_line *w, struct reader *r)
{
	return take_text(w, r->p->source, sizeof(r->p->source));
}

static int take_claims(const struct word_line *w, struct reader *r)
{
	return take_text(w, r->p->claims, sizeof(r->p->claims));
}

static int take_broken(const struct word_line *w, struct reader *r)
{
	r->p->broken = true;
	return words_end(w, 1);
}

static int take_instructions(const struct word_line *w, struct reader *r)
{
	uint64_t count;
	int ret = words_number(w, 1, 1, SITE_BYTES, &count);

	if (ret < 0)
		return ret;
	r->p->instructions = (unsigned)count;
	return words_end(w, 2);
}

static int take_pairs(const struct word_line *w, struct reader *r)
{
	if (r->p->length)
		return words_refuse(w, 0, "one description of the site");
	r->p->length = PAIR_LENGTH;
	for (unsigned i = 1; i < w->count || i == 1; i++) {
		int pair = words_choice(w, i, pair_names, PAIR_OWN);

		if (pair < 0)
			return pair;
		r->p->pairs |= 1u << pair;
	}
	return 0;
}

/* A byte of code, or a branch of several. */
static int take_code_word(const struct word_line *w, unsigned i, struct site_code *code,
			  unsigned *length)
{
	static const char *const branches[] = { "", "call", "jump", "table" };
	static const uint8_t opcodes[] = { 0, 0xe8, 0xe9 };
	static const uint32_t address = BRANCH_TABLE_ADDRESS;
	int branch = name_index(branches, COUNT(branches), w->word[i]);
	unsigned bytes = branch < 0 ? 1 : branch == BRANCH_TABLE ? 4 : 5;

	if (*length + bytes > SITE_BYTES)
		return words_refuse(w, i, "at most %d bytes of code", SITE_BYTES);
	if (branch < 0) {
		*length += 1;
		return words_byte(w, i, &code->bytes[*length - 1]);
	}
	if (code->branch)
		return words_refuse(w, i, "one branch in a code");
	code->branch = (enum code_branch)branch;
	code->branch_at = *length;
	if (branch == BRANCH_TABLE)
		memcpy(code->bytes + *length, &address, sizeof(address));
	else
		code->bytes[*length] = opcodes[branch];
	*length += bytes;
	return 0;
}

/* The old code, and then the new one. */
static int take_code(const struct word_line *w, struct reader *r)
{
	struct protocol_file *p = r->p;
	bool new = strcmp(w->word[0], "new") == 0;
	unsigned length = 0;
	int ret = 0;

	if (new && (!p->length || p->pairs))
		return words_refuse(w, 0, "old before new, once");
	if (!new && p->length)
		return words_refuse(w, 0, "one description of the site");
	for (unsigned i = 1; ret == 0 && (i < w->count || i == 1); i++)
		ret = take_code_word(w, i, &p->code[new], &length);
	if (ret < 0)
		return ret;
	if (length < 2 || (new &&length != p->length))
		return words_refuse(w, w->count,
				    new ? "as many bytes as old has" : "2 bytes or more");
	p->length = length;
	if (new)
		p->pairs = 1u << PAIR_OWN;
	return 0;
}

static int check_site(const struct word_line *w, const struct reader *r)
{
	return r->p->pairs ? 0 : words_refuse(w, 0, "pairs, or old and new, first");
}

static int take_supports(const struct word_line *w, struct reader *r)
{
	int ret = check_site(w, r), crossing;
	uint64_t split;

	if (ret < 0)
		return ret;
	crossing = words_choice(w, 1, crossing_names, CROSSING_COUNT);
	if (crossing < 0)
		return crossing;
	if (w->count == 2)
		r->p->supports[crossing] = ~0u;
	for (unsigned i = 2; ret == 0 && i < w->count; i++) {
		ret = words_number(w, i, 1, r->p->length - 1, &split);
		if (ret == 0)
			r->p->supports[crossing] |= 1u << split;
	}
	return ret;
}

/* --- The steps -------------------------------------------------------------------------------- */

/* Room for one more. NULL after a refusal. */
static struct protocol_step *add_step(const struct word_line *w, struct reader *r,
				      enum step_kind kind)
{
	unsigned *steps = &r->p->steps[r->way];
	struct protocol_step *step = &r->p->step[r->way][*steps];

	if (check_site(w, r) < 0)
		return NULL;
	if (*steps == PROTOCOL_STEPS) {
		words_refuse(w, 0, "at most %d steps each way", PROTOCOL_STEPS);
		return NULL;
	}
	*steps += 1;
	*step = (struct protocol_step){ .kind = kind, .line = w->line };
	return step;
}

/* "front", "back", "tail", "all", "4" or "1+4". */
static int read_span(const struct word_line *w, unsigned i, unsigned length, struct byte_span *span)
{
	static const char *const kinds[] = { "", "front", "back", "tail", "all" };
	int kind = name_index(kinds, COUNT(kinds), w->word[i]);
	char at[8];
	const char *plus = strchr(w->word[i], '+');
	uint64_t first, bytes = 1;

	*span = (struct byte_span){ .kind = kind > 0 ? (enum span_kind)kind : SPAN_FIXED };
	if (kind > 0)
		return 0;
	snprintf(at, sizeof(at), "%.*s", plus ? (int)(plus - w->word[i]) : 7, w->word[i]);
	if (!number_in(at, 0, length - 1, &first) ||
	    (plus && !number_in(plus + 1, 1, length - first, &bytes)))
		return words_refuse(w, i, "front, back, tail, all or OFFSET+BYTES within %u",
				    length);
	span->at = (unsigned)first;
	span->length = (unsigned)bytes;
	return 0;
}

static const char *const forms[] = { "plain", "locked", "nontemporal" };

/* store FORM SPAN old|new|bytes XX... */
static int take_store(const struct word_line *w, struct reader *r)
{
	static const char *const sources[] = { "old", "new", "bytes" };
	struct protocol_step *step = add_step(w, r, STEP_STORE);
	int ret = step ? words_choice(w, 1, forms, COUNT(forms)) : -EINVAL;

	if (ret < 0)
		return ret;
	step->form = (unsigned)ret;
	ret = read_span(w, 2, r->p->length, &step->span);
	if (ret < 0)
		return ret;
	ret = words_choice(w, 3, sources, COUNT(sources));
	if (ret < 0)
		return ret;
	step->source = (enum byte_source)ret;
	if (step->source != BYTES_GIVEN)
		return words_end(w, 4);
	if (step->span.kind != SPAN_FIXED)
		return words_refuse(w, 2, "OFFSET+BYTES before bytes");
	for (unsigned i = 0; i < step->span.length; i++)
		if ((ret = words_byte(w, 4 + i, &step->bytes[i])) < 0)
			return ret;
	return words_end(w, 4 + step->span.length);
}

/* guard FORM OFFSET XX restart|pass */
static int take_guard(const struct word_line *w, struct reader *r)
{
	static const char *const actions[] = { "restart", "pass" };
	struct protocol_step *step = add_step(w, r, STEP_GUARD);
	int ret = step ? words_choice(w, 1, forms, STORE_NONTEMPORAL) : -EINVAL;

	if (ret < 0)
		return ret;
	step->form = (unsigned)ret;
	step->source = BYTES_GIVEN;
	ret = read_span(w, 2, r->p->length, &step->span);
	if (ret < 0)
		return ret;
	if (step->span.kind != SPAN_FIXED || step->span.length != 1)
		return words_refuse(w, 2, "the offset of one byte");
	ret = words_byte(w, 3, &step->bytes[0]);
	if (ret < 0)
		return ret;
	ret = words_choice(w, 4, actions, COUNT(actions));
	if (ret < 0)
		return ret;
	step->trap = (enum trap_action)ret;
	/* The others' loops would take the missing execution for a tear. */
	if (step->trap == TRAP_PASS && r->p->pairs & (1u << PAIR_CALL_CALL | 1u << PAIR_WORD))
		return words_refuse(w, 4, "restart, as the pairs are not NOPs");
	return words_end(w, 5);
}

/* wait first|second|TICKS [STRETCH] */
static int take_wait(const struct word_line *w, struct reader *r)
{
	static const char *const kinds[] = { "first", "second" };
	struct protocol_step *step = add_step(w, r, STEP_WAIT);
	int kind = name_index(kinds, COUNT(kinds), w->word[1]), ret = 0;

	if (!step)
		return -EINVAL;
	step->form = kind < 0 ? WAIT_TICKS : (unsigned)kind;
	if (kind >= 0)
		return words_end(w, 2);
	if (!number_in(w->word[1], 0, TICKS_MAX, &step->ticks))
		return words_refuse(w, 1, "first, second or ticks up to %ju", (uintmax_t)TICKS_MAX);
	if (w->count > 2)
		ret = words_number(w, 2, 0, STRETCH_MAX, &step->stretch);
	return ret < 0 ? ret : words_end(w, 3);
}

static int take_membarrier(const struct word_line *w, struct reader *r)
{
	static const char *const kinds[] = { "expedited", "sync-core" };
	struct protocol_step *step = add_step(w, r, STEP_MEMBARRIER);
	int kind = step ? words_choice(w, 1, kinds, COUNT(kinds)) : -EINVAL;

	if (kind < 0)
		return kind;
	step->form = (unsigned)kind;
	return words_end(w, 2);
}

static const char *const fences[] = { "mfence", "sfence", "lfence" };
static const char *const flushes[] = { "clflush", "clflushopt", "clwb" };

static int take_fence(const struct word_line *w, struct reader *r)
{
	struct protocol_step *step = add_step(w, r, STEP_FENCE);

	if (!step)
		return -EINVAL;
	step->form = (unsigned)name_index(fences, COUNT(fences), w->word[0]);
	return words_end(w, 1);
}

/* clflush SPAN: the lines of its first and its last byte. */
static int take_flush(const struct word_line *w, struct reader *r)
{
	struct protocol_step *step = add_step(w, r, STEP_FLUSH);
	int ret = step ? read_span(w, 1, r->p->length, &step->span) : -EINVAL;

	if (ret < 0)
		return ret;
	step->form = (unsigned)name_index(flushes, COUNT(flushes), w->word[0]);
	return words_end(w, 2);
}

static int take_signal(const struct word_line *w, struct reader *r)
{
	return add_step(w, r, STEP_SIGNAL) ? words_end(w, 1) : -EINVAL;
}

static int take_restore(const struct word_line *w, struct reader *r)
{
	return add_step(w, r, STEP_RESTORE) ? words_end(w, 1) : -EINVAL;
}

static int take_back(const struct word_line *w, struct reader *r)
{
	if (r->back_told || !r->p->steps[0])
		return words_refuse(w, 0, r->back_told ? "back once" : "a step before back");
	r->back_told = true;
	r->way = 1;
	return words_end(w, 1);
}

/* --- The whole -------------------------------------------------------------------------------- */

static const struct statement {
	const char *name;
	take_statement *take;
} statements[] = {
	{ "name", take_name },
	{ "source", take_source },
	{ "claims", take_claims },
	{ "broken", take_broken },
	{ "instructions", take_instructions },
	{ "pairs", take_pairs },
	{ "old", take_code },
	{ "new", take_code },
	{ "supports", take_supports },
	{ "store", take_store },
	{ "guard", take_guard },
	{ "mfence", take_fence },
	{ "sfence", take_fence },
	{ "lfence", take_fence },
	{ "clflush", take_flush },
	{ "clflushopt", take_flush },
	{ "clwb", take_flush },
	{ "wait", take_wait },
	{ "membarrier", take_membarrier },
	{ "signal", take_signal },
	{ "restore", take_restore },
	{ "back", take_back },
};

/* The end of the file: is there all that there must be? */
static int take_end(const struct word_line *w, const struct reader *r)
{
	struct protocol_file *p = r->p;
	const struct {
		bool missing;
		const char *what;
	} needs[] = {
		{ !p->name[0], "a name" },
		{ !p->source[0], "a source" },
		{ !p->claims[0], "claims" },
		{ !p->instructions, "instructions" },
		{ !p->pairs, "pairs, or old and new" },
		{ !p->steps[r->way], "a step" },
	};

	for (size_t i = 0; i < COUNT(needs); i++)
		if (needs[i].missing)
			return words_refuse(w, 0, "%s", needs[i].what);
	if (!r->back_told) {
		memcpy(p->step[1], p->step[0], sizeof(p->step[0]));
		p->steps[1] = p->steps[0];
	}
	return 0;
}

static int take_line(const struct word_line *w, void *arg)
{
	struct reader *r = arg;

	if (!w->count)
		return take_end(w, r);
	for (size_t i = 0; i < COUNT(statements); i++)
		if (strcmp(statements[i].name, w->word[0]) == 0)
			return statements[i].take(w, r);
	return words_refuse(w, 0, "a statement of tmax-protocol(5)");
}

int protocol_read(FILE *stream, const char *file, struct protocol_file *p, char *why)
{
	struct reader r = { .p = p };

	*p = (struct protocol_file){ 0 };
	return words_read(stream, file, take_line, &r, why);
}
