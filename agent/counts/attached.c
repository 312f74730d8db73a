/* SPDX-License-Identifier: MIT */
/*
 * What "fastinst attach" puts into a process: a control socket and no more. The counts are asked
 * for by it, and nothing is said when the process ends. "fastinst detach" takes it out again.
 */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <patchcore/patchcore.h>

#include "agent/counts/agent.h"
#include "agent/counts/base.h"
#include "probes/include/fastinst.h"

#define STUBS 64

static atomic_bool started;
static int opened; /* how often commands have attached this library */
/* A detach was killed before it unloaded the library, which can do nothing else any more. */
static bool is_memory_released;
static bool program_has_library; /* the program uses libfastinst itself */

int fastinst_attached(char *text);

static int start_agent(const char *folder)
{
	int ret;

	opened++;
	if (is_memory_released)
		return -EIDRM;
	if (atomic_exchange(&started, true))
		return 0;
	unblock_traps();
	program_has_library = fi_scan() != -ESHUTDOWN;
	ret = fi_init();
	if (!ret)
		ret = control_start(folder, NULL);
	if (ret)
		atomic_store(&started, false);
	return ret;
}

/* What is loaded so is never unloaded. */
static bool is_loaded(const char *name)
{
	return dlmopen(LM_ID_BASE, name, RTLD_LAZY | RTLD_NOLOAD);
}

/* Answers with the size of stubs, and where they are; or that the program uses the library. */
static int stop_agent(char *text)
{
	void *stubs[STUBS];
	size_t size;
	int ret;
	long n;

	if (!started)
		return -ENOENT;
	program_has_library |=
		is_loaded("libfastinst-profile.so") || is_loaded("libfastinst-edges.so");
	trace_start(NULL);
	ret = program_has_library ? 0 : fi_fini();
	if (ret)
		return ret;
	control_stop();
	started = false;
	n = fi_stubs(stubs, STUBS, &size);
	if (program_has_library || n > STUBS)
		return DETACH_BESIDE;
	text += sprintf(text, "%zx", size);
	while (n)
		text += sprintf(text, " %" PRIxPTR, (uintptr_t)stubs[--n]);
	return 0;
}

/*
 * @text: the folder of the socket, or what base.h has. In a thread that ends when this returns,
 * and that has all signals blocked.
 */
int fastinst_attached(char *text)
{
	int ret;

	if (!strcmp(text, DETACH_CLOSE))
		return stop_agent(text);
	if (strcmp(text, DETACH_UNLOAD) != 0)
		return start_agent(text);
	/* All other threads are stopped, and none is about to run an INT3. */
	ret = pc_fini();
	if (ret)
		return ret;
	trace_unload();
	ret = fi_unload();
	is_memory_released = !ret;
	return ret < 0 ? ret : opened;
}
