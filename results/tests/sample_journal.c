/* SPDX-License-Identifier: MIT */
/*
 * Writes a journal with every name that there is, for validation against the
 * schema: sample_journal FILE
 */
#include <stdio.h>
#include <string.h>

#include "results/journal.h"
#include "results/tests/sample.h"

/* At least as many as the longest list of names has. */
#define RECORDS 12

_Static_assert(PLACEMENT_COUNT <= RECORDS && CROSSING_COUNT <= RECORDS && PAIR_COUNT <= RECORDS &&
		       PROTOCOL_COUNT <= RECORDS && OUTCOME_COUNT <= RECORDS,
	       "some names would not be written");

static int write_cells(struct journal *journal)
{
	int rc = 0;

	for (unsigned i = 0; i < RECORDS && !rc; i++) {
		struct cell_record r = sample_record(i);

		r.cell.placement = (enum placement)(i % PLACEMENT_COUNT);
		r.cell.crossing = (enum crossing)(i % CROSSING_COUNT);
		r.cell.pair = (enum code_pair)(i % PAIR_COUNT);
		r.cell.protocol = (enum protocol)(i % PROTOCOL_COUNT);
		r.cell.oracle = (enum oracle)(i % ORACLE_KINDS);
		r.result.outcome = (enum outcome)(i % OUTCOME_COUNT);
		r.result.signal = r.result.outcome == OUTCOME_CRASH ? 11 : 0;
		r.result.error = r.result.outcome == OUTCOME_ERROR ? -12 : 0;
		rc = journal_write_cell(journal, &r);
	}
	return rc;
}

static json_t *section(void)
{
	return json_pack("{s:s, s:s, s:I, s:i, s:f, s:i, s:n}", "placement", "spread", "crossing",
			 "page", "toggles", (json_int_t)3000000000, "tears", 0, "upper_p", 1e-9,
			 "torn_first", 2000, "torn_second");
}

static int write_estimate(struct journal *journal)
{
	json_t *body;
	int rc;

	body = json_pack("{s:s, s:s, s:i, s:i, s:I, s:i, s:f, s:f, s:f, s:i, s:n, s:f, s:b, s:i, "
			 "s:i, s:f, s:s, s:[o]}",
			 "verdict", "pass", "reason", "", "first_wait", 3000, "second_wait", 2500,
			 "toggles", (json_int_t)3000000000, "tears", 0, "upper_p", 1e-9, "pooled_p",
			 1e-10, "confidence", 0.95, "torn_first", 2000, "torn_second", "margin",
			 1.5, "tears_here", 1, "window", 16, "window_toggles", 1000, "window_p",
			 1.0, "worst", "bracket/3", "sections", section());
	rc = journal_write_estimate(journal, body);
	json_decref(body);
	return rc;
}

static int write_run(struct journal *journal, const struct identity *id)
{
	json_t *gaps = sample_gaps();
	int rc = journal_write_run(journal, "default", id, gaps);

	json_decref(gaps);
	return rc;
}

static int write_all(struct journal *journal)
{
	struct identity known = sample_identity(), here;
	int rc = write_run(journal, &known);

	if (!rc)
		rc = identity_read(&here);
	if (!rc)
		rc = write_run(journal, &here);
	if (!rc)
		rc = write_cells(journal);
	return rc ? rc : write_estimate(journal);
}

int main(int argc, char **argv)
{
	struct journal *journal;
	int rc;

	if (argc != 2)
		return 2;
	rc = journal_open(&journal, argv[1]);
	if (!rc)
		rc = write_all(journal);
	if (rc)
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-rc));
	return rc != 0;
}
