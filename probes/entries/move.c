/* SPDX-License-Identifier: MIT */
/*
 * The instructions of a site at another address.
 */
#include <errno.h>
#include <string.h>

#include "probes/entries/survey.h"
#include "probes/insn/insn.h"

bool survey_ready(void)
{
	return insn_support() == 0;
}

static int put_distance(uint8_t *bytes, uint64_t target, uint64_t next)
{
	int64_t distance = (int64_t)(target - next);
	int32_t near = (int32_t)distance;

	memcpy(bytes, &near, sizeof(near));
	return near == distance ? 0 : -ERANGE;
}

/* The length that one instruction takes there. */
static int move_insn(const struct insn *insn, const uint8_t *code, uint64_t to, uint8_t *moved)
{
	int len = insn->flow == FLOW_JUMP ? 5 : 6;
	int ret;

	if (insn->flow == FLOW_JUMP || insn->flow == FLOW_BRANCH) {
		moved[0] = len == 5 ? 0xe9 : 0x0f;
		if (len == 6)
			moved[1] = 0x80 | insn->condition;
		ret = put_distance(moved + len - 4, insn->target, to + (uint64_t)len);
		return ret ? ret : len;
	}
	memcpy(moved, code, insn->len);
	if (!insn->distance)
		return insn->len;
	ret = put_distance(moved + insn->distance, insn->memory, to + insn->len);
	return ret ? ret : insn->len;
}

int survey_move(const struct survey_site *site, uint64_t from, uint64_t to,
		uint8_t moved[SURVEY_ROOM])
{
	struct insn insn;
	int used = 0;

	if (insn_support())
		return insn_support();
	for (unsigned at = 0; at < site->len; at += insn.len) {
		int len;

		if (!insn_read(&insn, site->code + at, site->len - at, from + at))
			return -ENOEXEC;
		len = move_insn(&insn, site->code + at, to + (uint64_t)used, moved + used);
		if (len < 0)
			return len;
		used += len;
	}
	return used;
}
