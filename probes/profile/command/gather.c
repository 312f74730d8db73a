/* SPDX-License-Identifier: MIT */
#include "probes/profile/command/gather.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probes/elf/elf.h"
#include "probes/launch/launch.h"
#include "probes/profile/estimate/estimate.h"

#define FIELDS (2 + ESTIMATE_NUMBERS)

/* A program or library, and the functions in it. Their names are in the image. */
struct file {
	char *path;
	void *image;
	size_t size;
	struct elf_symbols symbols;
};

struct gathered {
	struct profile *profile;
	struct estimate *estimate; /* by function */
	double *callers;	   /* calls whose caller was seen, by function */
	size_t room;
	struct file *file;
	size_t files;
	struct seen {
		size_t caller, callee;
		double calls;
	} * seen;
	size_t seens;
	double used; /* time of processes, by which costs are weighed */
};

/* --- Whose code an address is ------------------------------------------------------------ */

static void open_file(struct file *file)
{
	int fd = open(file->path, O_RDONLY | O_CLOEXEC);
	struct stat stat;
	struct elf elf;

	if (fd < 0)
		return;
	if (!fstat(fd, &stat) && stat.st_size > 0)
		file->image = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (!file->image || file->image == MAP_FAILED) {
		file->image = NULL;
		return;
	}
	file->size = (size_t)stat.st_size;
	if (elf_open(&elf, file->image, file->size))
		elf_functions(&elf, &file->symbols);
}

static const struct file *file_of(struct gathered *all, const char *path)
{
	struct file *more;

	for (size_t i = 0; i < all->files; i++)
		if (!strcmp(all->file[i].path, path))
			return &all->file[i];
	more = reallocarray(all->file, all->files + 1, sizeof(*more));
	if (!more)
		return NULL;
	all->file = more;
	more += all->files;
	*more = (struct file){ .path = strdup(path) };
	if (!more->path)
		return NULL;
	all->files++;
	open_file(more);
	return more;
}

/* --- Lines ------------------------------------------------------------ */

static long function_of(struct gathered *all, const char *name, const char *object)
{
	long f = profile_function(all->profile, name, object);
	size_t room = all->room ? 2 * all->room : 256;
	struct estimate *estimate;
	double *callers;

	if (f < 0 || (size_t)f < all->room)
		return f;
	estimate = reallocarray(all->estimate, room, sizeof(*estimate));
	if (estimate)
		all->estimate = estimate;
	callers = reallocarray(all->callers, room, sizeof(*callers));
	if (callers)
		all->callers = callers;
	if (!estimate || !callers)
		return -ENOMEM;
	memset(estimate + all->room, 0, (room - all->room) * sizeof(*estimate));
	memset(callers + all->room, 0, (room - all->room) * sizeof(*callers));
	all->room = room;
	return f;
}

static double number(const char *text)
{
	return strtod(text, NULL);
}

static int add_function(struct gathered *all, char **field)
{
	double number_of[ESTIMATE_NUMBERS];
	struct estimate one;
	long f = function_of(all, *field[0] ? field[0] : "(no name)", field[1]);

	if (f < 0)
		return (int)f;
	for (int i = 0; i < ESTIMATE_NUMBERS; i++)
		number_of[i] = number(field[2 + i]);
	memcpy(&one, number_of, sizeof(one));
	estimate_join(&all->estimate[f], &one);
	return 0;
}

/* Seen calls stay apart until all of a function's are known. */
static int add_caller(struct gathered *all, char **field)
{
	const struct file *file = file_of(all, field[2]);
	const struct elf_symbol *symbol = NULL;
	long callee, caller;
	struct seen *seen;

	/* The address is behind the call, which may be the last instruction of its function. */
	if (file)
		symbol = elf_function_at(&file->symbols, strtoull(field[3], NULL, 16) - 1);
	callee = function_of(all, *field[0] ? field[0] : "(no name)", field[1]);
	caller = function_of(all, symbol ? symbol->name : "(unknown)", field[2]);
	if (callee < 0 || caller < 0)
		return -ENOMEM;
	seen = reallocarray(all->seen, all->seens + 1, sizeof(*seen));
	if (!seen)
		return -ENOMEM;
	all->seen = seen;
	seen[all->seens++] = (struct seen){ (size_t)caller, (size_t)callee, number(field[4]) };
	all->callers[callee] += number(field[4]);
	return 0;
}

static int add_quality(struct gathered *all, char **field)
{
	struct quality *sum = &all->profile->quality;
	double time = number(field[0]);

	sum->seconds = time > sum->seconds ? time : sum->seconds;
	sum->epochs += number(field[1]);
	sum->budget = number(field[2]);
	sum->cost += time * number(field[3]);
	sum->toggles += number(field[4]);
	sum->lost += number(field[5]);
	sum->refused += number(field[6]);
	sum->processes++;
	all->used += time;
	return 0;
}

static int add_phase(struct gathered *all, char **field)
{
	return profile_phase(all->profile, &(struct phase){ number(field[0]), number(field[1]),
							    number(field[2]), number(field[3]) });
}

static int add_line(struct gathered *all, char *line)
{
	static const struct {
		char tag;
		int fields;
		int (*add)(struct gathered *, char **);
	} kinds[] = { { 'F', FIELDS, add_function },
		      { 'C', 5, add_caller },
		      { 'Q', 7, add_quality },
		      { 'P', 4, add_phase } };
	char *field[FIELDS], *rest = line;
	const char *tag;
	int n = 0;

	line[strcspn(line, "\n")] = '\0';
	tag = strsep(&rest, "\t");
	while (n < FIELDS && rest)
		field[n++] = strsep(&rest, "\t");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (*tag == kinds[i].tag && n == kinds[i].fields)
			return kinds[i].add(all, field);
	return 0;
}

static int read_report(FILE *report, void *all)
{
	char *line = NULL;
	size_t size = 0;
	int ret = 0;

	while (!ret && getline(&line, &size, report) > 0)
		ret = add_line(all, line);
	free(line);
	return ret;
}

/* --- What it comes to ------------------------------------------------------------ */

static void judge_functions(struct gathered *all)
{
	for (size_t f = 0; f < all->profile->functions; f++) {
		struct function *function = &all->profile->function[f];
		struct interval interval = estimate_interval(&all->estimate[f]);

		function->calls = interval.calls;
		function->low = interval.low;
		function->high = interval.high;
		function->counted = all->estimate[f].counted;
		function->problem = interval.problem;
	}
}

/* All calls of a function are shared out as those whose callers were seen. */
static int make_stacks(struct gathered *all)
{
	struct profile *profile = all->profile;
	int ret = 0;

	for (size_t i = 0; i < all->seens && !ret; i++) {
		const struct seen *seen = &all->seen[i];
		size_t frame[2] = { seen->caller, seen->callee };
		double share = seen->calls / all->callers[seen->callee];

		ret = profile_stack(profile, frame, 2,
				    share * profile->function[seen->callee].calls);
	}
	for (size_t f = 0; f < profile->functions && !ret; f++)
		if (!(all->callers[f] > 0) && profile->function[f].calls > 0)
			ret = profile_stack(profile, &f, 1, profile->function[f].calls);
	return ret;
}

static void release(struct gathered *all)
{
	for (size_t i = 0; i < all->files; i++) {
		elf_free(&all->file[i].symbols);
		if (all->file[i].image)
			munmap(all->file[i].image, all->file[i].size);
		free(all->file[i].path);
	}
	free(all->file);
	free(all->estimate);
	free(all->callers);
	free(all->seen);
}

int gather(struct profile *profile, const char *folder)
{
	struct gathered all = { .profile = profile };
	int ret = launch_reports(folder, read_report, &all);

	if (!ret) {
		judge_functions(&all);
		ret = make_stacks(&all);
	}
	if (!ret)
		ret = profile_sort(profile);
	if (all.used > 0)
		profile->quality.cost /= all.used;
	release(&all);
	return ret;
}
