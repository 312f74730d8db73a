/* SPDX-License-Identifier: MIT */
/* What the library's errors mean, where errno's own text speaks of files and streams. */
#include <errno.h>

#include "patchcore/patchcore.h"

static const struct {
	int error;
	const char *text;
} meanings[] = {
	{ 0, "done" },
	{ E2BIG, "the change is longer than one pc_patch() can make" },
	{ EACCES, "the pages cannot be made writable, or a file of /proc cannot be read" },
	{ EAGAIN, "another patcher or a debugger has an INT3 there, or a thread forks: try again" },
	{ EBUSY, "SIGTRAP goes to another handler, or another change is under way there" },
	{ ECANCELED, "no sync could be had, and the change was taken back" },
	{ EEXIST, "another copy of the library is in use in this process" },
	{ EFAULT, "the code is not mapped, or lies behind the end of its file" },
	{ EILSEQ, "a thread may stand inside the old code where the new has no instruction start" },
	{ EINVAL, "an argument is not allowed, or the new code begins with INT3" },
	{ EMFILE, "the process has too many files open" },
	{ ENFILE, "the system has too many files open" },
	{ ENOENT, "there is no such call, open page or thread" },
	{ ENOEXEC, "the bytes are no instruction" },
	{ ENOMEM, "no memory" },
	{ ENOSPC, "no room for a stub within reach of the call" },
	{ ENOTSUP,
	  "no safe way: neither membarrier nor a machine.conf to wait by, or the policy is "
	  "quiet and it would interrupt other CPUs" },
	{ EPERM, "the pages are shared, the code is the library's own, or a filter forbids it" },
	{ ESHUTDOWN, "the library is not initialised: call pc_init()" },
	{ ESTALE, "other bytes stand there than were expected" },
	{ ETIMEDOUT, "a thread stayed inside, or did not answer in time" },
};

const char *pc_strerror(int ret)
{
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (-meanings[i].error == ret)
			return meanings[i].text;
	return "not an error of this library";
}
