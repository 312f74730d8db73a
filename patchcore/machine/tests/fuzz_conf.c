/* SPDX-License-Identifier: MIT */
/*
 * The config may have been edited by hand: what is accepted must make sense, must not contradict
 * itself, and must be the same config again after it is written down and read.
 *
 * An input is a text, or, if it begins with a byte of 1, says which values a well-formed text
 * shall have: so that the values meet each other, and not only the parser.
 *
 * Before it fuzzes, the program tries itself: with any one rule of the library left out, it
 * must find a config that should not have been accepted.
 */
#define _GNU_SOURCE /* memfd_create() */
#define FUZZ_RUNS   35000

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "patchcore/machine/kinds.h"
#include "patchcore/machine/machine_conf.h"
#include "patchcore/tests/conf_sample.h"
#include "results/tests/fuzz.h"

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))
#define VALUES	      1	    /* the first byte of an input of values */
#define NO_RULE	      (~0u) /* is left out */

bool __real_conf_rule(unsigned i, const struct machine_conf *conf, char *why, size_t size);
bool __wrap_conf_rule(unsigned i, const struct machine_conf *conf, char *why, size_t size);

static unsigned left_out = NO_RULE;

bool __wrap_conf_rule(unsigned i, const struct machine_conf *conf, char *why, size_t size)
{
	if (!__real_conf_rule(i, conf, why, size))
		return false;
	if (i == left_out)
		why[0] = '\0';
	return true;
}

/* --- What is true of every config that is accepted --------------------------------- */

static void check_level(const struct machine_conf_level *level)
{
	must(level->waits.first <= MACHINE_CONF_WAIT && level->waits.second <= MACHINE_CONF_WAIT);
	must(level->waits.stretch <= MACHINE_CONF_STRETCH && level->ticks <= MACHINE_CONF_COST);
	must(level->line.upper_p > 0 && level->line.upper_p <= 1);
	must(level->page.upper_p > 0 && level->page.upper_p <= 1);
}

static void check_ranges(const struct machine_conf *conf)
{
	must(conf->schema == MACHINE_CONF_SCHEMA);
	must(machine_conf_all_levels(conf) <= MACHINE_CONF_LEVELS && conf->runs > 0);
	must(conf->measured <= MACHINE_CONF_TIME && conf->membarrier_ticks <= MACHINE_CONF_COST);
	for (unsigned i = 0; i < machine_conf_all_levels(conf); i++)
		check_level(&conf->level[i]);
	must(conf->confidence >= 0.9 && conf->confidence < 1);
	must(conf->window == 8 || conf->window == 16 || conf->window == 32 || conf->window == 64);
	must(conf->window_p > 0 && conf->window_p <= 1);
	must(conf->verdict <= MACHINE_CONF_INCONCLUSIVE);
	must(cpus_count(&conf->cpus) > 0);
	must(conf->window_confidence >= 0.9 && conf->window_confidence < 1);
}

/* Clopper and Pearson's bound without a tear, by libm, which the library has not. */
static void check_bound(double toggles, double tears, double confidence, double upper_p)
{
	double low = toggles > 0 ? -expm1(log1p(-confidence) / toggles) : 1;

	if (tears > 0)
		low = fmax(low, toggles > 0 ? fmin(1, tears / toggles) : 1);
	must(upper_p >= low * (1 - 1e-7));
}

static void check_level_bound(double confidence, const struct machine_conf_bound *bound)
{
	check_bound((double)bound->toggles, (double)bound->tears, confidence, bound->upper_p);
}

/* With stores that take no time at all, both syncs still take some. */
static void check_waits(const struct machine_conf_level *level)
{
	for (uint64_t latency = 1; latency <= 1000; latency *= 10) {
		uint64_t stretched = level->waits.stretch * latency;

		must(level->waits.first > 0 || stretched > 0);
		must(level->waits.second > 0 || stretched > 0);
	}
}

static void check_order(const struct machine_conf *conf)
{
	for (unsigned i = 1; i < machine_conf_all_levels(conf); i++)
		for (unsigned k = 0; k < i; k++) {
			const struct machine_conf_level *one = &conf->level[k],
							*two = &conf->level[i];

			must(one->waits.stretch != two->waits.stretch || one->rest != two->rest ||
			     (one->waits.first <= two->waits.first &&
			      one->waits.second <= two->waits.second));
		}
}

static void check_agreement(const struct machine_conf *conf)
{
	for (unsigned i = 0; i < machine_conf_all_levels(conf); i++) {
		check_level_bound(conf->confidence, &conf->level[i].line);
		check_level_bound(conf->confidence, &conf->level[i].page);
		must((conf->level[i].rest > 0) == (i >= conf->levels + conf->long_levels));
	}
	check_order(conf);
	if (conf->window_confidence > 0)
		check_bound((double)conf->window_toggles, 0, conf->window_confidence,
			    conf->window_p);
	if (conf->identity.cpus)
		must(cpus_count(&conf->cpus) <= conf->identity.cpus);
	if (!conf->usable)
		return;
	must(conf->verdict != MACHINE_CONF_FAIL && conf->verdict != MACHINE_CONF_INCONCLUSIVE);
	must(conf->levels > 0);
	for (unsigned i = 0; i < machine_conf_all_levels(conf); i++) {
		must(conf->level[i].line.toggles > 0 || conf->level[i].page.toggles > 0);
		check_waits(&conf->level[i]);
	}
}

static void check_again(const struct machine_conf *conf)
{
	struct conf_lines lines;
	char text[CONF_TEXT], why[160];
	struct machine_conf again;
	size_t size;

	/* A list may be too long for conf_lines(). */
	if (cpus_print(&conf->cpus, NULL, 0) >= sizeof(lines.line[0].value))
		return;
	lines = conf_lines(conf);
	size = conf_text(&lines, text);
	must(machine_conf_parse(&again, text, size, why, sizeof(why)) == 0);
	must(conf_same(conf, &again));
}

/* It stands in reports: one line, and there is one exactly if something is wrong. */
static void check_why(const char *why, size_t size, int ret)
{
	must(strnlen(why, size) < size);
	must(!strchr(why, '\n'));
	must((ret == 0) == (why[0] == '\0'));
}

/* The same text as a line of kinds: no window across which stores tore, no bound out of nothing. */
static void check_kind(const char *text)
{
	static const struct identity id = { .vendor = "AuthenticAMD", .family = 26, .model = 2 };
	struct kind kind;

	if (!kind_take(&kind, text, &id)) {
		must(kind.runs == 0 && kind.torn[0] + kind.torn[1] + kind.torn[2] == 0);
		return;
	}
	must(kind.family == id.family && kind.model == id.model);
	must(kind.window == 8 || kind.window == 16 || kind.window == 32);
	for (unsigned i = 0; i < 3; i++)
		must(kind.window <= 8u << i || !kind.torn[i]);
	check_bound((double)kind.stores, 0, 0.95, 1 / (double)kind.one_in);
	must(kind.runs >= kind.hours && kind.runs <= kind.stores);
}

static void check_text(const char *text, size_t size)
{
	struct machine_conf conf;
	char why[160];
	int ret = machine_conf_parse(&conf, text, size, why, sizeof(why));

	must(ret == 0 || ret == -EINVAL);
	check_why(why, sizeof(why), ret);
	if (ret < 0)
		return;
	check_ranges(&conf);
	check_agreement(&conf);
	check_again(&conf);
}

/* --- Values that meet ------------------------------------------------------------------ */

#define COUNTS "0", "1", "2", "10", "1000000", "50000000", "18446744073709551615"
#define BOUNDS                                                                                     \
	"1e-300", "1e-20", "1.7e-19", "1e-9", "5.9e-8", "6e-8", "2.99e-06", "3e-06", "0.2588",     \
		"0.2589", "0.5", "0.94", "0.95", "0.9999", "1"

static const struct {
	const char *section, *name, *value[16];
} choices[] = {
	{ "tmax", "schema", { "4", "3" } },
	{ "tmax", "verdict", { "pass", "fail", "inconclusive" } },
	{ "scope", "cpus", { "0", "0-1", "0-1,7", "1-8191" } },
	{ "identity", "cpus", { "0", "1", "2", "3", "9000" } },
	{ "wait", "usable", { "yes", "no" } },
	{ "wait", "levels", { "2", "1", "0", "3" } },
	{ "level 1", "first", { "0", "1", "600" } },
	{ "level 1", "second", { "0", "1", "700" } },
	{ "level 1", "stretch", { "0", "1", "64" } },
	{ "level 1", "line_toggles", { COUNTS } },
	{ "level 1", "line_tears", { COUNTS } },
	{ "level 1", "line_p", { BOUNDS } },
	{ "level 1", "page_toggles", { COUNTS } },
	{ "level 1", "page_tears", { COUNTS } },
	{ "level 1", "page_p", { BOUNDS } },
	{ "level 2", "first", { "0", "1", "600" } },
	{ "level 2", "second", { "0", "1", "700" } },
	{ "level 2", "stretch", { "0", "1", "64" } },
	{ "wait", "confidence", { "0.5", "0.9", "0.95", "0.999" } },
	{ "window", "bytes", { "8", "16", "64" } },
	{ "window", "toggles", { COUNTS } },
	{ "window", "upper_p", { BOUNDS } },
	{ "window", "confidence", { "0.5", "0.9", "0.95", "0.999" } },
};

#define LAYOUTS 4

/* A config with so many levels. */
static struct conf_lines layout(unsigned levels)
{
	struct machine_conf conf = conf_here();

	conf.levels = 0;
	while (conf.levels < levels)
		conf_add_level(&conf, 600 + conf.levels, 1e-10, 1e-10);
	return conf_lines(&conf);
}

/* If the layout has it. */
static void set(struct conf_lines *lines, const char *section, const char *name, const char *value)
{
	for (size_t i = 0; i < lines->count; i++)
		if (strcmp(lines->line[i].section, section) == 0 &&
		    strcmp(lines->line[i].name, name) == 0)
			snprintf(lines->line[i].value, sizeof(lines->line[i].value), "%s", value);
}

static void check_values(const uint8_t *data, size_t size)
{
	static struct conf_lines here[LAYOUTS];
	struct conf_lines lines;
	char text[CONF_TEXT];

	if (!here[0].count)
		for (unsigned i = 0; i < LAYOUTS; i++)
			here[i] = layout(i);
	lines = here[size > 0 ? data[0] % LAYOUTS : 0];
	data += size > 0;
	size -= size > 0;
	for (size_t i = 0; i < LENGTH(choices); i++) {
		unsigned count = 0;

		while (count < LENGTH(choices[i].value) && choices[i].value[count])
			count++;
		if (i < size)
			set(&lines, choices[i].section, choices[i].name,
			    choices[i].value[data[i] % count]);
	}
	size = conf_text(&lines, text);
	check_text(text, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (size > 0 && data[0] == VALUES) {
		check_values(data + 1, size - 1);
		return 0;
	}
	text = malloc(size + 1);
	must(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	check_text(text, size);
	check_kind(text);
	free(text);
	return 0;
}

#ifndef TMAX_LIBFUZZER
#define VARIANTS 4

static const char *const tokens[] = {
	"[wait]\n",
	"[window]\n",
	"[identity]\n",
	"[",
	"]",
	"=",
	":",
	";",
	" ;",
	"#",
	"\n",
	"\n ",
	"\r",
	"\xef\xbb\xbf",
	"first = 1\n",
	"upper_p = 0.5\n",
	"[level 1]\n",
	"[level 3]\n",
	"levels = 3\n",
	"long_levels = 1\n",
	"rested_levels = 1\n",
	"rest = 1\n",
	"page_p = 0.5\n",
	"usable = no\n",
	"nan",
	"\t",
	"AuthenticAMD\t26\t2\t",
	"99999999999999999999",
	"yes",
	"e-9",
	"                                                                                    ",
	NULL,
};

static size_t write_variant(unsigned variant, char text[CONF_TEXT])
{
	struct machine_conf conf = conf_here();
	struct conf_lines lines;

	conf.usable = variant != 1;
	conf.window = 8u << variant % 4;
	conf.verdict = variant == 1 ? MACHINE_CONF_FAIL : MACHINE_CONF_PASS;
	conf.level[0].page.toggles = variant ? UINT64_MAX : 1000;
	conf.level[0].page.upper_p = variant ? 1e-12 : 1;
	conf.level[0].waits.first = variant * (MACHINE_CONF_WAIT / 4);
	conf.level[0].line = conf.level[0].page;
	if (variant == 2)
		conf_add_level(&conf, MACHINE_CONF_WAIT, 1e-13, 1e-12);
	lines = conf_lines(&conf);
	if (variant == 2)
		conf_add(&lines, "placement same_core", "first", "1200");
	return conf_text(&lines, text);
}

/* The fuzzer must be able to find something. */
static bool finds_what_is_left_out(const struct fuzz_corpus *corpus)
{
	struct machine_conf conf = conf_here();
	char why[160];
	bool all = true;

	for (unsigned rule = 0; __real_conf_rule(rule, &conf, why, sizeof(why)); rule++) {
		int status;

		left_out = rule;
		status = fuzz_in_child(corpus);
		left_out = NO_RULE;
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)
			continue;
		fprintf(stderr, "nothing found without rule %u\n", rule);
		all = false;
	}
	return all;
}

int main(int argc, char **argv)
{
	/* Of configs that are accepted, with one byte for each choice. */
	static const uint8_t values[] = { VALUES, 2, 0, 0, 0, 1, 0, 0, 1, 1, 1, 5, 0,
					  6,	  5, 0, 6, 2, 2, 1, 2, 0, 5, 6, 2 };
	static const uint8_t unknown[] = { VALUES, 1, 0, 0,  0, 1, 0, 1, 1, 1, 1, 0, 0,
					   14,	   5, 0, 14, 2, 2, 1, 2, 0, 5, 6, 2 };
	static char texts[VARIANTS][CONF_TEXT];
	static const char kinds[] =
		"AuthenticAMD\t26\t2\t32\t684604203\t37942239\t23\t2\t1\t0\t0\t11717\n";
	struct fuzz_input inputs[VARIANTS + 3] = {
		[VARIANTS] = { values, sizeof(values) },
		[VARIANTS + 1] = { unknown, sizeof(unknown) },
		[VARIANTS + 2] = { (const uint8_t *)kinds, sizeof(kinds) - 1 },
	};
	struct fuzz_corpus corpus = { .inputs = inputs, .count = VARIANTS + 3, .tokens = tokens };

	for (unsigned i = 0; i < VARIANTS; i++) {
		struct machine_conf conf;
		char why[160];

		inputs[i] = (struct fuzz_input){ texts[i], write_variant(i, texts[i]) };
		/* A corpus that is refused would fuzz nothing but the refusal. */
		must(machine_conf_parse(&conf, texts[i], inputs[i].size, why, sizeof(why)) == 0);
	}
	if (argc < 2 && !finds_what_is_left_out(&corpus))
		return 1;
	return fuzz_main(argc, argv, &corpus);
}
#endif
