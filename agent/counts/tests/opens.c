/* SPDX-License-Identifier: MIT */
/*
 * What dlopen() finds, and says where it finds nothing: see test_dlopen.sh.
 *
 * With -DLIBRARY="NAME" a library that says which it is; with -DOPENS="NAME" it opens another one
 * by that name, and with -DEARLY it does so in its constructor. With -DCALLS its constructor hands
 * over a function, which nothing asks the loader for.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

static void say(const char *what, void *handle)
{
	const char *error = handle ? NULL : dlerror();
	struct link_map *map = NULL;

	if (handle && dlinfo(handle, RTLD_DI_LINKMAP, &map) < 0)
		error = dlerror();
	printf("%s: %s\n", what, map ? map->l_name : error ? error : "no error");
}

#ifdef LIBRARY
const char *which(void);
const char *which(void)
{
	return LIBRARY;
}

#ifdef OPENS
void opens(void);
#ifdef EARLY
__attribute__((constructor))
#endif
void opens(void)
{
	say(LIBRARY " opens " OPENS, dlopen(OPENS, RTLD_NOW));
}
#endif

#ifdef CALLS
void called(void);
void (*__attribute__((weak)) handed_over)(void);
__attribute__((noinline)) void called(void)
{
	__asm__ volatile("");
}

__attribute__((constructor)) static void hand_over(void)
{
	called();
	handed_over = called;
}
#endif
#else
void (*handed_over)(void);

static void *open_and_say(const char *file, int flags)
{
	void *handle = dlopen(file, flags);
	const char *(*which)(void) = NULL;

	say(file ? file : "(the program)", handle);
	if (handle && file)
		*(void **)&which = dlsym(handle, "which");
	if (which)
		printf("\tit is %s\n", which());
	return handle;
}

static void let_it_open(const char *library)
{
	void *handle = open_and_say(library, RTLD_NOW);
	void (*opens)(void) = NULL;

	if (handle)
		*(void **)&opens = dlsym(handle, "opens");
	if (opens)
		opens();
}

static void open_in(Lmid_t space, const char *file)
{
	void *handle = dlmopen(space, file, RTLD_NOW);

	say(file, handle);
	if (handle)
		dlclose(handle);
}

/* Two names of one file, and the name that it has in itself: one object. */
static void open_twice(void)
{
	void *first = open_and_say("liblink.so", RTLD_NOW);
	void *second = open_and_say("liblinked.so", RTLD_NOW);
	void *third = open_and_say("libnamed.so.1", RTLD_NOW);

	printf("\tone object: %d %d\n", first == second, second == third);
}

int main(int argc, char **argv)
{
	printf("errors: %s\n", dlerror() ? "one" : "none");
	open_and_say("liborigin.so", RTLD_NOW);
	open_and_say("$ORIGIN/sub/libdst.so", RTLD_NOW);
	open_and_say("libfamily.so", RTLD_NOW);
	open_and_say("libhwcaps.so", RTLD_NOW);
	open_and_say("libpath.so", RTLD_NOW);
	open_and_say("libpcprofile.so", RTLD_NOW);
	open_twice();
	let_it_open("libcaller.so");
	let_it_open("libearly.so");
	open_and_say(NULL, RTLD_NOW);
	open_and_say("liborigin.so", RTLD_NOW | RTLD_NOLOAD);
	open_and_say("libnotloaded.so", RTLD_NOW | RTLD_NOLOAD);
	open_and_say("libmissing.so", RTLD_NOW);
	open_and_say("/missing/lib.so", RTLD_NOW);
	open_and_say("libbroken.so", RTLD_NOW);
	open_and_say("libneedy.so", RTLD_NOW);
	open_and_say("liborigin.so", 0);
	open_in(LM_ID_BASE, "libbase.so");
	open_in(LM_ID_NEWLM, "liborigin.so");
	open_and_say("libcalls.so", RTLD_NOW | RTLD_GLOBAL);
	for (int i = 0; handed_over && i < 100; i++)
		handed_over();
	return argc == 1 && !argv[1] ? 0 : 1;
}
#endif
