/* SPDX-License-Identifier: MIT */
/*
 * Start and end of the agent, and its environment:
 *
 *	FASTINST_ON	  patterns of fi_find(), as text_word() reads them: on from the start
 *	FASTINST_OUTPUT	  folder; each process leaves its counts there in a file named by its PID.
 *			  Without it they go to stderr at the end
 *	FASTINST_ENTRIES  objects of which functions are taken that nothing was compiled into
 *	FASTINST_CONTROL  "off": no control socket
 *	FASTINST_WRITABLE anything: code with probes stays writable, see fi_keep_writable()
 *	FASTINST_TRACE	  folder of "fastinst trace": what is turned on writes events there
 */
#include "agent/counts/agent.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "agent/counts/base.h"
#include "base/clock.h"
#include "base/text.h"
#include "probes/include/fastinst.h"

static bool started;
static struct agent_pattern *patterns; /* of FASTINST_ON */
static size_t patterns_n;
static _Atomic uint32_t looked_at; /* probes below that id: FASTINST_ON has turned them on */

static void agent_complain(const char *what, int error)
{
	bool filtered = (error == -EPERM || error == -EACCES || error == -ENOSYS) &&
			prctl(PR_GET_SECCOMP) > 0;

	say_line("%s: %s\n", what,
		 filtered ? "a seccomp filter is in force; probes need membarrier, mprotect and "
			    "mmap of code"
			  : explain_error(error));
}

/*
 * To turn on a pattern looks for new objects, and so does the control socket: earlier patterns then
 * have to look at the probes of those objects. Two threads may do the same work: neither waits for
 * the other, which may wait for the loader's lock.
 */
static void turn_on_new(void)
{
	uint32_t from, end;
	long n;

	while (from = atomic_load(&looked_at), end = fi_probes(), end != from) {
		/* Only new probes: "fastinst off" may have turned others off. */
		for (size_t i = 0; i < patterns_n; i++) {
			n = agent_change(patterns[i].text, true, from);
			patterns[i].matched |= n != 0 && n != -EINVAL;
			if (n < 0)
				agent_complain(patterns[i].text, (int)n);
		}
		atomic_store(&looked_at, end);
	}
}

/* As in dlopen(), which the program has called: no cancellation, and errno stays. */
void agent_scan(void)
{
	int cancel, saved = errno;

	if (!started)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (fi_scan() >= 0)
		turn_on_new();
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
}

/* Once a second while objects are read, before the program itself starts. */
static void say_progress(unsigned done, unsigned of)
{
	static double last;
	double now = seconds_now();

	if (last && now - last < 1)
		return;
	if (last)
		say_line("%u of %u objects are read, with %u probes\n", done, of, fi_probes());
	last = now;
}

__attribute__((constructor)) static void start(void)
{
	static const struct leaving leaving = { report_final, report_image, report_back };
	const char *control = getenv("FASTINST_CONTROL"), *trace = getenv("FASTINST_TRACE");
	const char *on = getenv("FASTINST_ON");
	char *rest;
	int ret = fi_take_entries(getenv("FASTINST_ENTRIES"));

	if (ret < 0)
		agent_complain("functions that nothing was compiled into are left out", ret);
	fi_set_progress(say_progress);
	ret = fi_init();
	fi_set_progress(NULL);
	if (ret < 0) {
		agent_complain("the probes cannot be used, the program runs without them", ret);
		return;
	}
	if (getenv("FASTINST_WRITABLE"))
		fi_keep_writable(true);
	pthread_atfork(NULL, NULL, report_forked);
	/* A copy: the program may clear its environment before it loads a library. */
	rest = on ? strdup(on) : NULL;
	patterns = rest ? calloc(strlen(rest) / 2 + 1, sizeof(*patterns)) : NULL;
	while (patterns && rest) {
		patterns[patterns_n].text = text_word(&rest);
		patterns_n += *patterns[patterns_n].text != '\0';
	}
	report_begin(getenv("FASTINST_OUTPUT"), patterns, patterns_n);
	if (trace)
		ret = trace_start(trace);
	if (ret < 0)
		agent_complain("events cannot be written, calls are counted", ret);
	turn_on_new();
	started = true;
	set_leaving(&leaving);
	ret = !control || strcmp(control, "off") != 0 ? control_start(NULL, agent_scan) : 0;
	if (ret < 0)
		agent_complain("no control socket", ret);
}

void __gmon_start__(void);

/*
 * Objects that the loader has just loaded, before one of their constructors runs.
 *
 * dlopen() searches the folders of its caller, which it knows by the return address, so it cannot
 * be wrapped. But the code that each object begins to run with (_init, of the C library's crti.o)
 * calls this function of profilers where there is one. The control thread finds objects that were
 * linked without that file, and those of a program that exports such a function itself.
 */
void __gmon_start__(void)
{
	agent_scan();
}
