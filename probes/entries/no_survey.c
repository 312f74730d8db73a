/* SPDX-License-Identifier: MIT */
/* In place of survey.c where there is no decoder. */
#include <errno.h>

#include "probes/entries/survey.h"

bool survey_ready(void)
{
	return false;
}

int survey_make(struct survey *survey, const struct elf *elf)
{
	(void)elf;
	*survey = (struct survey){ 0 };
	return -ENOTSUP;
}

void survey_free(struct survey *survey)
{
	(void)survey;
}

int survey_move(const struct survey_site *site, uint64_t from, uint64_t to,
		uint8_t moved[SURVEY_ROOM])
{
	(void)site;
	(void)from;
	(void)to;
	(void)moved;
	return -ENOTSUP;
}
