/* SPDX-License-Identifier: MIT */
/* A litmus test is machine code to be: what the reader takes has its parts in bounds. */
#define FUZZ_RUNS 1000000

#include "conform/litmus.h"
#include "results/tests/fuzz.h"

static void check_event(const struct litmus *l, const struct litmus_event *e)
{
	const struct litmus_symbol *s = &l->symbol[e->target];

	must(e->op < LITMUS_OPS && e->reg < LITMUS_REGS && e->view < LITMUS_VIEWS);
	if (e->op >= LITMUS_JUMP)
		return;
	must(e->target < l->symbols && s->kind != LITMUS_VALUE);
	must(s->kind == LITMUS_SITE || (e->op < LITMUS_FETCH && !e->offset && !e->view));
	must(s->in_line == (e->op == LITMUS_RUN) || e->op < LITMUS_FETCH);
	if (e->op <= LITMUS_LOAD)
		must(e->size && e->size <= 8 && !(e->size & (e->size - 1)));
	if (e->op <= LITMUS_LOAD && s->kind == LITMUS_SITE)
		must(e->offset + e->size <= s->size);
}

static void check_litmus(const struct litmus *l)
{
	unsigned asked = 0;
	char text[LITMUS_STATE_TEXT];
	uint32_t value[LITMUS_COLUMNS] = { 0 };

	must(l->name[0] && strlen(l->name) < LITMUS_NAME);
	must(l->symbols <= LITMUS_SYMBOLS && l->threads && l->threads <= LITMUS_THREADS);
	must(l->columns && l->columns <= LITMUS_COLUMNS);
	for (unsigned i = 0; i < l->symbols; i++) {
		const struct litmus_symbol *s = &l->symbol[i];

		must(s->kind != LITMUS_SITE || (s->size && s->size <= LITMUS_CODE));
		must(s->kind != LITMUS_SITE || s->in_line || s->behind >= 0 ||
		     (s->boundary <= LITMUS_BOUNDARY && s->offset < (int)s->boundary &&
		      -s->offset < (int)s->boundary));
		must(s->kind != LITMUS_SITE || s->behind < (int)i);
	}
	for (unsigned t = 0; t < l->threads; t++)
		for (unsigned i = 0; i < l->thread[t].events; i++)
			check_event(l, &l->thread[t].event[i]);
	for (unsigned i = 0; i < l->columns; i++) {
		const struct litmus_column *c = &l->column[i];

		asked += c->asked != LITMUS_ANY;
		must(c->thread < LITMUS_THREADS ? c->index < LITMUS_REGS : c->index < l->symbols);
	}
	must(asked);
	must(strlen(litmus_state_text(l, value, text)) < LITMUS_STATE_TEXT);
	must(strlen(litmus_state_text(l, NULL, text)) < LITMUS_STATE_TEXT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FILE *stream = fuzz_open(data, size);
	char why[WORDS_WHY];
	struct litmus l;
	int ret = litmus_read(stream, "fuzz", &l, why);

	must((ret == -EINVAL) == (why[0] != '\0'));
	if (ret == 0)
		check_litmus(&l);
	fclose(stream);
	return 0;
}

#ifndef TMAX_LIBFUZZER
static const struct fuzz_input inputs[] = {
	FUZZ_INPUT("litmus MP.RF\nabout a text\nvalue old 01 01 01 01\nvar x 0\n"
		   "site s 64-3 b8 01 01 01 01 c3 # mov\n"
		   "thread\n store s+1 02 02 02 02\n store x 1\n"
		   "thread\n load x r0\n cpuid\n fetch s r1\n"
		   "exists 1:r0=1 1:r1=old x=1\namd forbidden 7.6.1\nintel unsaid 9.1.3\n"),
	FUZZ_INPUT("litmus SM\nbreaks CoFF\nsite s inline b8 01 01 01 01\nsite t 4096-3 c3\n"
		   "site u t+16 b8 01 01 01 01 c3\n"
		   "thread\n nt alias:s+1 02 02 02 02\n jump\n run s r0\n clflush t\n iret\n"
		   " load colour:u+1 r2\n locked u 02\nexists 0:r0=other 0:r2=16843009\n"),
};

static const char *const tokens[] = {
	"store ", "locked ",  "nt ",	 "load ",   "fetch ", "run ",	"clflush ", "thread\n",
	"site ",  "var ",     "value ",	 "exists ", "inline", "alias:", "colour:",  "+15",
	"-3",	  "4096",     "8",	 "r3",	    "r4",     "=other", "3:r3=",    "5:r0=1",
	"amd ",	  "allowed ", "litmus ", "\n",	    " 02",    "#",	NULL
};

int main(int argc, char **argv)
{
	const struct fuzz_corpus corpus = { .inputs = inputs,
					    .count = sizeof(inputs) / sizeof(*inputs),
					    .tokens = tokens };

	return fuzz_main(argc, argv, &corpus);
}
#endif
