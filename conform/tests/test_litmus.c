/* SPDX-License-Identifier: MIT */
/* The reader, the installed tests, and the code that is made of them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "conform/litmus.h"
#include "patchcore/machine/cpus.h"

#define FEW	  1000
#define MOST	  20000000u /* instances until a test that is broken on purpose must have shown it */
#define INT_32(i) ((uint32_t)(i)*0x01010101u)

static unsigned cpu[LITMUS_THREADS], cpus;
static char why[WORDS_WHY];

static int read_cpus(void **state)
{
	struct cpus allowed;

	(void)state;
	if (cpus_allowed(&allowed) < 0)
		return -1;
	for (unsigned i = 0; i < CPUS_MAX && cpus < LITMUS_THREADS; i++)
		if (allowed.word[i / 64] >> (i % 64) & 1)
			cpu[cpus++] = i;
	for (unsigned i = cpus; i < LITMUS_THREADS; i++)
		cpu[i] = cpu[i % cpus];
	return 0;
}

static int read_text(const char *text, struct litmus *l)
{
	FILE *stream = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	int ret;

	assert_non_null(stream);
	ret = litmus_read(stream, "f", l, why);
	fclose(stream);
	return ret;
}

static struct litmus_result play_test(const struct litmus *l, uint64_t instances)
{
	struct run_options options = { 0 };
	struct litmus_result r;

	assert_int_equal(litmus_run(l, cpu, instances, instances, &options, &r), 0);
	return r;
}

/* --- The reader ------------------------------------------------------------------------------- */

#define HEAD  "litmus t\nsite s 8+0 b8 01 01 01 01 c3\nvar x 0\n"
#define EVENT HEAD "thread\n"

static void errors_have_line_and_column(void **state)
{
	static const char *const texts[][2] = {
		{ "", "f:1:1: expected litmus NAME, found the end of the file" },
		{ "site s 8+0 c3\n", "f:1:1: expected litmus NAME, found 'site'" },
		{ "litmus a/b\n", "f:1:8: expected a name, found 'a/b'" },
		{ "litmus t\n\n hope\n", "f:3:2: expected a statement or an event" },
		{ "litmus t\nsite s 8 c3\n", "f:2:8: expected inline, BOUNDARY+N" },
		{ "litmus t\nsite s 12+0 c3\n", "f:2:8: expected inline, BOUNDARY+N" },
		{ "litmus t\nsite s 8192+0 c3\n", "f:2:8: expected inline, BOUNDARY+N" },
		{ "litmus t\nsite s 8+8 c3\n", "f:2:8: expected inline, BOUNDARY+N" },
		{ "litmus t\nsite s u+8 c3\n", "f:2:8: expected inline, BOUNDARY+N" },
		{ "litmus t\nsite s 8+0 c\n", "f:2:12: expected a byte of two" },
		{ "litmus t\nsite s 8+0\n", "f:2:11: expected a byte of two" },
		{ HEAD "var s 0\n", "f:4:5: expected a name that is not taken, found 's'" },
		{ HEAD "var y one\n", "f:4:7: expected a number from 0 to 4294967295" },
		{ HEAD "store x 1\n", "f:4:1: expected a thread of at most 16 events" },
		{ EVENT "store y 1\n", "f:5:7: expected a site or a variable, found 'y'" },
		{ EVENT "store x+1 1\n", "f:5:7: expected a site or a variable" },
		{ EVENT "store alias:x 1\n", "f:5:7: expected a site, found 'alias:x'" },
		{ EVENT "store s 01 02 03\n", "f:5:9: expected 1, 2, 4 or 8 bytes" },
		{ EVENT "nt s 01\n", "f:5:6: expected 4 or 8 bytes" },
		{ EVENT "store s+4 01 02 03 04\n", "f:5:7: expected 4 bytes inside the site" },
		{ EVENT "load s+3 r0\n", "f:5:6: expected 4 bytes inside the site" },
		{ EVENT "load x r4\n", "f:5:8: expected a register from r0 to r3" },
		{ EVENT "fetch s+1 r0\n", "f:5:7: expected a site, found 's+1'" },
		{ EVENT "fetch s r0 r1\n", "f:5:12: expected the end of the line" },
		{ EVENT "run s r0\n", "f:5:5: expected an inline site that is not run yet" },
		{ EVENT "cpuid s\n", "f:5:7: expected the end of the line" },
		{ EVENT "load x r0\nexists 0:r1=1\n", "f:6:8: expected VAR=VALUE" },
		{ EVENT "load x r0\nexists 0:r0=one\n", "f:6:8: expected VAR=VALUE" },
		{ EVENT "load x r0\nexists 0:r0=1 0:r0=2\n", "f:6:15: expected VAR=VALUE" },
		{ EVENT "load x r0\nexists\n", "f:6:7: expected VAR=VALUE" },
		{ EVENT "load x r0\n", "f:6:1: expected exists, found the end of the file" },
		{ EVENT "site u inline c3\nload x r0\nexists x=0\n",
		  "f:8:1: expected a thread that runs 'u'" },
		{ "litmus t\namd maybe x\n", "f:2:5: expected unsaid, allowed or forbidden" },
		{ "litmus t\namd allowed\n", "f:2:12: expected where that is said" },
	};
	struct litmus l;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		int ret = texts[i][0][0] ? read_text(texts[i][0], &l) : read_text("#\n", &l);
		const char *expected = texts[i][1];

		assert_int_equal(ret, -EINVAL);
		if (texts[i][0][0])
			assert_memory_equal(why, expected, strlen(expected));
		else
			assert_non_null(strstr(why, "expected litmus NAME"));
	}
}

/* Each test is called as its file; one that is broken on purpose asks what the whole one asks. */
static void installed_tests_are_whole(void **state)
{
	char text[2][LITMUS_STATE_TEXT];
	unsigned broken = 0;
	glob_t all;

	(void)state;
	assert_int_equal(litmus_names(&all), 0);
	for (size_t i = 0; i < all.gl_pathc; i++) {
		struct litmus l, whole;
		char file[LITMUS_NAME + 16];

		if (litmus_load(all.gl_pathv[i], &l, why) < 0)
			fail_msg("%s", why);
		snprintf(file, sizeof(file), "/%s.litmus", l.name);
		assert_non_null(strstr(all.gl_pathv[i], file));
		assert_true(l.about[0] && l.amd.source[0] && l.intel.source[0]);
		if (!l.breaks[0])
			continue;
		broken++;
		assert_int_equal(litmus_load(l.breaks, &whole, why), 0);
		litmus_state_text(&l, NULL, text[0]);
		litmus_state_text(&whole, NULL, text[1]);
		assert_string_equal(text[0], text[1]);
		assert_int_equal(l.amd.verdict, LITMUS_ALLOWED);
	}
	assert_true(broken >= 15);
	globfree(&all);
}

static void vendors_say_what_the_file_says(void **state)
{
	struct litmus l = { .amd = { .verdict = LITMUS_FORBIDDEN } };

	(void)state;
	assert_int_equal(litmus_said(&l, "AuthenticAMD"), LITMUS_FORBIDDEN);
	assert_int_equal(litmus_said(&l, "GenuineIntel"), LITMUS_UNSAID);
	assert_int_equal(litmus_said(&l, "another"), LITMUS_UNSAID);
	l.intel.verdict = LITMUS_FORBIDDEN;
	assert_int_equal(litmus_said(&l, "another"), LITMUS_FORBIDDEN);
}

static void states_that_find_no_room_are_counted(void **state)
{
	struct litmus l = { .columns = 1, .column = { { .asked = LITMUS_EQUAL, .value = 7 } } };
	struct litmus_result r = { 0 }, sum = { 0 };

	(void)state;
	for (uint32_t i = 0; i < LITMUS_STATES + 5; i++)
		litmus_count(&l, &r, &i, 2);
	assert_int_equal(r.states, LITMUS_STATES);
	assert_int_equal(r.others, 10);
	assert_int_equal(litmus_seen(&l, &r), 2);
	litmus_add(&l, &sum, &r);
	litmus_add(&l, &sum, &r);
	assert_int_equal(sum.instances, 4 * (LITMUS_STATES + 5));
	assert_int_equal(sum.others, 20);
	assert_int_equal(litmus_seen(&l, &sum), 4);
}

/* --- The code --------------------------------------------------------------------------------- */

/* What one thread sees of its own events is sure. */
static void each_event_does_what_it_says(void **state)
{
	static const struct {
		const char *events;
		uint32_t value[LITMUS_REGS];
	} rows[] = {
		{ "fetch s r0\nload s+1 r1\nload x r2\n", { INT_32(1), INT_32(1), 5 } },
		{ "store s+1 02 02 02 02\ncpuid\nfetch s r0\nload s+1 r1\n",
		  { INT_32(2), INT_32(2) } },
		{ "store s+2 02\nstore s+3 03 04\ncpuid\nfetch s r0\n", { 0x04030201 } },
		{ "store e 90 90 b0 07 c3 90 90 90\ncpuid\nfetch e r0\n", { 7 } },
		{ "locked s+1 03\nlocked s+2 04 05\ncpuid\nfetch s r0\n", { 0x01050403 } },
		{ "locked s+1 03 03 03 03\niret\nfetch s r0\n", { INT_32(3) } },
		{ "locked e 90 90 b0 07 c3 90 90 90\niret\nfetch e r0\n", { 7 } },
		{ "nt s+1 04 04 04 04\nsfence\ncpuid\nfetch s r0\n", { INT_32(4) } },
		{ "nt e 90 90 b0 08 c3 90 90 90\nsfence\ncpuid\nfetch e r0\n", { 8 } },
		{ "store x 9\nload x r3\nlocked x 8\nload x r1\nnt x 7\nload x r2\n",
		  { 0, 8, 7, 9 } },
		{ "store alias:s+1 05 05 05 05\ncpuid\nfetch s r0\nload colour:s+1 r1\n",
		  { INT_32(5), INT_32(5) } },
		{ "store s+1 06 06 06 06\ncpuid\nfetch colour:s r0\nfetch alias:s r1\n",
		  { INT_32(6), INT_32(6) } },
		{ "store i+1 07 07 07 07\njump\niret\nrun i r0\n", { INT_32(7) } },
		{ "store colour:i+1 08 08 08 08\ncpuid\nrun i r0\n", { INT_32(8) } },
		{ "clflush s\nclflush x\nmfence\nlfence\nfetch p r0\nfetch b r1\n",
		  { INT_32(1), INT_32(2) } },
		{ "store p+1 09 09 09 09\niret\nfetch p r0\n", { INT_32(9) } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool inside = strstr(rows[i].events, "i r0\n");
		struct litmus_result r;
		struct litmus l;
		char text[1024];

		snprintf(text, sizeof(text),
			 "litmus t\nvar x 5\nsite s 8+0 b8 01 01 01 01 c3\n%s"
			 "site p 4096-3 b8 01 01 01 01 c3\nsite b p+16 b8 02 02 02 02 c3\n"
			 "site e 8+0 90 90 b0 06 c3 90 90 90\n"
			 "thread\n%sexists x=0\n",
			 inside ? "site i inline b8 01 01 01 01\n" : "", rows[i].events);
		if (read_text(text, &l) < 0)
			fail_msg("%s", why);
		r = play_test(&l, FEW);
		assert_int_equal(r.outcome, OUTCOME_DONE);
		assert_true(r.instances >= FEW);
		assert_int_equal(r.states, 1);
		for (unsigned k = 0; k < l.columns; k++)
			if (l.column[k].thread == 0 &&
			    r.state[0].value[k] != rows[i].value[l.column[k].index])
				fail_msg("%sr%u is 0x%x", rows[i].events, l.column[k].index,
					 r.state[0].value[k]);
	}
}

static void sites_stand_where_they_should(void **state)
{
	/* Code that returns where it stands: lea eax, [rip - 6]. */
	static const char *const text =
		"litmus t\nsite a 16-3 8d 05 fa ff ff ff c3\nsite b 64+5 8d 05 fa ff ff ff c3\n"
		"site c 4096-2 8d 05 fa ff ff ff c3\nsite d a+32 8d 05 fa ff ff ff c3\n"
		"thread\nfetch a r0\nfetch b r1\nfetch c r2\nfetch d r3\nexists 0:r0=0\n";
	struct litmus_result r;
	struct litmus l;

	(void)state;
	assert_int_equal(read_text(text, &l), 0);
	r = play_test(&l, FEW);
	assert_true(r.states > 1);
	for (unsigned i = 0; i < r.states; i++) {
		const uint32_t *at = r.state[i].value;

		assert_int_equal(at[0] % 32, 13);
		assert_int_equal(at[1] % 128, 69);
		assert_int_equal(at[2] % 8192, 4094);
		assert_int_equal(at[3] - at[0], 32);
	}
}

static void a_crash_is_told(void **state)
{
	struct litmus_result r;
	struct litmus l;

	(void)state;
	assert_int_equal(read_text(HEAD "site u 8+0 0f 0b\nthread\nfetch u r0\nexists x=0\n", &l),
			 0);
	r = play_test(&l, FEW);
	assert_int_equal(r.outcome, OUTCOME_CRASH);
	assert_int_equal(r.signal, SIGILL);
}

/* Where both vendors forbid it: no CPU is known that shows it.
 */
static void forbidden_outcomes_are_not_seen(void **state)
{
	glob_t all;

	(void)state;
	assert_int_equal(litmus_names(&all), 0);
	for (size_t i = 0; i < all.gl_pathc; i++) {
		struct litmus_result r;
		struct litmus l;

		assert_int_equal(litmus_load(all.gl_pathv[i], &l, why), 0);
		if (l.amd.verdict != LITMUS_FORBIDDEN || l.intel.verdict != LITMUS_FORBIDDEN)
			continue;
		r = play_test(&l, FEW);
		assert_true(r.error == 0 || r.error == -ENOTSUP);
		assert_int_equal(litmus_seen(&l, &r), 0);
	}
	globfree(&all);
}

/* The same code sees what is asked for where a test is broken on purpose. */
static void broken_tests_show_it(void **state)
{
	glob_t all;

	(void)state;
	assert_int_equal(litmus_names(&all), 0);
	for (size_t i = 0; i < all.gl_pathc; i++) {
		uint64_t seen = 0, instances = FEW;
		struct litmus l;

		assert_int_equal(litmus_load(all.gl_pathv[i], &l, why), 0);
		/* Threads that share a CPU hardly meet. */
		if (!l.breaks[0] || l.threads > cpus)
			continue;
		for (; !seen && instances < MOST; instances *= 4) {
			struct litmus_result r = play_test(&l, instances);

			seen = litmus_seen(&l, &r);
		}
		if (!seen)
			fail_msg("%s is not seen", l.name);
	}
	globfree(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_have_line_and_column),
		cmocka_unit_test(installed_tests_are_whole),
		cmocka_unit_test(vendors_say_what_the_file_says),
		cmocka_unit_test(states_that_find_no_room_are_counted),
		cmocka_unit_test(each_event_does_what_it_says),
		cmocka_unit_test(sites_stand_where_they_should),
		cmocka_unit_test(a_crash_is_told),
		cmocka_unit_test(forbidden_outcomes_are_not_seen),
		cmocka_unit_test(broken_tests_show_it),
	};

	return cmocka_run_group_tests(tests, read_cpus, NULL);
}
