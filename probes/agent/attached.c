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

#include "probes/agent/agent.h"
#include "probes/agent/base.h"
#include "probes/include/fastinst.h"

#define STUBS 64

static atomic_bool started;
static int opened;	/* so often, by those who attached it */
static bool given_back; /* its memory: it can only be unloaded, which a command that was killed did
			   not */
static bool beside;	/* the program uses libfastinst itself */

int fastinst_attached(char *text);

static int attach(const char *folder)
{
	int ret;

	opened++;
	if (given_back)
		return -EIDRM;
	if (atomic_exchange(&started, true))
		return 0;
	unblock_traps();
	beside = fi_scan() != -ESHUTDOWN;
	ret = fi_init();
	if (!ret)
		ret = control_start(folder, NULL);
	if (ret)
		atomic_store(&started, false);
	return ret;
}

/* It stays for good then anyway. */
static bool is_loaded(const char *name)
{
	return dlmopen(LM_ID_BASE, name, RTLD_LAZY | RTLD_NOLOAD);
}

/* The size of stubs, and where they are; or that others use the library. */
static int detach(char *text)
{
	void *stubs[STUBS];
	size_t size;
	int ret;
	long n;

	if (!started)
		return -ENOENT;
	beside |= is_loaded("libfastinst-profile.so") || is_loaded("libfastinst-edges.so");
	trace_start(NULL);
	ret = beside ? 0 : fi_fini();
	if (ret)
		return ret;
	control_stop();
	started = false;
	n = fi_stubs(stubs, STUBS, &size);
	if (beside || n > STUBS)
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
		return detach(text);
	if (strcmp(text, DETACH_UNLOAD) != 0)
		return attach(text);
	/* All other threads are stopped, and none has an INT3 before it. */
	ret = pc_fini();
	if (ret)
		return ret;
	trace_unload();
	ret = fi_unload();
	given_back = !ret;
	return ret < 0 ? ret : opened;
}
