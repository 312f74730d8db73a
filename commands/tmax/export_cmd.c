/* SPDX-License-Identifier: MIT */
/*
 * tmax export: the wait that the library takes on this machine, in the form that another patching
 * program reads.
 *
 * Those programs wait a constant, where the library times its stores and stretches the wait. The
 * constant is the longest wait that the library makes by the same level, so its bound holds.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/number.h"
#include "base/text.h"
#include "base/text_file.h"
#include "commands/tmax/commands.h"
#include "patchcore/machine/policy.h"
#include "results/journal/journal.h"

enum consumer {
	REVERIE,
	LITEINST2,
	ENV,
	JSON,
	C_HEADER,
	CONSUMERS
};

static const char *const consumers[CONSUMERS] = { "reverie", "liteinst2", "env", "json",
						  "c-header" };

static int consumer_parse(const char *name)
{
	for (int i = 0; i < CONSUMERS; i++)
		if (strcmp(consumers[i], name) == 0)
			return i;
	return -EINVAL;
}

struct export_request {
	enum consumer consumer;
	double accept_p;
	const char *output;
};

static const struct option_row options[] = {
	{ "for", "NAME", "reverie, liteinst2, env, json or c-header",
	  OPTION_CHOICE(struct export_request, consumer, consumer_parse) },
	{ "accept", "P", "tears per change that the program can bear (1e-9)",
	  OPTION_INTO(option_probability, struct export_request, accept_p) },
	{ "output", "FILE", "write it there; without a budget FILE is removed (also -o)",
	  OPTION_FILE(struct export_request, output), .letter = 'o' },
	{ 0 },
};

static const struct command_line line = {
	.about =
		"Write how long another patching program has to wait on this machine, with bound,\n"
		"scope and machine, in the form that it reads. There is no budget without a\n"
		"machine.conf of this machine that passed and bounds tears by what is accepted.\n",
	.options = { options },
	.end = "Exit status: 0, 2 machine.conf does not carry a budget, 3 there is none of this\n"
	       "machine, 64 usage, 74 cannot write.\n",
};

/* --- The budget ------------------------------------------------------------------------------- */

struct budget {
	double accept_p, upper_p;
	struct waits waits; /* the longer ones of sites in one page and of those across pages */
	uint64_t constant;  /* ticks; a level waits, so it is never 0 */
	const struct facts *facts;
};

static uint64_t longer(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* What policy auto waits by: the same levels, chosen by the same function. */
static int choose_budget(struct facts *facts, struct budget *b)
{
	const struct machine_conf *conf = &facts->conf;
	const struct sync *page, *in_page;
	enum machine_conf_sites sites;
	struct syncs syncs;
	char reason[256];

	facts_learn(facts);
	if (conf->verdict != MACHINE_CONF_PASS)
		return complain(EXIT_INCONCLUSIVE, 0, "no budget: the verdict of %s is %s",
				facts->conf_path,
				conf->verdict == MACHINE_CONF_FAIL ? "fail" : "inconclusive");
	if (!facts->have_conf)
		return complain(EXIT_NO_CONF, 0, "no budget: %s", facts->conf_reason);
	facts->trap = true; /* the other program brings its own */
	policy_choose(facts, PC_POLICY_AUTO, b->accept_p, &syncs, reason, sizeof(reason));
	page = &syncs.page;
	in_page = &syncs.line;
	if (page->policy != PC_POLICY_WAIT || in_page->policy != PC_POLICY_WAIT) {
		sites = page->policy != PC_POLICY_WAIT ? SITES_PAGE : SITES_LINE;
		return complain(EXIT_INCONCLUSIVE, 0,
				"no budget: %s bounds tears only by %s per change, above %s: give "
				"another --accept, or calibrate for longer",
				facts->conf_path,
				NUMBER(machine_conf_p(machine_conf_surest(conf, sites), sites)),
				NUMBER(b->accept_p));
	}
	if (page->rest || in_page->rest)
		return complain(EXIT_INCONCLUSIVE, 0,
				"no budget: %s bounds tears so only at sites that have rested, and "
				"another program does not look for that",
				facts->conf_path);
	b->facts = facts;
	b->upper_p = page->upper_p > in_page->upper_p ? page->upper_p : in_page->upper_p;
	b->waits = (struct waits){ longer(page->waits.first, in_page->waits.first),
				   longer(page->waits.second, in_page->waits.second),
				   longer(page->waits.stretch, in_page->waits.stretch) };
	b->constant = waits_longest(&b->waits);
	return EXIT_PASS;
}

/* --- Its forms -------------------------------------------------------------------------------- */

/*
 * One value; type: as Rust calls it. Texts are of CPUID and of /proc: a quote in one ends no
 * literal. Shells get numbers only.
 */
static void put_value(FILE *out, enum consumer consumer, const char *name, const char *type,
		      const char *text)
{
	bool is_text = type[0] == '&';
	const char *quote = is_text ? "\"" : "";

	if (consumer == ENV && is_text)
		return;
	if (consumer == ENV)
		fprintf(out, "TMAX_STALENESS_%s=", name);
	else if (consumer == C_HEADER)
		fprintf(out, "#define TMAX_STALENESS_%s %s", name, quote);
	else
		fprintf(out, "pub const %s: %s = %s", name, type, quote);
	for (; *text; text++)
		fprintf(out, strchr("\"\\", *text) ? "\\%c" : "%c", *text);
	fprintf(out, "%s%s\n", quote, consumer == LITEINST2 ? ";" : "");
}

static void put_values(FILE *out, enum consumer consumer, const struct budget *b)
{
	const struct machine_conf *conf = &b->facts->conf;
	const struct identity *id = &conf->identity;
	const struct {
		const char *name;
		uint64_t value;
	} counts[] = {
		{ "CONSTANT_TICKS", b->constant },
		{ "FIRST_TICKS", b->waits.first },
		{ "SECOND_TICKS", b->waits.second },
		{ "STRETCH", b->waits.stretch },
		{ "RUNS", conf->runs },
		{ "COUNTED_HERE", !conf->fleet },
		{ "FAMILY", id->family },
		{ "MODEL", id->model },
		{ "STEPPING", id->stepping },
		{ "SOCKETS", id->sockets },
		{ "CORES", id->cores },
		{ "CPUS", id->cpus },
		{ "TSC_KHZ", id->tsc_khz },
	};
	char text[1024];

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		snprintf(text, sizeof(text), "%" PRIu64, counts[i].value);
		put_value(out, consumer, counts[i].name, "u64", text);
	}
	snprintf(text, sizeof(text), "%.17e", b->upper_p);
	put_value(out, consumer, "TEARS_PER_CHANGE", "f64", text);
	put_value(out, consumer, "VENDOR", "&str", id->vendor);
	put_value(out, consumer, "MICROCODE", "&str", id->microcode);
	put_value(out, consumer, "HYPERVISOR", "&str", id->hypervisor);
	cpus_print(&conf->cpus, text, sizeof(text));
	put_value(out, consumer, "SCOPE_CPUS", "&str", text);
}

static void put_comments(FILE *out, const char *mark, const struct budget *b)
{
	const struct machine_conf *conf = &b->facts->conf;
	const struct identity *id = &conf->identity;
	time_t when = (time_t)conf->measured;
	char date[32] = "at an unknown time", path[256], cpus[1024];

	text_printable(path, sizeof(path), b->facts->conf_path);
	cpus_print(&conf->cpus, cpus, sizeof(cpus));
	if (when)
		strftime(date, sizeof(date), "%Y-%m-%d", gmtime(&when));
	fprintf(out, "%sStaleness budget of this machine: %s, by %s.\n", mark, path,
		PACKAGE_STRING);
	fprintf(out, "%sbound: at most %.17g tears per change (%g was accepted), sure by %g %%\n",
		mark, b->upper_p, b->accept_p, 100 * conf->confidence);
	fprintf(out, "%sevidence: %" PRIu64 " run%s %s, the latest %s; speaks for %s\n", mark,
		conf->runs, S(conf->runs),
		conf->fleet ? "of other machines of this kind, none of this one" : "here", date,
		conf->long_run ? "the long run" : "that time only");
	fprintf(out,
		"%sscope: CPUs %s; one instruction across a line or a page, INT3 on its start\n",
		mark, cpus);
	fprintf(out,
		"%smachine: %s family %u model %u stepping %u, microcode %s, hypervisor %s, TSC "
		"%" PRIu64 " kHz\n",
		mark, id->vendor, id->family, id->model, id->stepping, id->microcode,
		id->hypervisor, id->tsc_khz);
	fprintf(out, "%stopology: %u socket%s, %u core%s, %u CPU%s, %s\n", mark, id->sockets,
		S(id->sockets), id->cores, S(id->cores), id->cpus, S(id->cpus), id->caches);
	fprintf(out,
		"%swait: %" PRIu64 " ticks between each two stores. The library waits %" PRIu64
		" and %" PRIu64 ", but %" PRIu64
		" times the latency of its slowest store if that is longer: never longer than "
		"this.\n",
		mark, b->constant, b->waits.first, b->waits.second, b->waits.stretch);
}

static int put_json(FILE *out, const struct budget *b)
{
	const struct machine_conf *conf = &b->facts->conf;
	char cpus[1024], path[256];
	json_t *body;
	int ret;

	cpus_print(&conf->cpus, cpus, sizeof(cpus));
	text_printable(path, sizeof(path), b->facts->conf_path);
	body = json_pack("{s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:I, s:b, s:b, s:I, s:s, s:s, s:o}",
			 "constant_ticks", (json_int_t)b->constant, "first",
			 (json_int_t)b->waits.first, "second", (json_int_t)b->waits.second,
			 "stretch", (json_int_t)b->waits.stretch, "upper_p", b->upper_p, "accept_p",
			 b->accept_p, "confidence", conf->confidence, "runs",
			 (json_int_t)conf->runs, "fleet", conf->fleet, "long_run", conf->long_run,
			 "measured", (json_int_t)conf->measured, "cpus", cpus, "config", path,
			 "identity", identity_to_json(&conf->identity));
	ret = body ? journal_tell(out, journal_line("budget", body)) : -ENOMEM;
	json_decref(body);
	return ret;
}

static int put_budget(FILE *out, enum consumer consumer, const struct budget *b)
{
	if (consumer == JSON)
		return put_json(out, b);
	put_comments(out, consumer == REVERIE || consumer == ENV ? "# " : "// ", b);
	if (consumer == REVERIE) {
		fprintf(out, "REVERIE_LITEINST_STRADDLER_STALENESS_TICKS=%" PRIu64 "\n",
			b->constant);
		return 0;
	}
	if (consumer == LITEINST2)
		fputs("use liteinst2::patcher::StalenessBudget;\n", out);
	if (consumer == C_HEADER)
		fputs("#ifndef TMAX_STALENESS_CONSTANT_TICKS\n", out);
	put_values(out, consumer, b);
	if (consumer == LITEINST2)
		fputs("pub const STALENESS: Option<StalenessBudget> = "
		      "StalenessBudget::new(CONSTANT_TICKS);\n",
		      out);
	if (consumer == C_HEADER)
		fputs("#endif\n", out);
	return 0;
}

/* --- The command ------------------------------------------------------------------------------ */

/* A reader of the file sees the old budget or the new one. */
static int write_budget(const struct export_request *r, const struct budget *b)
{
	char fresh[PATH_MAX];
	FILE *out;

	if (!r->output)
		return put_budget(stdout, r->consumer, b);
	if (snprintf(fresh, sizeof(fresh), "%s.tmp", r->output) >= (int)sizeof(fresh))
		return -ENAMETOOLONG;
	out = fopen(fresh, "we");
	if (!out)
		return -errno;
	return text_file_end(out, fresh, r->output, put_budget(out, r->consumer, b));
}

/* A budget that holds no more is not left for its reader. */
static void remove_budget(const char *path)
{
	struct stat file;

	if (path && lstat(path, &file) == 0 && S_ISREG(file.st_mode) && unlink(path) < 0)
		complain(EXIT_CANNOT_WRITE, -errno, "%s is left as it was", path);
}

int cmd_export(int argc, char **argv)
{
	struct export_request r = { .accept_p = PC_ACCEPT_P_DEFAULT };
	static struct facts facts;
	struct budget budget;
	uint64_t given = 0;
	int ret, status = command_line_parse(&line, argc, argv, &r, &given);

	if (status != EXIT_PASS)
		return status;
	if (!(given & 1))
		return refuse_usage("say --for whom");
	budget = (struct budget){ .accept_p = r.accept_p };
	status = choose_budget(&facts, &budget);
	if (status != EXIT_PASS) {
		remove_budget(r.output);
		return status;
	}
	ret = write_budget(&r, &budget);
	if (ret < 0)
		return complain(EXIT_CANNOT_WRITE, ret, "cannot write %s",
				r.output ? r.output : "the budget");
	return EXIT_PASS;
}
