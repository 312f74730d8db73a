/* SPDX-License-Identifier: MIT */
/* Programs that run with an agent, and the reports that their processes leave. */
#include "agent/launch/launch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "probes/elf/preload.h"

/* Blanks get a backslash, as text_word() reads them. */
bool option_pattern(const struct option_row *row, const char *text, void *request, char *why)
{
	char **all = (char **)((char *)request + row->at);
	size_t used = *all ? strlen(*all) : 0;
	char *more = realloc(*all, used + 2 * strlen(text) + 2), *to = more + used;

	if (!more)
		return option_refuse(why, "there is no memory for it");
	if (*all)
		*to++ = ' ';
	*all = more;
	while (*text) {
		if (*text == ' ' || (*text == '\\' && text[1]))
			*to++ = '\\';
		text += *text == '\\' && text[1];
		*to++ = *text++;
	}
	*to = '\0';
	return true;
}

const struct option_row asked_options[] = {
	{ "on", "PATTERN",
	  "only these: FUNCTION, OBJECT:FUNCTION, FILE:FUNCTION, all globs, or /REGEX/; may be "
	  "given several times",
	  OPTION_PATTERN(struct asked, on) },
	{ "entries", "[=OBJECT]",
	  "take functions as well that nothing was compiled into, of the program or of objects of "
	  "these names (a glob)",
	  OPTION_TEXT(struct asked, entries) },
	{ "output", "FILE", "write there instead of to standard error",
	  OPTION_FILE(struct asked, output), .letter = 'o' },
	{ 0 },
};

FILE *open_output(const char *path)
{
	FILE *out = path ? fopen(path, "we") : stderr;

	if (!out)
		complain(0, -errno, "cannot write %s", path);
	return out;
}

int close_output(FILE *out, const char *path)
{
	int ret = ferror(out) ? -EIO : 0;

	if (out != stderr && fclose(out) && !ret)
		ret = -errno;
	if (ret < 0)
		complain(0, ret, "cannot write %s", path ? path : "to standard error");
	return ret;
}

/* Beside this program, as in a build tree, or where it was installed. */
int launch_find(struct launch *launch)
{
	char self[PATH_MAX - 64], libs[PATH_MAX - 32];
	const char *const folders[] = { self, libs, PKGLIBDIR };
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[len < 0 ? 0 : len] = '\0';
	dirname(self);
	snprintf(libs, sizeof(libs), "%s/.libs", self);
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		snprintf(launch->path, sizeof(launch->path), "%s/%s", folders[i], launch->agent);
		if (!access(launch->path, R_OK))
			return 0;
	}
	return complain(-ENOENT, 0, "%s is neither beside this program nor installed",
			launch->agent);
}

const char *launch_which(const char *program, char *path, size_t size)
{
	preload_find(program, path, size);
	return path;
}

/* The loader leaves the agent out without a word. */
static void warn_of_privileges(const char *program)
{
	char path[PATH_MAX];
	struct stat found;

	launch_which(program, path, sizeof(path));
	if (stat(path, &found))
		return;
	if ((found.st_mode & S_ISUID && found.st_uid != geteuid()) ||
	    (found.st_mode & S_ISGID && found.st_gid != getegid()))
		complain(0, 0,
			 "%s gets the rights of its owner or group (set-user-ID), so the loader "
			 "leaves the agent out; run it as its owner, or a copy of it",
			 path);
	else if (geteuid() && getxattr(path, "security.capability", NULL, 0) > 0)
		complain(0, 0,
			 "%s has capabilities (setcap), so the loader leaves the agent out; run a "
			 "copy of it",
			 path);
}

static _Noreturn void exec_program(const struct launch *launch, const struct preload *preload,
				   char **argv)
{
	const char *before = getenv("LD_PRELOAD");
	char all[preload_size(before, launch->path)];
	int error;

	ending_let();
	preload_write(all, sizeof(all), before, launch->path, preload);
	if (*all)
		setenv("LD_PRELOAD", all, 1);
	else
		unsetenv("LD_PRELOAD");
	setenv("FASTINST_OUTPUT", launch->folder, 1);
	execvp(argv[0], argv);
	error = errno;
	complain(0, -error, "cannot run %s", argv[0]);
	_exit(error == ENOENT ? 127 : 126);
}

/* Signals are for the program; this one waits for it. */
static int wait_for(pid_t child, const char *lost)
{
	int status;

	if (ending_wait(child, &status) < 0)
		return STATUS_FAILED;
	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	return complain(128 + WTERMSIG(status), 0, "signal %d ended the program, %s lost%s",
			WTERMSIG(status), lost,
			WTERMSIG(status) != SIGSYS
				? ""
				: ": a seccomp filter forbids a system call that the program or "
				  "the agent made; probes need membarrier, mprotect and mmap");
}

int launch_folder(struct launch *launch)
{
	int ret;

	strcpy(launch->folder, "/tmp/fastinst-run-XXXXXX");
	ending_hold();
	ret = folder_make(launch->folder);
	if (ret == 0)
		return 0;
	launch->folder[0] = '\0';
	return complain(ret, ret, "no folder in /tmp");
}

int launch_program(struct launch *launch, char **argv)
{
	struct preload preload;
	char path[PATH_MAX];
	pid_t child;

	launch->folder[0] = '\0';
	if (access(launch_which(argv[0], path, sizeof(path)), X_OK) < 0)
		return complain(errno == ENOENT ? 127 : 126, -errno, "cannot run %s", argv[0]);
	if (launch_find(launch) < 0)
		return STATUS_NOT_FOUND;
	warn_of_privileges(argv[0]);
	preload_look(&preload, AT_FDCWD, path);
	if (preload.is_musl)
		return complain(STATUS_NOT_FOUND, 0,
				"%s is linked with musl, whose loader cannot take the agent, which "
				"is made for glibc",
				path);
	if (launch_folder(launch) < 0)
		return STATUS_FAILED;
	child = fork();
	if (!child)
		exec_program(launch, &preload, argv);
	return child < 0 ? STATUS_FAILED : wait_for(child, launch->lost);
}

/* --- What processes left --------------------------------------------------------------------- */

/*
 * The last line of a truncated report is left out: it ends in the form feed of the next report, or
 * with the file. All complete lines count.
 */
static int read_report(const char *folder, const char *pid, int (*read)(char *line, void *arg),
		       void *arg)
{
	int open = 0, ret = 0; /* open: how many reports were begun and not ended */
	struct stat stat = { 0 };
	char path[PATH_MAX], *line = NULL;
	size_t size = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, pid);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	while (!ret && getline(&line, &size, file) > 0 && strchr(line, '\n')) {
		line[strcspn(line, "\n")] = '\0';
		if (strchr(line, '\f'))
			open++;
		else if (!strcmp(line, "end"))
			open--;
		else
			ret = read(line, arg);
	}
	free(line);
	fstat(fileno(file), &stat);
	fclose(file);
	if (!ret && stat.st_size)
		ret = read(NULL, arg);
	if (ret < 0 || (!open && stat.st_size))
		return ret;
	return complain(1, 0,
			"not all that process %s had to report is here: the disk is full, a limit "
			"of the size of files was reached (ulimit -f), or it was killed meanwhile",
			pid);
}

int launch_reports(const char *folder, int (*read)(char *line, void *arg), void *arg)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	int ret = 0, one;

	if (!dir)
		return -errno;
	while (ret >= 0 && (entry = readdir(dir))) {
		if (*entry->d_name == '.')
			continue;
		one = read_report(folder, entry->d_name, read, arg);
		ret = one ? one : ret;
	}
	closedir(dir);
	folder_remove(folder);
	return ret;
}
