/* SPDX-License-Identifier: MIT */
/* In place of starts.c, given.c and jumps.c where there is no decoder. */
#include <errno.h>

#include "probes/calls/given.h"
#include "probes/calls/jumps.h"
#include "probes/calls/starts.h"

int calls_starts(const uint8_t *code, size_t len, bool *starts)
{
	(void)code;
	(void)len;
	(void)starts;
	return -ENOTSUP;
}

int given_open(struct given *given, const uint8_t *code, size_t len, bool pads)
{
	(void)code;
	(void)len;
	(void)pads;
	*given = (struct given){ 0 };
	return -ENOTSUP;
}

void given_close(struct given *given)
{
	(void)given;
}

void given_hook(struct given *given, size_t at)
{
	(void)given;
	(void)at;
}

void given_entered(struct given *given, size_t at)
{
	(void)given;
	(void)at;
}

bool given_find(struct given *given, size_t at, struct given_value *value)
{
	(void)given;
	(void)at;
	(void)value;
	return false;
}

int jumps_follow(const struct jumps *jumps, const struct elf_symbol *function, const uint8_t *code,
		 uint64_t **to, uint32_t *n)
{
	(void)jumps;
	(void)function;
	(void)code;
	*to = NULL;
	*n = 0;
	return 0;
}
