/* SPDX-License-Identifier: MIT */
/*
 * The file of a protocol may be any file. What is read of it stays within its limits, and its steps
 * stay inside the site.
 */
#define FUZZ_RUNS 200000

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "results/tests/fuzz.h"
#include "stress/protocol/protocol.h"

#define BESIDE 64 /* bytes before and behind the site */

/* Stores alone: what else a file says may take long. */
static void run_stores(struct protocol_file *p, unsigned split)
{
	static const uint8_t old[SITE_BYTES], new[SITE_BYTES] = { 1, 2, 3 };
	uint8_t bytes[2 * BESIDE + SITE_BYTES] __attribute__((aligned(64)));
	struct sync sync = { .waits = { 0, 0, 0 } };
	struct protocol_site site = { bytes + BESIDE, p->length, split, old, new };
	char why[160];

	if (split >= p->length || protocol_check(p, CROSSING_NONE, split, why, sizeof(why)) < 0)
		return;
	memset(bytes, 7, sizeof(bytes));
	for (unsigned way = 0; way < 2; way++) {
		unsigned stores = 0;

		for (unsigned i = 0; i < p->steps[way]; i++)
			if (p->step[way][i].kind <= STEP_GUARD)
				p->step[way][stores++] = p->step[way][i];
		p->steps[way] = stores;
		must(protocol_change(p, way, &site, &sync) == 0);
	}
	for (unsigned i = 0; i < sizeof(bytes); i++)
		must(bytes[i] == 7 || (i >= BESIDE && i < BESIDE + p->length));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct protocol_file p;
	char why[WORDS_WHY] = "";
	FILE *stream = fuzz_open(data, size);
	int ret = protocol_read(stream, "file", &p, why);

	fclose(stream);
	must(ret == 0 || ret == -EINVAL);
	must((ret < 0) == (strncmp(why, "file:", 5) == 0));
	must(strlen(why) < sizeof(why));
	if (ret < 0)
		return 0;
	must(p.name[0] && p.source[0] && p.claims[0]);
	must(p.length >= 2 && p.length <= SITE_BYTES && p.pairs);
	must(p.steps[0] && p.steps[0] <= PROTOCOL_STEPS);
	must(p.steps[1] && p.steps[1] <= PROTOCOL_STEPS);
	for (unsigned split = 1; split < SITE_BYTES; split++)
		run_stores(&p, split);
	return 0;
}

#ifndef TMAX_LIBFUZZER
#define HEAD "name a-b\nsource some file\nclaims all\ninstructions 2\n"

static const struct fuzz_input inputs[] = {
	FUZZ_INPUT(HEAD
		   "pairs call-call word\nsupports line 1 4\nguard locked 0 cc restart\n"
		   "wait first\nstore locked back new\nwait 500 4\nstore nontemporal front new\n"),
	FUZZ_INPUT(HEAD "old b8 27 00 00 00 0f 05\nnew ff 24 25 table\nbroken\nmfence\n"
			"store plain 0+2 bytes eb fe\nclflush tail\nstore plain all old\nsignal\n"
			"membarrier sync-core\nback\nrestore\n"),
	FUZZ_INPUT(HEAD "old eb 09 66 0f 1f 84 00 00 02 00 00\nnew 41 ba 01 02 03 04 call\n"
			"guard plain 10 06 pass\nstore plain 2+4 new\nstore plain 7+4 new\n"
			"membarrier expedited\nclwb 3 # a comment\nlfence\n"),
};

static const char *const tokens[] = {
	"name ",  "store ",  "plain ", "locked ",    "nontemporal ", "guard ", "wait ", "back\n",
	"front ", "tail ",   "all ",   "new",	     "old ",	     "bytes ", "cc ",	"0+2 ",
	"+",	  "15",	     "call ",  "jump ",	     "table ",	     "\n",     "#",	"supports ",
	"page ",  "restore", "pass",   "1000000000", "pairs word\n", NULL
};

int main(int argc, char **argv)
{
	const struct fuzz_corpus corpus = { .inputs = inputs,
					    .count = sizeof(inputs) / sizeof(*inputs),
					    .tokens = tokens };

	return fuzz_main(argc, argv, &corpus);
}
#endif
