/* SPDX-License-Identifier: MIT */
/*
 * Anybody may have edited the config: what is accepted must make sense, and
 * must be the same config again after it is written down and read.
 */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "patchcore/tests/conf_sample.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check_ranges(const struct machine_conf *conf)
{
	must(conf->first_wait <= MACHINE_CONF_WAIT && conf->second_wait <= MACHINE_CONF_WAIT);
	must(conf->upper_p > 0 && conf->upper_p <= 1);
	must(conf->confidence > 0.5 && conf->confidence < 1);
	must(conf->window == 8 || conf->window == 16 || conf->window == 32 || conf->window == 64);
	must(conf->window_p > 0 && conf->window_p <= 1);
}

static void check_again(const struct machine_conf *conf)
{
	struct conf_lines lines = conf_lines(conf);
	char text[CONF_TEXT], why[160];
	size_t size = conf_text(&lines, text);
	struct machine_conf again;

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct machine_conf conf;
	char *text = malloc(size + 1), why[160];
	int ret;

	must(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	ret = machine_conf_parse(&conf, text, size, why, sizeof(why));
	free(text);
	must(ret == 0 || ret == -EINVAL);
	check_why(why, sizeof(why), ret);
	if (ret < 0)
		return 0;
	check_ranges(&conf);
	check_again(&conf);
	return 0;
}

#ifndef TMAX_LIBFUZZER
#include "results/tests/fuzz_driver.h"

#define VARIANTS 3

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
	"usable = no\n",
	"nan",
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
	conf.window = 8u << variant;
	conf.upper_p = variant ? 1e-300 : 1;
	conf.first_wait = variant * (MACHINE_CONF_WAIT / 2);
	lines = conf_lines(&conf);
	if (variant == 2)
		conf_add(&lines, "placement same_core", "first", "1200");
	return conf_text(&lines, text);
}

int main(int argc, char **argv)
{
	static char texts[VARIANTS][CONF_TEXT];
	struct fuzz_input inputs[VARIANTS];
	struct fuzz_corpus corpus = { .inputs = inputs, .count = VARIANTS, .tokens = tokens };

	for (unsigned i = 0; i < VARIANTS; i++) {
		struct machine_conf conf;
		char why[160];

		inputs[i] = (struct fuzz_input){ texts[i], write_variant(i, texts[i]) };
		/* A corpus that is refused would fuzz nothing but the refusal. */
		must(machine_conf_parse(&conf, texts[i], inputs[i].size, why, sizeof(why)) == 0);
	}
	return fuzz_main(argc, argv, &corpus);
}
#endif
