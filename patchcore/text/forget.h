/* SPDX-License-Identifier: MIT */
/*
 * Sites whose code is no more. Private; the public half is pc_forget().
 */
#ifndef PATCHCORE_TEXT_FORGET_H
#define PATCHCORE_TEXT_FORGET_H

/*
 * forget_gone - forget what is in flight in objects that dlclose() took away. To
 * be called, with no lock held, before a site becomes known. Cheap as long as
 * nothing is loaded or unloaded. Not async-signal-safe.
 */
void forget_gone(void);

#endif
