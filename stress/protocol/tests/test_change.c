/* SPDX-License-Identifier: MIT */
/* The engine: what each step does to the bytes, and to time. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "patchcore/machine/wait.h"
#include "patchcore/word/word.h"
#include "stress/protocol/protocol.h"
#include "stress/protocol/trap.h"

#define LINE	64
#define FOUR	" 11 11 11 11"
#define SIXTEEN FOUR FOUR FOUR FOUR
#define HEAD	"name a\nsource here\nclaims all\ninstructions 1\npairs word\n"

static uint8_t page[4 * LINE] __attribute__((aligned(LINE)));
static const uint8_t old[SITE_BYTES] = { 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17,
					 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f };
static const uint8_t new[SITE_BYTES] = { 0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47,
					 0x48, 0x49, 0x4a, 0x4b, 0x4c, 0x4d, 0x4e, 0x4f };

static void read_text(const char *text, struct protocol_file *p)
{
	FILE *stream = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	char why[WORDS_WHY];
	int ret = protocol_read(stream, "f", p, why);

	fclose(stream);
	if (ret < 0)
		print_error("%s\n", why);
	assert_int_equal(ret, 0);
}

/* The site at this offset of the page, with old code in it and 0x77 around. */
static struct protocol_site place(const struct protocol_file *p, unsigned at, unsigned split)
{
	memset(page, 0x77, sizeof(page));
	memcpy(page + at, old, p->length);
	return (struct protocol_site){ page + at, p->length, split, old, new };
}

static void neighbours_are_as_before(const struct protocol_site *site)
{
	for (unsigned i = 0; i < sizeof(page); i++)
		if (page + i < site->at || page + i >= site->at + site->length)
			assert_int_equal(page[i], 0x77);
}

static void run(const struct protocol_file *p, bool back, const struct protocol_site *site)
{
	const struct sync sync = { .waits = { 10, 20, 0 } };

	assert_int_equal(protocol_change(p, back, site, &sync), 0);
}

/* Every length, form and offset in the line. */
static void a_store_changes_its_bytes_and_no_others(void **state)
{
	static const char *const forms[] = { "plain", "locked", "nontemporal" };
	static struct protocol_file p;

	(void)state;
	for (unsigned form = 0; form < 3; form++)
		for (unsigned length = 1; length <= 16; length++)
			for (unsigned at = LINE; at < 2 * LINE; at++) {
				char text[256], why[160];
				struct protocol_site site;

				snprintf(text, sizeof(text),
					 "name a\nsource b\nclaims c\ninstructions 1\nold" SIXTEEN
					 "\nnew" SIXTEEN "\nstore %s 0+%u new\n",
					 forms[form], length);
				read_text(text, &p);
				if (protocol_check(&p, CROSSING_NONE, 1, why, sizeof(why)) < 0) {
					assert_true(length > 8 && form > 0);
					continue;
				}
				assert_true(length <= 8 || form == 0);
				site = place(&p, at, 1);
				run(&p, false, &site);
				assert_memory_equal(site.at, new, length);
				assert_memory_equal(site.at + length, old + length, 16 - length);
				neighbours_are_as_before(&site);
			}
}

static void spans_are_cut_at_the_split(void **state)
{
	static struct protocol_file p;
	struct protocol_site site;

	(void)state;
	for (unsigned split = 1; split < 5; split++) {
		read_text(HEAD "store locked back new\n", &p);
		site = place(&p, LINE - split, split);
		run(&p, false, &site);
		assert_memory_equal(site.at, old, split);
		assert_memory_equal(site.at + split, new + split, 5 - split);
		read_text(HEAD "store locked front new\n", &p);
		site = place(&p, LINE - split, split);
		run(&p, false, &site);
		assert_memory_equal(site.at, new, split);
		assert_memory_equal(site.at + split, old + split, 5 - split);
		neighbours_are_as_before(&site);
	}
	read_text(HEAD "store plain tail new\n", &p);
	site = place(&p, LINE - 3, 3);
	run(&p, false, &site);
	assert_int_equal(site.at[0], old[0]);
	assert_memory_equal(site.at + 1, new + 1, 4);
}

/* The last bytes are those of the code, and no guard is left. */
static void the_library_leaves_whole_code(void **state)
{
	char path[4096], why[WORDS_WHY];
	const struct dirent *entry;
	unsigned files = 0;
	DIR *folder;

	(void)state;
	assert_int_equal(protocol_path("naive", path, sizeof(path)), 0);
	*strrchr(path, '/') = '\0';
	folder = opendir(path);
	assert_non_null(folder);
	while ((entry = readdir(folder))) {
		const struct protocol_file *p;

		if (entry->d_name[0] == '.')
			continue;
		if (protocol_find(entry->d_name, &p, why) < 0)
			print_error("%s\n", why);
		assert_int_equal(protocol_find(entry->d_name, &p, why), 0);
		/* The file is called as the protocol. */
		assert_int_equal(strncmp(entry->d_name, p->name, strlen(p->name)), 0);
		assert_string_equal(entry->d_name + strlen(p->name), ".protocol");
		files++;
		for (unsigned i = 0; i < 2 * (p->length - 1); i++) {
			unsigned split = i / 2 + 1;
			struct protocol_site site;
			bool back = i % 2;

			if (protocol_check(p, CROSSING_LINE, split, why, sizeof(why)) < 0)
				continue;
			site = place(p, LINE - split, split);
			/* Steps that need other threads are for cells. */
			if (back && p->step[1][0].kind == STEP_RESTORE)
				continue;
			assert_int_equal(protocol_begin(p, NULL, 0, NULL), 0);
			run(p, back, &site);
			assert_int_equal(site.at[0],
					 strcmp(p->name, "hotspot-call") == 0 ||
							 strcmp(p->name, "dynamorio") == 0 ||
							 strcmp(p->name, "javascriptcore") == 0
						 ? old[0]
						 : new[0]);
			for (unsigned k = 0; k < p->length; k++)
				assert_true(site.at[k] == old[k] || site.at[k] == new[k]);
			neighbours_are_as_before(&site);
		}
	}
	closedir(folder);
	assert_true(files >= 15);
}

static void waits_last_and_are_traced(void **state)
{
	static struct protocol_file p;
	struct word_trace trace = { 0 };
	struct sync sync = { .waits = { 30000, 50000, 0 }, .trace = &trace };
	struct protocol_site site;
	uint64_t begin;

	(void)state;
	read_text(HEAD "guard locked 0 cc restart\nwait first\nstore locked back new\nwait second\n"
		       "wait 20000\nstore locked front new\n",
		  &p);
	site = place(&p, LINE - 3, 3);
	begin = ticks_now();
	assert_int_equal(protocol_change(&p, false, &site, &sync), 0);
	assert_true(ticks_now() - begin >= 100000);
	assert_true(trace.waited[0] >= 30000 && trace.waited[1] >= 50000);
	assert_true(begin < trace.visible[0]);
	assert_true(trace.visible[0] + 30000 <= trace.visible[1]);
	assert_true(trace.visible[1] + 70000 <= trace.visible[2]);
	/* Stretched: as long as so many of the slowest store. */
	sync.waits = (struct waits){ 0, 0, 64 };
	site = place(&p, LINE - 3, 3);
	assert_int_equal(protocol_change(&p, false, &site, &sync), 0);
	assert_true(trace.waited[0] >= 64 * trace.latency[0]);
	assert_true(trace.waited[1] >= 64 * trace.latency[1]);
}

static void locked_stores_stay_in_a_line(void **state)
{
	static struct protocol_file p;
	char why[160];

	(void)state;
	read_text(HEAD "store locked 1+4 new\n", &p);
	assert_int_equal(protocol_check(&p, CROSSING_LINE, 1, why, sizeof(why)), 0);
	assert_int_equal(protocol_check(&p, CROSSING_8, 3, why, sizeof(why)), 0);
	assert_int_equal(protocol_check(&p, CROSSING_PAGE, 3, why, sizeof(why)), -EINVAL);
	assert_string_equal(
		why,
		"line 6 of protocol a: a locked store across a line locks the bus: it is not run");
}

static _Atomic(int) stop;

static void *spin(void *arg)
{
	while (!atomic_load(&stop))
		;
	return arg;
}

/* A signal returns when the other threads have handled theirs; none is inside a site. */
static void signals_reach_all_threads(void **state)
{
	static struct protocol_file p;
	const uint8_t *const sites[] = { page };
	struct protocol_site site;
	pthread_t threads[3];

	(void)state;
	read_text(HEAD
		  "signal\nmembarrier expedited\nmembarrier sync-core\nmfence\nsfence\nlfence\n"
		  "clflush all\n",
		  &p);
	site = place(&p, LINE - 3, 3);
	if (protocol_begin(&p, sites, 1, NULL) == -ENOTSUP)
		skip();
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, spin, NULL), 0);
	run(&p, false, &site);
	assert_int_equal(signal_threads(), 0);
	atomic_store(&stop, 1);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_memory_equal(site.at, old, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_store_changes_its_bytes_and_no_others),
		cmocka_unit_test(spans_are_cut_at_the_split),
		cmocka_unit_test(the_library_leaves_whole_code),
		cmocka_unit_test(waits_last_and_are_traced),
		cmocka_unit_test(locked_stores_stay_in_a_line),
		cmocka_unit_test(signals_reach_all_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
