/* SPDX-License-Identifier: MIT */
#ifndef PROBES_MARKER_STUB_H
#define PROBES_MARKER_STUB_H

#include <stdint.h>

#define STUB_BYTES 32

/* The stub of a marker, to stand at @at. -ERANGE: @back is out of reach. */
int stub_make(uint8_t stub[STUB_BYTES], const uint8_t *at, uint32_t id, const uint8_t *back);

#endif
