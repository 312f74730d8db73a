/* SPDX-License-Identifier: MIT */
/*
 * Where near a call there is room for new code, or a ret that is there already.
 * Private.
 */
#ifndef PATCHCORE_CALL_STUB_PLACE_H
#define PATCHCORE_CALL_STUB_PLACE_H

#include <stddef.h>
#include <stdint.h>

/*
 * stub_place - map size bytes, for reading and writing, all in reach of a
 * displacement that counts from end. 0, -ENOSPC: no room there, or -EACCES,
 * -ENOMEM.
 */
int stub_place(uint8_t **at, uintptr_t end, size_t size);

/*
 * stub_find_ret - a ret in the same mapping as the call that ends at end, in its
 * reach. 0: there is none.
 *
 * Any byte C3 in executable memory is a ret for what calls it, but one that
 * is part of an operand may be patched. So only one that has the padding of a
 * function's end behind it is taken.
 */
uintptr_t stub_find_ret(uintptr_t end);

#endif
