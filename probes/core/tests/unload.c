/* SPDX-License-Identifier: MIT */
/*
 * Objects that go, and that are half loaded, while the library looks at them: see test_unload.sh.
 *
 * usage: unload WHAT FOLDER
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <fastinst.h>
#include <fastinst/branch.h>

#define PAGES 12288 /* code, and what is behind it */

#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static char path[2][4096];
static void *handle;
static pthread_t closer;
static atomic_bool closed, was_closed;
static const char *closes_at;	  /* the name of a function whose probe is made */
static const char *closes_before; /* when this file is opened */
static void *page;		  /* of its code: nothing comes to lie there when it is unloaded */
static bool scans;

static void *load(int which)
{
	void *loaded = dlopen(path[which], RTLD_NOW | RTLD_LOCAL);

	if (!loaded)
		fprintf(stderr, "%s\n", dlerror());
	MUST(loaded);
	return loaded;
}

static void *close_it(void *unused)
{
	(void)unused;
	dlclose(handle);
	atomic_store(&closed, true);
	return NULL;
}

/* Another thread unloads it; it has the time to, unless it is held. */
static void unload(void)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	MUST(!pthread_create(&closer, NULL, close_it, NULL));
	for (int i = 0; i < 300 && !atomic_load(&closed); i++)
		nanosleep(&pause, NULL);
	was_closed = closed;
	if (page && was_closed)
		MUST(mmap(page, PAGES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
			  -1, 0) == page);
}

/* The library calls these two. */
int open(const char *file, int flags, ...)
{
	va_list more;
	int mode;

	va_start(more, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, int) : 0;
	va_end(more);
	if (closes_before && !strcmp(file, closes_before)) {
		closes_before = NULL;
		unload();
	}
	return (int)syscall(SYS_openat, AT_FDCWD, file, flags, mode);
}

char *strdup(const char *text)
{
	size_t len = strlen(text) + 1;
	char *copy = malloc(len);

	if (closes_at && !strcmp(text, closes_at)) {
		closes_at = NULL;
		unload();
	}
	return copy ? memcpy(copy, text, len) : NULL;
}

static uint32_t find(const char *name)
{
	uint32_t id;

	MUST(fi_find(name, &id, 1) == 1);
	return id;
}

static enum fi_state state_of(uint32_t id)
{
	struct fi_probe probe;

	MUST(!fi_get(id, &probe));
	return probe.state;
}

static void gone_before(void)
{
	handle = load(0);
	closes_before = path[0];
	MUST(fi_scan() == 0 && was_closed && !closes_before);
	pthread_join(closer, NULL);
	MUST(fi_find("plugin_*", NULL, 0) == 0);
}

/* Of two that are new, before the first of them is read. */
static void gone_beside(void)
{
	handle = load(0);
	load(1);
	page = (void *)((uintptr_t)dlsym(handle, "plugin_first") & ~(uintptr_t)4095);
	closes_before = path[1];
	MUST(fi_scan() > 0 && was_closed && !closes_before);
	pthread_join(closer, NULL);
	MUST(fi_find("plugin_first", NULL, 0) == 0 && find("plugin_other") < fi_probes());
}

static void gone_meanwhile(void)
{
	handle = load(0);
	closes_at = "plugin_first";
	MUST(fi_scan() > 0 && !closes_at);
	MUST(!was_closed);
	pthread_join(closer, NULL);
	MUST(fi_scan() == 0 && fi_find("plugin_*", NULL, 0) == 0);
}

/* No look since. */
static void gone_unseen(void)
{
	struct fi_branch_state branches[4];
	struct fi_call_state calls[4];
	uint32_t ids[3];

	handle = load(0);
	MUST(fi_scan() > 0);
	ids[0] = find("plugin_first");
	ids[1] = find("plugin_last");
	ids[2] = find("stays");
	MUST(fi_calls(calls, 4) == 1);
	MUST(!fi_activate(ids[0], NULL));
	dlclose(handle);
	MUST(fi_calls(calls, 4) == 0);
	MUST(fi_branch_on("plugin.on") == 1);
	MUST(fi_branches(branches, 4) == 1 && branches[0].sites == 0);
	MUST(fi_deactivate(ids[0]) == -ENODEV);
	handle = load(0);
	dlclose(handle);
	MUST(fi_activate_batch(ids, 3, NULL) == -ENODEV);
	MUST(state_of(ids[0]) == FI_GONE && state_of(ids[1]) == FI_GONE);
	MUST(state_of(ids[2]) == FI_ON);
}

/* It comes again, to the same place, with no look in between. */
static int (*load_anew(void))(int)
{
	const void *first = dlsym(handle, "plugin_first");
	int (*function)(int);

	dlclose(handle);
	handle = load(0);
	function = (int (*)(int))dlsym(handle, "plugin_first");
	if (first != (void *)function)
		exit(77);
	return function;
}

static void anew_probed(void)
{
	int (*function)(int);
	uint32_t id;

	handle = load(0);
	MUST(fi_scan() > 0);
	id = find("plugin_first");
	MUST(!fi_activate(id, NULL));
	function = load_anew();
	MUST(fi_activate(id, NULL) == -ENODEV && state_of(id) == FI_GONE);
	MUST(fi_scan() > 0 && find("plugin_first") == id && state_of(id) == FI_ON);
	MUST(function(1) == 1 && fi_count(id) == 1);
	MUST(!fi_deactivate(id) && function(1) == 1 && fi_count(id) == 1);
}

/* --- Again and again -------------------------------------------------------------------------- */

#define LOADS 100

static unsigned told;

static void tell(const struct fi_probe *probe, void *data)
{
	(void)data;
	told += !strcmp(probe->function, "plugin_first");
}

/* Both are counted by the kernel. */
static long reads(void)
{
	FILE *io = fopen("/proc/self/io", "r");
	char line[64];
	long n = -1;

	while (io && fgets(line, sizeof(line), io) && sscanf(line, "syscr: %ld", &n) != 1)
		;
	MUST(io && n >= 0);
	fclose(io);
	return n;
}

static long mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	int c;
	long n = 0;

	MUST(maps);
	while ((c = getc(maps)) != EOF)
		n += c == '\n';
	fclose(maps);
	return n;
}

struct held {
	uint32_t probes;
	long reads, mappings;
	size_t heap;
};

static void load_again(uint32_t id, struct held *held)
{
	long start = reads();

	for (int i = 0; i < LOADS; i++) {
		handle = load(i % 3 != 0);
		MUST(fi_scan() > 0 && state_of(id) == (i % 3 ? FI_GONE : FI_ON));
		if (i % 3 == 0)
			((int (*)(int))dlsym(handle, "plugin_first"))(1);
		dlclose(handle);
		if (i % 7 == 0)
			MUST(fi_scan() == 0 && state_of(id) == FI_GONE);
	}
	held->reads = reads() - start;
	held->mappings = mappings();
	held->heap = mallinfo2().uordblks;
	held->probes = fi_probes();
}

/* One that comes again has what it had: ids, what was on, memory; and takes no longer. */
static void comes_again(void)
{
	struct held first, last;
	uint32_t id;

	MUST(!fi_register_callback(tell, NULL));
	handle = load(0);
	MUST(fi_scan() > 0);
	id = find("plugin_first");
	MUST(!fi_activate(id, NULL));
	dlclose(handle);
	/* Some is read once in a process. */
	load_again(id, &first);
	load_again(id, &first);
	load_again(id, &last);
	load_again(id, &last);
	MUST(last.probes == first.probes && last.reads == first.reads);
	MUST(last.mappings == first.mappings && last.heap <= first.heap + 256);
	MUST(fi_count(id) == 4 * 34 && told == 1);
	/* Off stays off. */
	handle = load(0);
	MUST(fi_scan() > 0 && state_of(id) == FI_ON && !fi_deactivate(id));
	dlclose(handle);
	handle = load(0);
	MUST(fi_scan() > 0 && state_of(id) == FI_OFF);
}

/* The kernel puts it elsewhere. */
static void comes_elsewhere(void)
{
	struct fi_branch_state branch;
	int (*function)(int);
	void *first;
	uint32_t id;

	handle = load(0);
	MUST(fi_scan() > 0);
	first = dlsym(handle, "plugin_first");
	id = find("plugin_first");
	MUST(!fi_activate(id, NULL) && fi_branch_on("plugin.on") == 1);
	page = (void *)((uintptr_t)first & ~(uintptr_t)4095);
	unload();
	pthread_join(closer, NULL);
	MUST(was_closed);
	handle = load(0);
	function = (int (*)(int))dlsym(handle, "plugin_first");
	MUST((void *)function != first && fi_scan() > 0 && state_of(id) == FI_ON);
	MUST(function(1) == 2 && fi_count(id) == 1);
	MUST(fi_branches(&branch, 1) == 1 && branch.sites == 1 && !branch.refused);
}

/* Its sites change with the switch, as far as they are known. */
static void anew_switched(bool on)
{
	struct fi_branch_state branch;
	int (*function)(int);

	handle = load(0);
	MUST(fi_scan() >= 0);
	MUST(fi_branch_on("plugin.on") == 1 && (on || fi_branch_off("plugin.on") == 1));
	function = load_anew();
	MUST(fi_scan() >= 0 && function(1) == (on ? 2 : 1));
	MUST(fi_branches(&branch, 1) == 1 && branch.sites == 1 && !branch.refused);
	MUST((on ? fi_branch_off("plugin.on") : fi_branch_on("plugin.on")) == 1);
	MUST(function(1) == (on ? 1 : 2));
}

static void anew_branched(void)
{
	anew_switched(true);
}

static void anew_called(void)
{
	struct fi_call_state call;
	const uint8_t *code;

	anew_switched(false);
	MUST(fi_calls(&call, 1) == 1 && call.direct);
	code = ((const uint8_t *(*)(void))dlsym(handle, "plugin_call"))();
	MUST(*code == 0xe9);
}

static void replace(void)
{
	char command[9000];

	snprintf(command, sizeof(command), "cp '%s' '%s.new' && mv '%s.new' '%s'", path[1], path[0],
		 path[0], path[0]);
	MUST(!system(command));
}

/* The file is not the one that was loaded: its names are of other functions. */
static void replaced_on_disk(void)
{
	handle = load(0);
	replace();
	MUST(fi_scan() >= 0 && fi_find("plugin_*", NULL, 0) == 0);
	dlclose(handle);
	handle = load(0);
	MUST(fi_scan() > 0 && find("plugin_other") < fi_probes());
}

/* Another file under the same name, which lies where the first was. */
static void replaced(void)
{
	void *first, *second;
	uint32_t id;

	handle = load(0);
	first = dlsym(handle, "plugin_first");
	MUST(fi_scan() > 0);
	id = find("plugin_first");
	dlclose(handle);
	replace();
	handle = load(0);
	second = dlsym(handle, "plugin_other");
	if (first != second)
		exit(77);
	MUST(fi_scan() > 0 && state_of(id) == FI_GONE);
	MUST(fi_find("plugin_first", NULL, 0) == 0 && find("plugin_other") != id);
}

static void scan(void)
{
	if (scans)
		MUST(fi_scan() >= 0);
}

/* What the plugin's library calls while the loader has not got to the plugin. */
extern void (*relocating)(void);
void (*relocating)(void) = scan;

static void half_loaded(void)
{
	uint32_t id;

	scans = true;
	handle = load(0);
	scans = false;
	MUST(fi_scan() > 0);
	id = find("plugin_first");
	MUST(!fi_activate(id, NULL));
	((int (*)(int))dlsym(handle, "plugin_first"))(1);
	MUST(fi_count(id) == 1);
}

void stays(void);
__attribute__((noinline)) void stays(void)
{
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} whats[] = { { "before", gone_before },       { "beside", gone_beside },
		      { "meanwhile", gone_meanwhile }, { "unseen", gone_unseen },
		      { "probed", anew_probed },       { "branched", anew_branched },
		      { "called", anew_called },       { "replaced", replaced },
		      { "disk", replaced_on_disk },    { "half", half_loaded },
		      { "again", comes_again },	       { "elsewhere", comes_elsewhere } };

	MUST(argc == 3);
	snprintf(path[0], sizeof(path[0]), "%s/plugin.so", argv[2]);
	snprintf(path[1], sizeof(path[1]), "%s/other.so", argv[2]);
	MUST(!fi_init());
	stays();
	for (size_t i = 0; i < sizeof(whats) / sizeof(*whats); i++)
		if (!strcmp(argv[1], whats[i].name))
			whats[i].run();
	return 0;
}
