/* SPDX-License-Identifier: MIT */
#ifndef PROBES_CALLS_STARTS_H
#define PROBES_CALLS_STARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * calls_starts - where the instructions of a function start.
 * @code:   all of it
 * @starts: of len; true where an instruction starts
 *
 * -ENOEXEC: not all of it comes out as instructions that end where it ends. -ENOTSUP: built
 * without a decoder.
 */
int calls_starts(const uint8_t *code, size_t len, bool *starts);

#endif
