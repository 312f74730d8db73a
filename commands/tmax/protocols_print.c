/* SPDX-License-Identifier: MIT */
/* A row says what a sequence of steps did on this machine: no line of it is about a project. */
#include "commands/tmax/protocols.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "calibrate/statistics/bound.h"
#include "results/figures/markup.h"

#define COMMAND_MAX 1024

/* Its file; where that is not here, one of no words. */
static const struct protocol_file *file_of(const struct protocol_row *row)
{
	static const struct protocol_file none;
	const struct protocol_file *file;
	char why[WORDS_WHY];

	return protocol_file(row->protocol, &file, why) < 0 ? &none : file;
}

/* --- Text ------------------------------------------------------------------------------------- */

/* "< 1.2e-5" is a bound. */
static const char *rate_text(const struct protocol_part *part, char text[NUMBER_TEXT + 2])
{
	if (part->verdict == STEPS_TEAR)
		return number_text(text, part->p);
	if (part->verdict != STEPS_HOLD)
		return part->sites ? "?" : "-";
	snprintf(text, NUMBER_TEXT + 2, "< %s", NUMBER(part->upper_p));
	return text;
}

/* Where: a crossing, the bytes before it, and what came of it. */
static void put_witness(FILE *out, const struct cell_record *r)
{
	if (!r) {
		fputc('\n', out);
		return;
	}
	fprintf(out, "  %s %u", crossing_name(r->cell.crossing), r->cell.split);
	if (r->result.outcome == OUTCOME_CRASH)
		fprintf(out, " SIG%s", sigabbrev_np(r->result.signal));
	else if (r->result.outcome != OUTCOME_DONE && r->result.outcome != OUTCOME_INTERRUPTED)
		fprintf(out, " %s", outcome_name(r->result.outcome));
	fputc('\n', out);
}

static void put_row(FILE *out, const struct protocols_report *r, const struct protocol_row *row)
{
	const struct protocol_part *claimed = &row->part[PART_CLAIMED],
				   *outside = &row->part[PART_OUTSIDE];
	double loss = protocol_row_loss(row);
	char text[2][NUMBER_TEXT + 2], sites[32] = "-", percent[16] = "?";

	if (claimed->sites)
		snprintf(sites, sizeof(sites), "%u", claimed->sites);
	if (!isnan(loss))
		snprintf(percent, sizeof(percent), "%.0f %%", 100 * loss);
	fprintf(out, "%-16.16s %3s %-7s %9s %7s %3u %-7s %9s %7s %5s", file_of(row)->name, sites,
		claimed->sites ? steps_verdict_name(claimed->verdict) : "-",
		rate_text(claimed, text[0]), claimed->sites ? NUMBER(claimed->count.toggles) : "-",
		outside->sites, outside->sites ? steps_verdict_name(outside->verdict) : "-",
		rate_text(outside, text[1]),
		NUMBER(row->ticks * 1000 / (double)r->identity.tsc_khz), percent);
	put_witness(out, claimed->witness ? claimed->witness : outside->witness);
}

/* A command that runs it again; behind it, as a comment, what it is. */
static void put_again(FILE *out, const struct protocol_row *row)
{
	const struct cell *cell = &row->part[PART_CLAIMED].witness->cell;
	int left = PROTOCOLS_COLUMNS;

	left -= fprintf(
		out, "tmax stress --protocol %s --pair %s --crossing %s --split %u # as read in ",
		protocol_name(cell->protocol), pair_name(cell->pair), crossing_name(cell->crossing),
		cell->split);
	fprintf(out, "%.*s\n", left > 0 ? left : 0, file_of(row)->source);
}

static void print_text(FILE *out, const struct protocols_report *r)
{
	const struct identity *id = &r->identity;
	const struct protocol_row *end = r->rows.row + r->rows.count, *row;
	size_t lines = 4 + r->rows.count, left = 0;

	fprintf(out, "%.40s, microcode %.12s, hypervisor %.14s, %u CPU%s, %.0f s\n", id->brand,
		id->microcode, id->hypervisor, id->cpus, S(id->cpus), r->seconds);
	fputs("                 --- where it claims to hold --- ---- just outside --- a change\n"
	      "protocol          at             tears changes  at             tears    (us)  loss"
	      "  witness\n",
	      out);
	for (row = r->rows.row; row < end; row++)
		put_row(out, r, row);
	fprintf(out,
		"Each row: a sequence of steps, as read in the source that its file names. < "
		"bounds "
		"at %.0f %%.\n",
		100 * CONFIDENCE);
	if (!r->rows.seen)
		fputs("No protocol that is broken on purpose tore: nothing can be said of the "
		      "others.\n",
		      out);
	lines += !r->rows.seen;
	for (row = r->rows.row; row < end; row++) {
		if (!row->part[PART_CLAIMED].witness)
			continue;
		if (lines + 1 < PROTOCOLS_LINES) {
			put_again(out, row);
			lines++;
		} else {
			left++;
		}
	}
	if (left)
		fprintf(out, "%zu more commands that run a witness again: --format json\n", left);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static json_t *number_or_null(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *part_json(const struct protocol_part *part)
{
	char command[COMMAND_MAX] = "";
	json_t *json;

	if (part->witness)
		cell_command(&part->witness->cell, command, sizeof(command));
	json = json_pack("{s:s, s:i, s:i, s:i, s:I, s:I, s:o, s:f}", "verdict",
			 steps_verdict_name(part->verdict), "sites", (int)part->sites, "torn_sites",
			 (int)part->torn, "died_sites", (int)part->died, "changes",
			 (json_int_t)part->count.toggles, "torn", (json_int_t)part->count.tears,
			 "p", number_or_null(part->p), "upper_p", part->upper_p);
	if (part->witness)
		json_object_set_new(json, "witness",
				    json_pack("{s:s, s:i, s:s}", "outcome",
					      outcome_name(part->witness->result.outcome), "signal",
					      part->witness->result.signal, "command", command));
	return json;
}

static json_t *row_json(const struct protocols_report *r, const struct protocol_row *row)
{
	const struct protocol_file *file = file_of(row);

	return json_pack(
		"{s:s, s:s, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "name",
		protocol_name(row->protocol), "source", file->source, "claims", file->claims,
		"broken", file->broken, "claimed", part_json(&row->part[PART_CLAIMED]), "outside",
		part_json(&row->part[PART_OUTSIDE]), "change_us",
		number_or_null(row->ticks * 1000 / (double)r->identity.tsc_khz),
		"executions_per_second", number_or_null(row->executions[1]),
		"unchanged_executions_per_second", number_or_null(row->executions[0]),
		"changes_per_second", number_or_null(row->changes), "frontier", row->frontier);
}

static json_t *report_json(const struct protocols_report *r)
{
	json_t *protocols = json_array();

	for (size_t i = 0; i < r->rows.count; i++)
		json_array_append_new(protocols, row_json(r, &r->rows.row[i]));
	return json_pack("{s:o, s:o, s:f, s:f, s:f, s:b, s:o}", "identity",
			 identity_to_json(&r->identity), "seed", seed_to_json(r->seed), "budget",
			 r->budget, "seconds", r->seconds, "confidence", CONFIDENCE, "seen",
			 r->rows.seen, "protocols", protocols);
}

static void print_json(FILE *out, const struct protocols_report *r)
{
	json_t *body = report_json(r);

	if (body)
		journal_tell(out, journal_line("protocols", body));
	json_decref(body);
}

/* --- JUnit ------------------------------------------------------------------------------------ */

/* A test fails where a claim did, and only if claims are what is tested. */
static void print_junit(FILE *out, const struct protocols_report *r)
{
	json_t *cases = json_array();
	json_t *properties = json_pack("{s:s, s:o}", "tool", PACKAGE_STRING, "machine",
				       identity_to_json(&r->identity));

	for (size_t i = 0; i < r->rows.count; i++) {
		const struct protocol_row *row = &r->rows.row[i];
		const struct protocol_part *part = &row->part[PART_CLAIMED];
		bool failed = part->verdict >= STEPS_TEAR, unclear = part->verdict == STEPS_UNCLEAR;
		char command[COMMAND_MAX] = "", message[COMMAND_MAX];

		if (part->witness)
			cell_command(&part->witness->cell, command, sizeof(command));
		snprintf(message, sizeof(message),
			 "%s: this sequence of steps, as read in %.300s: %" PRIu64 " of %" PRIu64
			 " changes torn, bound %s; %u of %u sites died",
			 part->sites ? steps_verdict_name(part->verdict) : "claims nothing",
			 file_of(row)->source, part->count.tears, part->count.toggles,
			 NUMBER(part->upper_p), part->died, part->sites);
		junit_case(cases, "tmax.protocols", protocol_name(row->protocol), 0,
			   failed && r->strict ? "failure"
			   : unclear	       ? "skipped"
					       : NULL,
			   message, command[0] ? command : message);
	}
	junit_document(out, "tmax protocols", r->date, r->seconds, properties, cases);
}

static const struct {
	const char *name;
	void (*print)(FILE *out, const struct protocols_report *r);
} formats[] = { { "text", print_text }, { "junit", print_junit }, { "json", print_json } };

int protocols_format_parse(const char *name)
{
	for (unsigned i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (strcmp(formats[i].name, name) == 0)
			return (int)i;
	return -EINVAL;
}

void protocols_print(FILE *out, const struct protocols_report *r, unsigned format)
{
	formats[format].print(out, r);
}
