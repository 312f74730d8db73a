/* SPDX-License-Identifier: MIT */
/*
 * What "fastinst attach" puts into a process: a control socket and no more. The counts are asked
 * for by it, and nothing is said when the process ends.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "probes/agent/agent.h"
#include "probes/include/fastinst.h"

int fastinst_attached(const char *folder);

/*
 * @folder: of the socket. In a thread that ends when this returns, and that has all signals
 * blocked.
 */
int fastinst_attached(const char *folder)
{
	static atomic_bool started;
	sigset_t trap;
	int ret;

	if (atomic_exchange(&started, true))
		return 0;
	/* Of patches: a thread that has it blocked dies of it. */
	sigemptyset(&trap);
	sigaddset(&trap, SIGTRAP);
	pthread_sigmask(SIG_UNBLOCK, &trap, NULL);
	ret = fi_init();
	if (!ret)
		ret = control_start(folder);
	if (ret)
		atomic_store(&started, false);
	return ret;
}
