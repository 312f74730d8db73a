/* SPDX-License-Identifier: MIT */
/* Files of protocols: what is read of them, and what is refused where. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stress/protocol/protocol.h"

#define HEAD "name a-b\nsource here\nclaims all\ninstructions 1\n"
#define SITE HEAD "pairs word\n"

static struct protocol_file p;
static char why[WORDS_WHY];

static int read_text(const char *text)
{
	FILE *stream = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	int ret;

	assert_non_null(stream);
	ret = protocol_read(stream, "f", &p, why);
	fclose(stream);
	return ret;
}

static void good(const char *text)
{
	int ret = read_text(text);

	if (ret < 0)
		print_error("%s\n", why);
	assert_int_equal(ret, 0);
}

static void refused(const char *text, const char *complaint)
{
	assert_int_equal(read_text(text), -EINVAL);
	assert_string_equal(why, complaint);
}

static void every_statement_is_read(void **state)
{
	const struct protocol_step *s = p.step[0];

	(void)state;
	good("name a-b\nsource some project, a/b.c # 7\nclaims to hold\nbroken\ninstructions 2\n"
	     "old b8 27 00 00 00 0f 05\nnew ff 24 25 table\nsupports none\nsupports line 1 6\n"
	     "guard locked 5 06 restart # a comment\nstore plain 1+6 new\nstore nontemporal front "
	     "old\n"
	     "store plain 0+2 bytes eb fe\nmfence\nsfence\nlfence\nclflush back\nclflushopt all\n"
	     "clwb 3\nwait first\nwait second\nwait 500\nwait 500 4\nmembarrier expedited\n"
	     "membarrier sync-core\nsignal\nguard plain 0 cc pass\nback\nrestore\n");
	assert_string_equal(p.name, "a-b");
	assert_string_equal(p.source, "some project, a/b.c # 7");
	assert_string_equal(p.claims, "to hold");
	assert_true(p.broken);
	assert_int_equal(p.instructions, 2);
	assert_int_equal(p.length, 7);
	assert_int_equal(p.pairs, 1u << PAIR_OWN);
	assert_memory_equal(p.code[0].bytes, "\xb8\x27\0\0\0\x0f\x05", 7);
	assert_memory_equal(p.code[1].bytes, "\xff\x24\x25\x10\x11\x06\0", 7);
	assert_int_equal(p.code[0].branch, BRANCH_NONE);
	assert_int_equal(p.code[1].branch, BRANCH_TABLE);
	assert_int_equal(p.code[1].branch_at, 3);
	assert_true(protocol_supports(&p, CROSSING_NONE, 3));
	assert_true(protocol_supports(&p, CROSSING_LINE, 6));
	assert_false(protocol_supports(&p, CROSSING_LINE, 5));
	assert_false(protocol_supports(&p, CROSSING_PAGE, 6));
	assert_int_equal(p.steps[0], 18);
	assert_int_equal(p.steps[1], 1);
	assert_int_equal(p.step[1][0].kind, STEP_RESTORE);
	assert_int_equal(s[0].kind, STEP_GUARD);
	assert_int_equal(s[0].form, STORE_LOCKED);
	assert_int_equal(s[0].span.at, 5);
	assert_int_equal(s[0].bytes[0], 6);
	assert_int_equal(s[0].trap, TRAP_RESTART);
	assert_int_equal(s[0].line, 10);
	assert_int_equal(s[1].span.at, 1);
	assert_int_equal(s[1].span.length, 6);
	assert_int_equal(s[1].source, BYTES_NEW);
	assert_int_equal(s[2].form, STORE_NONTEMPORAL);
	assert_int_equal(s[2].span.kind, SPAN_FRONT);
	assert_int_equal(s[2].source, BYTES_OLD);
	assert_memory_equal(s[3].bytes, "\xeb\xfe", 2);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(s[4 + i].kind, STEP_FENCE);
		assert_int_equal(s[4 + i].form, FENCE_MFENCE + i);
		assert_int_equal(s[7 + i].kind, STEP_FLUSH);
		assert_int_equal(s[7 + i].form, FLUSH_CLFLUSH + i);
		assert_int_equal(s[10 + i].form, WAIT_FIRST + i);
	}
	assert_int_equal(s[13].ticks, 500);
	assert_int_equal(s[13].stretch, 4);
	assert_int_equal(s[14].form, BARRIER_EXPEDITED);
	assert_int_equal(s[15].form, BARRIER_SYNC_CORE);
	assert_int_equal(s[16].kind, STEP_SIGNAL);
	assert_int_equal(s[17].trap, TRAP_PASS);
}

static void the_way_back_is_the_same_unless_told(void **state)
{
	(void)state;
	good(SITE "store locked back new\nstore locked front new\n");
	assert_int_equal(p.steps[1], 2);
	assert_memory_equal(p.step[0], p.step[1], sizeof(p.step[0]));
	assert_int_equal(p.length, 5);
}

static void errors_name_line_and_column(void **state)
{
	(void)state;
	refused("", "f:1:1: expected a name, found the end of the file");
	refused("nome a\n", "f:1:1: expected a statement of tmax-protocol(5), found 'nome'");
	refused("name A\n", "f:1:6: expected a name of small letters, digits and -, found 'A'");
	refused("name a b\n", "f:1:8: expected the end of the line, found 'b'");
	refused("source\n", "f:1:7: expected a text, found the end of the line");
	refused(HEAD "instructions 0\n", "f:5:14: expected a number from 1 to 16, found '0'");
	refused(HEAD "pairs word wurd\n",
		"f:5:12: expected call-nop, call-call, jmp-nop or word, found 'wurd'");
	refused(HEAD "pairs\n",
		"f:5:6: expected call-nop, call-call, jmp-nop or word, found the end of the line");
	refused(SITE "old 90 90\n", "f:6:1: expected one description of the site, found 'old'");
	refused(HEAD "new 90 90\n", "f:5:1: expected old before new, once, found 'new'");
	refused(HEAD "old 90 90\npairs word\n",
		"f:6:1: expected one description of the site, found 'pairs'");
	refused(HEAD "old 90 9x\n", "f:5:8: expected a byte of two hexadecimal digits, found '9x'");
	refused(HEAD "old 90\n", "f:5:7: expected 2 bytes or more, found the end of the line");
	refused(HEAD "old 90 90\nnew 90 90 90\n",
		"f:6:13: expected as many bytes as old has, found the end of the line");
	refused(HEAD "old call jump\n", "f:5:10: expected one branch in a code, found 'jump'");
	refused(HEAD "old 01 02 03 04 05 06 07 08 09 10 11 12 call\n",
		"f:5:41: expected at most 16 bytes of code, found 'call'");
	refused(HEAD "old 90 90\nsignal\n",
		"f:6:1: expected pairs, or old and new, first, found 'signal'");
	refused(HEAD "supports line\n",
		"f:5:1: expected pairs, or old and new, first, found 'supports'");
	refused(SITE "supports line 5\n", "f:6:15: expected a number from 1 to 4, found '5'");
	refused(SITE "supports lines\n",
		"f:6:10: expected none, 8, 16, 32, inside, line or page, found 'lines'");
	refused(SITE "store weak all new\n",
		"f:6:7: expected plain, locked or nontemporal, found 'weak'");
	refused(SITE "store plain 1+5 new\n",
		"f:6:13: expected front, back, tail, all or OFFSET+BYTES within 5, found '1+5'");
	refused(SITE "store plain all now\n", "f:6:17: expected old, new or bytes, found 'now'");
	refused(SITE "store plain all bytes cc\n",
		"f:6:13: expected OFFSET+BYTES before bytes, found 'all'");
	refused(SITE "store plain 0+2 bytes eb\n",
		"f:6:25: expected a byte of two hexadecimal digits, found the end of the line");
	refused(SITE "guard nontemporal 0 cc pass\n",
		"f:6:7: expected plain or locked, found 'nontemporal'");
	refused(SITE "guard plain 0+2 cc pass\n",
		"f:6:13: expected the offset of one byte, found '0+2'");
	refused(SITE "guard plain 0 cc pass\n",
		"f:6:18: expected restart, as the pairs are not NOPs, found 'pass'");
	refused(SITE "guard plain 0 cc stop\n", "f:6:18: expected restart or pass, found 'stop'");
	refused(SITE "wait third\n",
		"f:6:6: expected first, second or ticks up to 1000000000, found 'third'");
	refused(SITE "wait 5 65\n", "f:6:8: expected a number from 0 to 64, found '65'");
	refused(SITE "membarrier global\n",
		"f:6:12: expected expedited or sync-core, found 'global'");
	refused(SITE "clflush\n", "f:6:8: expected front, back, tail, all or OFFSET+BYTES within "
				  "5, found the end of the line");
	refused(SITE "back\n", "f:6:1: expected a step before back, found 'back'");
	refused(SITE "signal\nback\nback\n", "f:8:1: expected back once, found 'back'");
	refused(SITE "signal\nback\n", "f:8:1: expected a step, found the end of the file");
	refused(SITE, "f:6:1: expected a step, found the end of the file");
}

static void steps_are_limited(void **state)
{
	char text[1024] = SITE;

	(void)state;
	for (unsigned i = 0; i < PROTOCOL_STEPS; i++)
		strcat(text, "mfence\n");
	good(text);
	strcat(text, "mfence\n");
	refused(text, "f:38:1: expected at most 32 steps each way, found 'mfence'");
}

static void the_library_is_found_by_name(void **state)
{
	const struct protocol_file *naive, *again;
	char path[4096];

	(void)state;
	assert_int_equal(protocol_find("naive", &naive, why), 0);
	assert_string_equal(naive->name, "naive");
	assert_int_equal(protocol_find("naive", &again, why), 0);
	assert_ptr_equal(naive, again);
	assert_int_equal(protocol_find("naive.protocol", &again, why), 0);
	assert_string_equal(again->name, "naive");
	assert_int_equal(protocol_path("naive", path, sizeof(path)), 0);
	assert_int_equal(protocol_find(path, &again, why), 0);
	assert_int_equal(protocol_find("nowhere", &again, why), -ENOENT);
	assert_string_equal(why, "nowhere: No such file or directory");
	assert_int_equal(protocol_find("./nowhere", &again, why), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_statement_is_read),
		cmocka_unit_test(the_way_back_is_the_same_unless_told),
		cmocka_unit_test(errors_name_line_and_column),
		cmocka_unit_test(steps_are_limited),
		cmocka_unit_test(the_library_is_found_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
