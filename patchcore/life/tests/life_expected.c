/* SPDX-License-Identifier: MIT */
#include "patchcore/life/tests/life_cell.h"

#include <errno.h>
#include <string.h>

/* Where a column does not need what a row takes away, no entry is made: it completes. */
static const struct expected list[] = {
	{ .event = NULL },
	{ .event = "patcher", .errors = { -EAGAIN } },
	{ .event = "patcher",
	  .protocol = "call",
	  .na = "none but the library may write a call; see `test_call_turns`" },
	{ .event = "patcher",
	  .protocol = "place",
	  .na = "a call is under one `pc_call`; see `test_call_place`" },
	/* Without the handlers of pthread_atfork() a child has no copy of an alias. */
	{ .event = "_Fork", .protocol = "alias", .refused = true },
	{ .event = "fork", .protocol = "mapping", .refused = true },
	{ .event = "fork, handlers", .protocol = "mapping", .refused = true },
	{ .event = "clone beside", .protocol = "alias", .refused = true },
	/* The thread that waits for the child cannot be looked at. */
	{ .event = "vfork beside", .protocol = "merge", .errors = { -ETIMEDOUT }, .visits = 4 },
	{ .event = "vfork beside", .protocol = "over", .errors = { -ETIMEDOUT }, .visits = 4 },
	{ .event = "seccomp, membarrier", .errors = { -EPERM } },
	{ .event = "seccomp, membarrier", .protocol = "async", .errors = { -ECANCELED } },
	{ .event = "seccomp, membarrier", .protocol = "drain", .errors = { -ECANCELED } },
	{ .event = "seccomp, membarrier", .protocol = "merge", .errors = { -EPERM, -ENOTSUP } },
	{ .event = "seccomp, membarrier", .protocol = "over", .errors = { -EPERM, -ENOTSUP } },
	{ .event = "seccomp, membarrier", .protocol = "settings", .errors = { -EPERM, -ENOTSUP } },
	{ .event = "seccomp, membarrier", .protocol = "wait" },
	{ .event = "seccomp, memory", .protocol = "protect", .errors = { -EACCES } },
	{ .event = "seccomp, memory", .protocol = "call", .errors = { -ENOSPC } },
	{ .event = "seccomp, memory", .protocol = "place", .errors = { -ENOSPC } },
	{ .event = "seccomp, memory", .protocol = "merge", .errors = { -EACCES } },
	{ .event = "seccomp, memory", .protocol = "over", .errors = { -EACCES } },
	{ .event = "seccomp, memory", .protocol = "forget", .errors = { -EACCES } },
	{ .event = "seccomp, memory", .protocol = "open", .errors = { -EACCES } },
	{ .event = "seccomp, memory", .protocol = "mapping", .errors = { -EACCES } },
	{ .event = "rlimit, files", .protocol = "protect", .errors = { -EACCES } },
	{ .event = "rlimit, files", .protocol = "call", .errors = { -ENOSPC } },
	{ .event = "rlimit, files", .protocol = "place", .errors = { -ENOSPC } },
	{ .event = "rlimit, files", .protocol = "merge", .errors = { -EACCES } },
	{ .event = "rlimit, files", .protocol = "over", .errors = { -EACCES } },
	{ .event = "rlimit, files", .protocol = "forget", .errors = { -EACCES } },
	{ .event = "rlimit, files", .protocol = "open", .errors = { -EACCES } },
	{ .event = "rlimit, files", .protocol = "mapping", .errors = { -EACCES, -EMFILE } },
	{ .event = "rlimit, memory", .errors = { -ENOMEM } },
	{ .event = "rlimit, memory", .protocol = "call", .errors = { -ENOMEM, -ENOSPC } },
	{ .event = "rlimit, memory", .protocol = "place", .errors = { -ENOMEM, -ENOSPC } },
	{ .event = "rlimit, file size", .protocol = "mapping", .errors = { -EACCES } },
	{ .event = "rlimit, signals", .protocol = "merge", .errors = { -ETIMEDOUT }, .visits = 4 },
	{ .event = "rlimit, signals", .protocol = "over", .errors = { -ETIMEDOUT }, .visits = 4 },
};

static bool names(const char *name, const char *what)
{
	return !name || strcmp(name, what) == 0;
}

const struct expected *expected_of(const struct event *event, const struct protocol *protocol)
{
	const struct expected *found = &list[0];

	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
		if (names(list[i].event, event->name) && names(list[i].protocol, protocol->name))
			found = &list[i];
	return found;
}

static bool may_return(const struct expected *expected, int ret)
{
	for (int i = 0; i < ERRORS_MAX; i++)
		if (ret == expected->errors[i])
			return true;
	return ret == 0;
}

bool expected_is(const struct expected *expected, const struct event *event)
{
	if (!seen->returned && !event->ends && !event->replaces)
		return false;
	return may_return(expected, seen->ret) && may_return(expected, seen->child_ret) &&
	       (seen->refused == 0 || expected->refused);
}

/* --- The table ------------------------------------------------------------------------------- */

static const struct error_name {
	int error;
	const char *name;
} error_names[] = {
	{ -EACCES, "EACCES" },	 { -EAGAIN, "EAGAIN" }, { -ECANCELED, "ECANCELED" },
	{ -EMFILE, "EMFILE" },	 { -ENOMEM, "ENOMEM" }, { -ENOSPC, "ENOSPC" },
	{ -ENOTSUP, "ENOTSUP" }, { -EPERM, "EPERM" },	{ -ETIMEDOUT, "ETIMEDOUT" },
};

static const char legend[] =
	"- **completes**: The operation returns 0 and the sites are new. Meanwhile each executor, "
	"also one in a child, runs the old or the new code.\n"
	"- **`-E...`**: Some steps refuse the named operations with it. A single change has then "
	"changed nothing; of several, each is made or not.\n"
	"- **both**: It completes, and the child has code and a library of its own: it goes on "
	"with the operation where it is the patcher's, and can patch and shut down.\n"
	"- **refused**: Changes are refused with `-EACCES` or `-EPERM` where a child shares its "
	"parent's code, or a page was just getting or losing its alias.\n"
	"- **left**: The patcher does not come back. Others run the old or the new code, and can "
	"change it again when the thread is gone. A page that it has made writable may stay so "
	"until `pc_fini`.\n"
	"- **gone**: With the process.\n"
	"\n"
	"After each of them the sites can be changed again, pages have the protection that they "
	"had, `pc_fini` returns 0, and SIGTRAP is again whose it was.\n";

static bool expects_error(const struct expected *expected, int error)
{
	for (int i = 0; i < ERRORS_MAX; i++)
		if (expected->errors[i] == error)
			return true;
	return false;
}

static bool expects_refusal(const struct expected *expected, int unused)
{
	(void)unused;
	return expected->refused;
}

static bool expects_nothing(const struct expected *expected, int unused)
{
	(void)unused;
	return expected->na != NULL;
}

/* "what: the operations" that are so, or "what: all but" the others, where these are fewer. */
static void print_operations(const struct event *event, const char *what, int error,
			     bool (*is_so)(const struct expected *, int))
{
	unsigned number = 0;
	bool others;

	for (unsigned i = 0; i < protocol_count; i++)
		number += is_so(expected_of(event, &protocols[i]), error);
	if (number == 0)
		return;
	others = number > protocol_count / 2;
	printf(" %s: %s", what, !others ? "" : number == protocol_count ? "all" : "all but ");
	for (unsigned i = 0, n = 0; i < protocol_count; i++)
		if (is_so(expected_of(event, &protocols[i]), error) != others)
			printf("%s%s", n++ ? ", " : "", protocols[i].name);
	printf(".");
}

static void print_row(const struct event *event)
{
	char what[16];

	printf("| %s | %s | %s |", event->name, event->what,
	       event->outcome ? event->outcome : "completes");
	for (size_t i = 0; i < sizeof(error_names) / sizeof(*error_names); i++) {
		snprintf(what, sizeof(what), "`-%s`", error_names[i].name);
		print_operations(event, what, error_names[i].error, expects_error);
	}
	print_operations(event, "refused", 0, expects_refusal);
	print_operations(event, "cannot be", 0, expects_nothing);
	printf(" |\n");
}

void expected_print(void)
{
	printf("| event | what happens | outcome | but |\n|---|---|---|---|\n");
	for (unsigned i = 0; i < life_events(); i++)
		print_row(life_event(i));
	printf("\n%s\nThe operations:\n\n| name | what it does |\n|---|---|\n", legend);
	for (unsigned i = 0; i < protocol_count; i++)
		printf("| %s | %s |\n", protocols[i].name, protocols[i].what);
}
