/* SPDX-License-Identifier: MIT */
/* Cells that tore, and how to run them again. */
#include "commands/report/report.h"

#define COMMAND_MAX 1024

static bool is_broken(const struct cell_record *r)
{
	return !protocol_is_compiled(r->cell.protocol);
}

/* The wait that a record's tears speak against. */
static uint64_t torn_wait(const struct cell_record *r)
{
	const uint64_t *tears = r->result.tears;
	uint64_t first = tears[TEAR_OTHER] || tears[TEAR_OLD_FRONT] ? r->cell.waits.first : 0;
	uint64_t second = tears[TEAR_OTHER] || tears[TEAR_NEW_FRONT] ? r->cell.waits.second : 0;

	return first > second ? first : second;
}

/* The one with the longest wait that tore. */
static const struct cell_record *worst_of(const struct journal_data *data)
{
	const struct cell_record *worst = NULL;

	for (size_t i = 0; i < data->count; i++) {
		const struct cell_record *r = &data->records[i];

		if (r->cell.protocol == PROTOCOL_WAIT && cell_result_tears(&r->result) &&
		    (!worst || torn_wait(r) > torn_wait(worst)))
			worst = r;
	}
	return worst;
}

int section_cells(struct html_page *page)
{
	const struct journal_data *data = page->data;
	size_t count = 0, broken = 0, noisy = 0;
	uint64_t tears[2] = { 0, 0 }; /* in quiet cells, in noisy ones */
	char command[COMMAND_MAX];
	FILE *out = page->out;
	const struct cell_record *worst = worst_of(page->data);

	if (worst) {
		html_paragraph(out,
			       "The worst cell: %s tear%s in %s toggles, at waits of %s and %s us. "
			       "This runs it again:",
			       NUMBER(cell_result_tears(&worst->result)),
			       S(cell_result_tears(&worst->result)), NUMBER(worst->result.toggles),
			       NUMBER(ticks_us(page, (double)worst->cell.waits.first)),
			       NUMBER(ticks_us(page, (double)worst->cell.waits.second)));
		cell_command(&worst->cell, command, sizeof(command));
		html_between(out, "<pre><code>", "</code></pre>\n", "%s", command);
	}
	for (size_t k = 0; k < data->count; k++) {
		const struct cell_record *r = &data->records[k];

		count += !is_broken(r) && cell_result_tears(&r->result);
		broken += is_broken(r) && cell_result_tears(&r->result);
		noisy += r->noisy;
		if (!is_broken(r))
			sum_add(&tears[r->noisy], cell_result_tears(&r->result));
	}
	if (!worst && !broken)
		return 1;
	html_paragraph(out,
		       "%zu of %zu cells are marked as noisy. Tears in noisy cells: %s; in "
		       "others: %s.",
		       noisy, data->count, NUMBER(tears[1]), NUMBER(tears[0]));
	if (count) {
		html_fold(out, "All %zu cells with tears", count);
		html_table(out, NULL,
			   "stage\t#waits, us\t#toggles\t#old front\t#new front\t#other\toutcome\t"
			   "runs it again");
	}
	for (size_t k = 0; k < data->count; k++) {
		const struct cell_record *r = &data->records[k];
		const uint64_t *kinds = r->result.tears;

		if (is_broken(r) || !cell_result_tears(&r->result))
			continue;
		cell_command(&r->cell, command, sizeof(command));
		html_line(out, NULL, "tnnnnnt", "%s%s\t%s / %s\t%s\t%s\t%s\t%s\t%s", r->stage,
			  r->noisy ? ", noisy" : "",
			  NUMBER(ticks_us(page, (double)r->cell.waits.first)),
			  NUMBER(ticks_us(page, (double)r->cell.waits.second)),
			  NUMBER(r->result.toggles), NUMBER(kinds[TEAR_OLD_FRONT]),
			  NUMBER(kinds[TEAR_NEW_FRONT]), NUMBER(kinds[TEAR_OTHER]),
			  outcome_name(r->result.outcome));
		html_code(out, "%s", command);
	}
	if (count)
		html_folded_table_end(out);
	if (broken)
		html_paragraph(
			out,
			"Protocols that are broken on purpose tore in %zu more cell%s, as they "
			"should.",
			broken, S(broken));
	return 0;
}
