/* SPDX-License-Identifier: MIT */
#include "probes/calls/starts.h"

#include <errno.h>
#include <string.h>

#include "patchcore/check/decode.h"

#define STRETCH 64 /* what decode_layout() takes */

int calls_starts(const uint8_t *code, size_t len, bool *starts)
{
	struct layout layout;
	size_t at = 0;

	memset(starts, 0, len * sizeof(*starts));
	while (at < len) {
		size_t size = len - at < STRETCH ? len - at : STRETCH;
		size_t until = size < len - at ? size - DECODE_INSN_MAX : size;

		if (decode_layout(&layout, code + at, size, until, NULL) < 0 || !layout.end)
			return -ENOEXEC;
		for (size_t i = 0; i < layout.end; i++)
			starts[at + i] = layout.starts >> i & 1;
		at += layout.end;
	}
	return 0;
}
