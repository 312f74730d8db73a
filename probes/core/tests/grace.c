/* SPDX-License-Identifier: MIT */
/*
 * Functions of a plugin are probe functions while threads run the probe, and the plugin is unloaded
 * as soon as the grace period says that none is inside.
 *
 * usage: grace PLUGIN [TURNS]; with GRACELESS it does not wait for that
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <fastinst.h>

#define THREADS 3

_Atomic unsigned long grace_calls;
void probed(void);

static atomic_bool over;

__attribute__((noinline)) void probed(void)
{
	__asm__ volatile("");
}

static void *run(void *data)
{
	while (!atomic_load_explicit(&over, memory_order_relaxed))
		probed();
	return data;
}

/* Until the function was entered. */
static int turn(const char *plugin, uint32_t id)
{
	unsigned long before = atomic_load(&grace_calls);
	void *handle = dlopen(plugin, RTLD_NOW);
	fi_function *function = NULL;

	if (handle)
		*(void **)&function = dlsym(handle, "on_call");
	if (!function || fi_activate(id, function))
		return -1;
	while (atomic_load(&grace_calls) == before)
		;
	if (fi_deactivate(id))
		return -1;
#ifndef GRACELESS
	if (fi_synchronize())
		return -1;
#endif
	return dlclose(handle);
}

int main(int argc, char **argv)
{
	int turns = argc > 2 ? atoi(argv[2]) : 200, bad = 0;
	pthread_t threads[THREADS];
	uint32_t id;

	if (argc < 2 || fi_init() || fi_find("probed", &id, 1) != 1)
		return 77;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	for (int i = 0; i < turns && !bad; i++)
		bad = turn(argv[1], id);
	atomic_store(&over, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("%lu calls of %lu\n", atomic_load(&grace_calls), (unsigned long)fi_count(id));
	return bad != 0;
}
