/* SPDX-License-Identifier: MIT */
/*
 * Litmus tests of instruction fetch: a few threads, each with a few events, of which one at least
 * stores to code; and an outcome that is asked for. tmax-litmus(1) has the format of the files.
 *
 * A test is run many times. Whenever an instance begins, each thread has serialised since the
 * initial code was written. What they do then is not synchronised.
 */
#ifndef CONFORM_LITMUS_H
#define CONFORM_LITMUS_H

#include <glob.h>

#include "base/words.h"
#include "stress/run/run.h"

#define LITMUS_NAME	32 /* bytes of a name */
#define LITMUS_TEXT	200
#define LITMUS_THREADS	4
#define LITMUS_EVENTS	16 /* of a thread */
#define LITMUS_SYMBOLS	12
#define LITMUS_REGS	4 /* of a thread */
#define LITMUS_COLUMNS	8 /* registers and variables of an outcome */
#define LITMUS_STATES	64
#define LITMUS_CODE	16 /* bytes of a site */
#define LITMUS_BOUNDARY 4096u

enum litmus_op {
	LITMUS_STORE,
	LITMUS_LOCKED,
	LITMUS_NT,
	LITMUS_LOAD,
	LITMUS_CLFLUSH,
	LITMUS_FETCH, /* a call of the site */
	LITMUS_RUN,   /* the site stands in the thread's own code */
	/* Without operands. */
	LITMUS_JUMP,
	LITMUS_CPUID,
	LITMUS_SERIALIZE,
	LITMUS_IRET,
	LITMUS_MFENCE,
	LITMUS_LFENCE,
	LITMUS_SFENCE,
	LITMUS_OPS
};

/* Addresses of one page: the first, a second of the same colour, and one of another. */
enum litmus_view {
	LITMUS_PLAIN,
	LITMUS_ALIAS,
	LITMUS_COLOUR,
	LITMUS_VIEWS
};

struct litmus_event {
	enum litmus_op op;
	enum litmus_view view;
	unsigned target; /* a symbol, by index */
	unsigned offset; /* in the site */
	unsigned size;	 /* bytes stored */
	unsigned reg;	 /* that gets what is loaded, or what the code returns in EAX */
	uint64_t value;	 /* stored */
};

enum litmus_kind {
	LITMUS_SITE = 1,
	LITMUS_VAR = 2,	  /* of 4 bytes; its value is the initial one */
	LITMUS_VALUE = 4, /* a number with a name */
};

struct litmus_symbol {
	char name[LITMUS_NAME];
	enum litmus_kind kind;
	uint32_t value;
	/* Of a site. */
	uint8_t code[LITMUS_CODE];
	unsigned size;
	bool in_line;	   /* stands where its thread runs it, else at this offset */
	int offset;	   /* from the start of an earlier site, or from an address that is */
	int behind;	   /* by index; -1: none */
	unsigned boundary; /* an odd multiple of this power of two */
};

/* A register, or what a variable holds in the end. */
struct litmus_column {
	unsigned thread; /* LITMUS_THREADS: a variable */
	unsigned index;	 /* of the register or the symbol */
	enum litmus_asked {
		LITMUS_ANY,
		LITMUS_EQUAL, /* the outcome asked for has this value there, */
		LITMUS_OTHER, /* or one that has no name */
	} asked;
	uint32_t value;
};

enum litmus_verdict {
	LITMUS_UNSAID,
	LITMUS_ALLOWED,
	LITMUS_FORBIDDEN,
};

struct litmus {
	char name[LITMUS_NAME];
	char about[LITMUS_TEXT];
	char breaks[LITMUS_TEXT]; /* the test that this one is, broken on purpose; or "" */
	struct litmus_symbol symbol[LITMUS_SYMBOLS];
	unsigned symbols;
	struct litmus_thread {
		struct litmus_event event[LITMUS_EVENTS];
		unsigned events;
	} thread[LITMUS_THREADS];
	unsigned threads;
	struct litmus_column column[LITMUS_COLUMNS];
	unsigned columns;
	struct litmus_said {
		enum litmus_verdict verdict;
		char source[LITMUS_TEXT];
	} amd, intel;
};

/*
 * litmus_read - 0; -EINVAL with a reason in why, WORDS_WHY bytes; -EIO; -ENOMEM. litmus_load - the
 * same of a file, or of the installed test of that name; or what opening failed with.
 *
 * litmus_names - paths of all installed tests, sorted; to be freed by globfree(). 0 or a negative
 * errno.
 */
int litmus_read(FILE *stream, const char *file, struct litmus *l, char *why);
int litmus_load(const char *name, struct litmus *l, char *why);
int litmus_names(glob_t *found);

/* litmus_said - what the vendor of that CPUID name says; of another vendor: what all say. */
enum litmus_verdict litmus_said(const struct litmus *l, const char *vendor);
const char *litmus_verdict_name(enum litmus_verdict verdict);

/* --- What was seen ---------------------------------------------------------------------------- */

struct litmus_result {
	enum outcome outcome;
	int signal;
	int error; /* -ENOTSUP: an instruction is missing here */
	double seconds;
	uint64_t instances;
	struct litmus_state {
		uint32_t value[LITMUS_COLUMNS];
		uint64_t count;
	} state[LITMUS_STATES];
	unsigned states;
	uint64_t others; /* instances in states for which there was no room */
};

/* litmus_count - add a state to a histogram. litmus_add - add what one run has seen to the sum. */
void litmus_count(const struct litmus *l, struct litmus_result *r, const uint32_t *value,
		  uint64_t count);
void litmus_add(const struct litmus *l, struct litmus_result *sum, const struct litmus_result *r);

/* litmus_is_asked - is it the outcome asked for? litmus_seen - how often that was seen. */
bool litmus_is_asked(const struct litmus *l, const uint32_t *value);
uint64_t litmus_seen(const struct litmus *l, const struct litmus_result *r);

/* litmus_state_text - "1:r0=new; x=1;" of a state; NULL: the outcome asked for, joined by /\. */
#define LITMUS_STATE_TEXT 256
char *litmus_state_text(const struct litmus *l, const uint32_t *value, char *text);

/* --- Running it ------------------------------------------------------------------------------- */

struct litmus_bench;

/*
 * litmus_open - in a child process: memory and code of a test, for so many threads, which is as
 * many as it has or more; crowded: some share a CPU. 0 or a negative errno, -ENOTSUP if an
 * instruction is missing here.
 */
int litmus_open(struct litmus_bench **bench, const struct litmus *l, unsigned threads, bool crowded,
		uint64_t seed, struct litmus_result *result);

/*
 * litmus_play - by each of the threads, on its CPU. Thread 0 asks before each batch whether to go
 * on, with the result up to date.
 */
typedef bool litmus_goes_on(void *arg);
void litmus_play(struct litmus_bench *bench, unsigned thread, litmus_goes_on *goes_on, void *arg);

/*
 * litmus_run - so many instances or a few more, in a child of its own, thread i on cpu[i]. 0, or a
 * negative errno if there was no child.
 */
int litmus_run(const struct litmus *l, const unsigned cpu[LITMUS_THREADS], uint64_t instances,
	       uint64_t seed, const struct run_options *options, struct litmus_result *result);

#endif
