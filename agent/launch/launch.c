/* SPDX-License-Identifier: MIT */
/*
 * Programs that run with an agent, the reports that their processes leave, and what a command does
 * before it ends.
 */
#include "agent/launch/launch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/clock.h"
#include "probes/elf/preload.h"

/* --- Folders that a live command has locked --------------------------------------------------- */

#define CHOSEN 6 /* characters that mkdtemp() chooses */
#define TRIES  16

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *at)
{
	(void)stat;
	(void)type;
	(void)at;
	return remove(path) && errno != ENOENT ? -1 : 0;
}

void folder_remove(const char *path)
{
	/* A process may still make files in it, which no command reads. */
	for (int i = 0; i < TRIES; i++)
		if (!nftw(path, remove_one, TRIES, FTW_DEPTH | FTW_PHYS) || errno != ENOTEMPTY)
			break;
}

/* A descriptor that holds the folder locked; -1: another process has, or it is not this user's. */
static int lock_folder(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat named, opened;

	if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &opened) &&
	    opened.st_uid == geteuid() && !stat(path, &named) && named.st_ino == opened.st_ino)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

int folder_make(char *path)
{
	size_t chosen = strlen(path) - CHOSEN;
	glob_t found = { 0 };
	int fd;

	/* Folders that no live process has locked are removed. */
	strcpy(path + chosen, "??????");
	glob(path, GLOB_NOSORT, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		fd = lock_folder(found.gl_pathv[i]);
		if (fd >= 0) {
			folder_remove(found.gl_pathv[i]);
			close(fd);
		}
	}
	globfree(&found);
	for (int i = 0; i < TRIES; i++) {
		strcpy(path + chosen, "XXXXXX");
		if (!mkdtemp(path))
			return -errno;
		if (lock_folder(path) >= 0)
			return 0;
		/* Another command has removed the folder before it was locked. */
		rmdir(path);
	}
	strcpy(path + chosen, "XXXXXX");
	return -EBUSY;
}

/* --- Signals that end a process, blocked, passed on to a child, or noted ---------------------- */

static const int endings[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };
#define ENDINGS (sizeof(endings) / sizeof(*endings))

#define ENDING_STEP 0.02 /* seconds between two looks at a process */

static sigset_t mask_before;
static bool are_blocked;
static volatile sig_atomic_t heir; /* the child, as long as its number is its own; or 0 */
static volatile sig_atomic_t was_noted;

void ending_hold(void)
{
	sigset_t set;

	if (are_blocked)
		return;
	sigemptyset(&set);
	for (size_t i = 0; i < ENDINGS; i++)
		sigaddset(&set, endings[i]);
	are_blocked = !sigprocmask(SIG_BLOCK, &set, &mask_before);
}

void ending_let(void)
{
	if (are_blocked)
		sigprocmask(SIG_SETMASK, &mask_before, NULL);
	are_blocked = false;
}

/* Passes on a signal of kill(), but not of the child, which may mean its whole group. */
static void on_ending(int number, siginfo_t *info, void *context)
{
	int saved = errno;

	(void)context;
	if (!heir)
		was_noted = 1;
	else if (info->si_code <= 0 && info->si_pid != heir)
		kill(heir, number);
	errno = saved;
}

/* Unblocks the signals, and notes them, but those that are ignored. */
void ending_note(void)
{
	const struct sigaction ours = { .sa_sigaction = on_ending,
					.sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigaction now;

	for (size_t i = 0; i < ENDINGS; i++)
		if (!sigaction(endings[i], NULL, &now) && now.sa_handler != SIG_IGN)
			sigaction(endings[i], &ours, NULL);
	ending_let();
}

/* A zombie is over, which kill() does not tell. */
bool ending_is_over(pid_t pid)
{
	struct pollfd end = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
	bool over;

	if (end.fd < 0)
		return kill(pid, 0) < 0 && errno == ESRCH;
	over = poll(&end, 1, 0) > 0;
	close(end.fd);
	return over;
}

bool ending_noted(void)
{
	return was_noted;
}

void ending_until(pid_t pid, double seconds)
{
	double until = seconds_now() + seconds, left = ENDING_STEP;

	while (!was_noted && left > 0 && !ending_is_over(pid)) {
		usleep((useconds_t)((left < ENDING_STEP ? left : ENDING_STEP) * 1e6));
		if (seconds > 0)
			left = until - seconds_now();
	}
}

static void on_ignored(int number)
{
	(void)number;
}

void ending_ignore(int number)
{
	if (signal(number, on_ignored) == SIG_IGN)
		signal(number, SIG_IGN);
}

/* --- Options and output ----------------------------------------------------------------------- */

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
	{ "keep-writable", NULL,
	  "leave code with probes writable, so that no uprobe (bpftrace, perf) is put into it",
	  OPTION_FLAG(struct asked, writable) },
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

/* --- Programs with an agent ------------------------------------------------------------------- */

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

/* The loader leaves the agent out without a word. */
static void warn_of_privileges(const char *path)
{
	struct stat found;

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

/*
 * Waits for the program, and passes on to it a signal that is sent to this process alone; those of
 * the terminal reach both.
 */
static int wait_for(pid_t child, const char *lost)
{
	siginfo_t info;
	int status;

	heir = child;
	ending_note();
	/* The PID belongs to the child until it is reaped. */
	while (waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
		;
	heir = 0;
	if (waitpid(child, &status, 0) < 0)
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
	preload_find(argv[0], path, sizeof(path));
	if (access(path, X_OK) < 0)
		return complain(errno == ENOENT ? 127 : 126, -errno, "cannot run %s", argv[0]);
	if (launch_find(launch) < 0)
		return STATUS_NOT_FOUND;
	warn_of_privileges(path);
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
