/* SPDX-License-Identifier: MIT */
/* For tests of machine.conf as a text: what reads as the sample, and what is refused. */
#ifndef PATCHCORE_TESTS_CONF_CHECK_H
#define PATCHCORE_TESTS_CONF_CHECK_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "patchcore/machine/machine_conf.h"
#include "patchcore/tests/conf_sample.h"

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

static struct machine_conf sample;
static struct conf_lines sample_lines; /* of two levels */

static inline int make_sample(void **state)
{
	(void)state;
	sample = conf_here();
	sample.level[0].line.toggles = sample.level[0].page.toggles = UINT64_MAX;
	sample.window = 32;
	sample.window_p = 3.25e-12;
	sample.long_run = true;
	sample.runs = 3;
	sample.measured = 1700000000;
	sample.membarrier_ticks = 73000;
	sample.level[0].ticks = 3100;
	sample.level[0].page.tears = 7;
	conf_add_level(&sample, 900, 2e-12, 3e-11);
	sample_lines = conf_lines(&sample);
	return 0;
}

static inline int parse(const char *text, size_t size, struct machine_conf *conf, char why[160])
{
	return machine_conf_parse(conf, text, size, why, 160);
}

static inline void expect_refused(const char *text, const char *about)
{
	struct machine_conf conf;
	char why[160];

	if (parse(text, strlen(text), &conf, why) != -EINVAL)
		fail_msg("accepted: %s", text);
	if (!strstr(why, about) || strchr(why, '\n'))
		fail_msg("'%s' is not about '%s'", why, about);
}

static inline void expect_lines_refused(const struct conf_lines *lines, const char *about)
{
	char text[CONF_TEXT];

	conf_text(lines, text);
	expect_refused(text, about);
}

static inline void expect_sample(const char *text)
{
	struct machine_conf conf;
	char why[160];

	if (parse(text, strlen(text), &conf, why) != 0)
		fail_msg("'%s' about: %s", why, text);
	assert_string_equal(why, "");
	assert_true(conf_same(&conf, &sample));
}

static inline void sample_text(char text[CONF_TEXT])
{
	conf_text(&sample_lines, text);
}

static inline int parse_lines(const struct conf_lines *lines, struct machine_conf *conf)
{
	char text[CONF_TEXT], why[160];

	return parse(text, conf_text(lines, text), conf, why);
}

static inline void expect_taken(const struct conf_lines *lines)
{
	struct machine_conf conf;

	assert_int_equal(parse_lines(lines, &conf), 0);
}

#endif
