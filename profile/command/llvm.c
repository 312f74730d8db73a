/* SPDX-License-Identifier: MIT */
/*
 * LLVM's text of sample profiles.
 */
#include <stdlib.h>

#include "base/text.h"
#include "probes/elf/sorted.h"
#include "profile/command/lines.h"

ORDER_BY(by_offset, struct sample, offset)

static double sum_up(struct body *body)
{
	body->total = 0;
	for (size_t i = 0; i < body->samples; i++)
		body->total += body->sample[i].count;
	for (struct body *in = body->inlined; in; in = in->next)
		body->total += sum_up(in);
	return body->total;
}

static void put_offset(FILE *out, int depth, line_offset offset)
{
	fprintf(out, "%*s%u", depth, "", (unsigned)(offset >> 32));
	if ((uint32_t)offset)
		fprintf(out, ".%u", (uint32_t)offset);
	fputs(": ", out);
}

/* "COUNT FUNCTION:COUNT ...": the functions that calls of the line led to. */
static void put_sample(FILE *out, const struct sample *sample)
{
	fprintf(out, "%.0f", sample->count);
	for (size_t i = 0; i < sample->targets; i++) {
		if (!(sample->target[i].count >= 0.5))
			continue;
		fputc(' ', out);
		text_put_plain(out, sample->target[i].function, ": ");
		fprintf(out, ":%.0f", sample->target[i].count);
	}
	fputc('\n', out);
}

static void put_lines(FILE *out, struct body *body, int depth)
{
	qsort(body->sample, body->samples, sizeof(*body->sample), by_offset);
	for (size_t i = 0; i < body->samples; i++) {
		put_offset(out, depth, body->sample[i].offset);
		put_sample(out, &body->sample[i]);
	}
	for (struct body *in = body->inlined; in; in = in->next) {
		if (!(in->total > 0))
			continue;
		put_offset(out, depth, in->at);
		text_put_plain(out, in->name, "");
		fprintf(out, ":%.0f\n", in->total);
		put_lines(out, in, depth + 1);
	}
}

static void put_body(struct body *body, void *arg)
{
	FILE *out = arg;

	if (!(sum_up(body) > 0))
		return;
	text_put_plain(out, body->name, "");
	fprintf(out, ":%.0f:%.0f\n", body->total, body->head);
	put_lines(out, body, 1);
}

int lines_write_llvm(const struct executed *executed, FILE *out)
{
	return lines_each(executed, put_body, out);
}
