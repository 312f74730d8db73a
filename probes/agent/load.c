/* SPDX-License-Identifier: MIT */
/*
 * Objects that the loader has just loaded, before one of their constructors runs.
 *
 * dlopen() looks for its caller by its return address, to find that one's folders: so it is left
 * alone. But the code that each object begins to run with (_init, of the C library's crti.o) calls
 * this function of profilers where there is one. The control thread finds objects that were linked
 * without that file, and those of a program that exports such a function itself.
 */
#include "probes/agent/agent.h"

void __gmon_start__(void);

void __gmon_start__(void)
{
	agent_scan();
}
