/* SPDX-License-Identifier: MIT */
/*
 * Whatever the text is: it is read and checked, or the error stands at a place that the text has,
 * in words that can be printed. A place behind the text shows that the oracle can fail.
 */
#define FUZZ_RUNS 100000

#include <errno.h>

#include "metrics/language/request.h"
#include "metrics/language/tests/paper.h"
#include "metrics/language/tree.h"
#include "results/tests/fuzz.h"

static bool is_printable(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ')
			return false;
	return true;
}

/* Whether the text has that line, and it is so long. */
static bool has_place(const char *text, struct mdl_place place)
{
	for (unsigned i = 1; i < place.line; i++) {
		text = strchr(text, '\n');
		if (!text)
			return false;
		text++;
	}
	return place.line && place.column && place.column <= strcspn(text, "\n") + 1;
}

static bool is_sound(const char *text, int ret, const struct mdl_error *error)
{
	if (!ret)
		return !*error->text;
	return ret == -EINVAL && *error->text && is_printable(error->text) &&
	       has_place(text, error->place);
}

static void complain_to_nobody(const char *text, const struct mdl_error *error)
{
	FILE *out = fopen("/dev/null", "w");

	must(out != NULL);
	mdl_complain(out, "-e", text, error);
	fclose(out);
}

/* All code of a text that is right is made for all points where it stands. */
static void check_text(const struct mdl *mdl, const char *text)
{
	struct mdl_error error;
	int ret = mdl_check(mdl, &error);

	if (!ret || error.place.line)
		must(is_sound(text, ret, &error));
	else
		must(ret == -EINVAL && *error.text && is_printable(error.text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	struct mdl_error error;
	struct mdl mdl;
	int ret;

	must(text != NULL);
	ret = mdl_read(&mdl, text, &error);
	must(is_sound(text, ret, &error));
	if (ret)
		complain_to_nobody(text, &error);
	else
		check_text(&mdl, text);
	mdl_free(&mdl);
	free(text);
	return 0;
}

#ifndef TMAX_LIBFUZZER
static void must_read(const char *text)
{
	struct mdl_error error;
	struct mdl mdl;

	must(!mdl_read(&mdl, text, &error));
	must(mdl.metrics || mdl.lists || mdl.constraints);
	mdl_free(&mdl);
}

/* What is wrong is told at its place. */
static void must_refuse(const char *text, unsigned line, unsigned column, const char *why)
{
	struct mdl_error error;
	struct mdl mdl;

	must(mdl_read(&mdl, text, &error) == -EINVAL);
	if (error.place.line != line || error.place.column != column ||
	    strcmp(error.text, why) != 0) {
		mdl_complain(stderr, "WRONG", text, &error);
		must(false);
	}
	mdl_free(&mdl);
}

static void must_fail(void)
{
	struct mdl_error error = { .place = { 3, 1 }, .text = "x" };

	must(is_sound("a\nb\nc", -EINVAL, &error));
	must(!is_sound("a\nb", -EINVAL, &error));
	error.place = (struct mdl_place){ 1, 3 };
	must(!is_sound("a\nb", -EINVAL, &error));
}

int main(int argc, char **argv)
{
	static const char *const tokens[] = { "(*",	  "*)",	      "foreach ", "$constraint[0]",
					      ".entry",	  ".return ", "append ",  "preInsn ",
					      "if (",	  "else ",    "{",	  "}",
					      "base is ", "counter ", "replace ", NULL };
	static const struct fuzz_input inputs[] = {
		FUZZ_INPUT(PAPER_CALLS),
		FUZZ_INPUT(PAPER_STEPS),
		FUZZ_INPUT(PAPER_FIGURE_2),
		FUZZ_INPUT(ALL_ELSE),
	};
	const struct fuzz_corpus corpus = { .inputs = inputs, .count = 4, .tokens = tokens };

	for (size_t i = 0; i < corpus.count; i++)
		must_read(inputs[i].data);
	must_refuse(PAPER_LIST PAPER_PROCEDURE("}\n") PAPER_METRIC, 11, 1,
		    "expected the end of the text, constraint, list, metric or ';'");
	must_refuse("metric x {\n\tunitsType odd;\n}", 2, 12,
		    "unitsType is unnormalized, normalized or sampled, not odd");
	must_refuse("list x is function { }", 1, 11, "expected file, module, procedure or thread");
	must_refuse("metric x { base is counter { append preInsn f.entry (* x++ *) } }", 1, 60,
		    "expected ';'");
	must_refuse("metric x { base is counter {\n append preInsn f (* x++; *) } }", 2, 19,
		    "expected '.'");
	must_refuse("metric x { base is counter { append preInsn f.entry (* x++;", 1, 60,
		    "the text ends, expected a name, *), if, ';' or '{'");
	must_refuse("metric @", 1, 8, "expected a name");
	must_fail();
	return fuzz_main(argc, argv, &corpus);
}
#endif
