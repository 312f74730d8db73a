/* SPDX-License-Identifier: MIT */
#include "fleet/store/store.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/data_file.h"

#define FLEET_VERSION 2 /* of the tables */
#define PRINT	      17

enum statement {
	ADD_KIND,
	ADD_MACHINE,
	ADD_RUN,
	ADD_SUM,
	ADD_ASIDE,
	ADD_CPUID,
	HAS_CPUID,
	HAS_COUNTED,
	STATEMENTS
};

#define KIND_MATCHES                                                                               \
	"vendor = ?1 AND family = ?2 AND model = ?3 AND stepping = ?4 AND microcode = ?5 AND "     \
	"hypervisor = ?6 AND sockets = ?7 AND cores = ?8 AND kind.cpus = ?9"

static const char *const texts[STATEMENTS] = {
	[ADD_KIND] =
		"INSERT INTO kind (vendor, family, model, stepping, microcode, hypervisor, "
		"sockets, cores, cpus, brand) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) "
		"ON CONFLICT DO UPDATE SET brand = brand RETURNING id",
	[ADD_MACHINE] = "INSERT INTO machine (name) VALUES (?1) "
			"ON CONFLICT DO UPDATE SET name = name RETURNING id",
	[ADD_RUN] = "INSERT INTO run (print, machine, kind, time, boot, kernel, source, cpus, "
		    "epoch, tsc_khz) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) "
		    "ON CONFLICT DO NOTHING RETURNING id",
	[ADD_SUM] = "INSERT OR IGNORE INTO sum VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, "
		    "?11, ?12, ?13, ?14, ?15, ?16)",
	[ADD_ASIDE] = "INSERT INTO aside (print, file, line, reason) VALUES (?1, ?2, ?3, ?4) "
		      "ON CONFLICT DO NOTHING",
	[ADD_CPUID] = "INSERT INTO cpuid VALUES (?1, ?2) ON CONFLICT DO NOTHING",
	[HAS_CPUID] = "SELECT 1 FROM cpuid WHERE name = ?1",
	[HAS_COUNTED] =
		"SELECT 1 FROM run JOIN kind ON kind.id = run.kind WHERE " KIND_MATCHES
		" AND time BETWEEN ?10 AND ?11 AND source <> 'journal' AND ?12 = "
		"(SELECT sum(toggles) FROM sum WHERE sum.run = run.id AND what = 'wait') LIMIT 1",
};

struct fleet {
	sqlite3 *db;
	sqlite3_stmt *statement[STATEMENTS];
	bool writes;
};

/* SQLite's own words are lost: what went wrong with which file is told by the caller. */
static int errno_of(int code)
{
	switch (code & 0xff) {
	case SQLITE_OK:
	case SQLITE_DONE:
	case SQLITE_ROW:
		return 0;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return -EACCES;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_CANTOPEN:
		return -ENOENT;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return -EPROTO;
	default:
		return -EIO;
	}
}

/* --- Opening ---------------------------------------------------------------------------------- */

/* What makes a database of version i + 1 one of version i + 2. */
static const char *const steps[FLEET_VERSION - 1] = {
	"ALTER TABLE run ADD COLUMN tsc_khz INTEGER NOT NULL DEFAULT 0; "
	"CREATE TABLE cpuid (name TEXT PRIMARY KEY, dump TEXT NOT NULL) STRICT",
};

static int run_text(struct fleet *fleet, const char *text)
{
	return errno_of(sqlite3_exec(fleet->db, text, NULL, NULL, NULL));
}

/* Calls take for each row of a question. */
static int ask_store(struct fleet *fleet, const char *question, int64_t about,
		     int (*take)(sqlite3_stmt *row, void *arg), void *arg)
{
	sqlite3_stmt *statement = NULL;
	int code = sqlite3_prepare_v2(fleet->db, question, -1, &statement, NULL), ret = 0;

	if (code == SQLITE_OK)
		sqlite3_bind_int64(statement, 1, about);
	while (code == SQLITE_OK || (code == SQLITE_ROW && ret == 0)) {
		code = sqlite3_step(statement);
		if (code == SQLITE_ROW)
			ret = take(statement, arg);
	}
	sqlite3_finalize(statement);
	return ret < 0 ? ret : errno_of(code);
}

static int take_number(sqlite3_stmt *row, void *number)
{
	*(uint64_t *)number = (uint64_t)sqlite3_column_int64(row, 0);
	return 0;
}

static int make_tables(struct fleet *fleet)
{
	char path[PATH_MAX], *text = NULL;
	size_t size = 0;
	FILE *file = NULL;
	int ret = -ENOENT;

	if (data_file("fleet.sql", path, sizeof(path)) == 0)
		file = fopen(path, "re");
	if (file && getdelim(&text, &size, '\0', file) >= 0)
		ret = run_text(fleet, text);
	if (file)
		fclose(file);
	free(text);
	return ret;
}

/* Tables of version 0 are none. */
static int bring_up_to_date(struct fleet *fleet, bool create)
{
	uint64_t version = 0;
	int ret = ask_store(fleet, "PRAGMA user_version", 0, take_number, &version);
	char number[48];

	if (ret < 0 || version == FLEET_VERSION)
		return ret;
	if (version > FLEET_VERSION || (version == 0 && !create))
		return -EPROTO;
	if (!create)
		return -ESTALE;
	if (version == 0)
		ret = make_tables(fleet);
	for (uint64_t i = version; i > 0 && i < FLEET_VERSION && ret == 0; i++)
		ret = run_text(fleet, steps[i - 1]);
	snprintf(number, sizeof(number), "PRAGMA user_version = %d", FLEET_VERSION);
	return ret < 0 ? ret : run_text(fleet, number);
}

int fleet_open(struct fleet **opened, const char *path, bool create)
{
	struct fleet *fleet = calloc(1, sizeof(*fleet));
	int flags = create ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
	int ret;

	if (!fleet)
		return -ENOMEM;
	fleet->writes = create;
	ret = errno_of(sqlite3_open_v2(path, &fleet->db, flags, NULL));
	sqlite3_busy_timeout(fleet->db, 60000);
	if (ret == 0)
		ret = run_text(fleet,
			       create ? "PRAGMA foreign_keys = ON; BEGIN IMMEDIATE" : "BEGIN");
	if (ret == 0)
		ret = bring_up_to_date(fleet, create);
	for (int i = 0; i < STATEMENTS && ret == 0 && create; i++)
		ret = errno_of(sqlite3_prepare_v3(fleet->db, texts[i], -1,
						  SQLITE_PREPARE_PERSISTENT, &fleet->statement[i],
						  NULL));
	if (ret < 0)
		fleet_close(fleet, false);
	else
		*opened = fleet;
	return ret;
}

int fleet_close(struct fleet *fleet, bool keep)
{
	int ret;

	for (int i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(fleet->statement[i]);
	ret = run_text(fleet, keep && fleet->writes ? "COMMIT" : "ROLLBACK");
	sqlite3_close(fleet->db);
	free(fleet);
	return keep ? ret : 0;
}

/* --- Adding ----------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash * UINT64_C(0x100000001b3);
}

#define MIX_START UINT64_C(0xcbf29ce484222325)

/* Of what tells runs apart. Two of one machine may end in the same second. */
static void print_run(const char *machine, const struct evidence_run *run, char *print)
{
	uint64_t hash = mix(mix(mix(MIX_START, machine), run->boot), run->source), counts = 0;
	char number[160];

	snprintf(number, sizeof(number), "%" PRId64, run->time);
	hash = mix(hash, number);
	for (size_t i = 0; i < run->sums.count; i++) {
		const struct sum *s = &run->sums.sum[i];

		snprintf(number, sizeof(number),
			 "%d %" PRIu64 " %" PRIu64 " %" PRIu64 " %d %d %u %" PRIu64 " %" PRIu64,
			 s->kind, s->rung.first, s->rung.second, s->rung.stretch, s->crossing,
			 s->placement, s->executors, s->count.toggles, s->count.tears);
		counts += mix(MIX_START, number); /* in any order */
	}
	snprintf(print, PRINT, "%016" PRIx64, hash ^ counts);
}

static void bind_text(sqlite3_stmt *statement, int at, const char *text)
{
	sqlite3_bind_text(statement, at, text, -1, SQLITE_TRANSIENT);
}

static void bind_number(sqlite3_stmt *statement, int at, uint64_t number)
{
	sqlite3_bind_int64(statement, at, number > INT64_MAX ? INT64_MAX : (int64_t)number);
}

/* Where a row comes back its first column is the id. 1, 0: no row; or a negative errno. */
static int step_once(sqlite3_stmt *statement, int64_t *id)
{
	int code = sqlite3_step(statement);

	if (code == SQLITE_ROW && id)
		*id = sqlite3_column_int64(statement, 0);
	sqlite3_reset(statement);
	return code == SQLITE_ROW ? 1 : errno_of(code);
}

static void bind_kind(sqlite3_stmt *statement, const struct identity *id)
{
	const unsigned number[] = { id->family, id->model, id->stepping };
	const unsigned shape[] = { id->sockets, id->cores, id->cpus };

	bind_text(statement, 1, id->vendor);
	for (int i = 0; i < 3; i++)
		bind_number(statement, 2 + i, number[i]);
	bind_text(statement, 5, id->microcode);
	bind_text(statement, 6, id->hypervisor);
	for (int i = 0; i < 3; i++)
		bind_number(statement, 7 + i, shape[i]);
}

int fleet_add_run(struct fleet *fleet, const char *name, const struct evidence_run *run)
{
	sqlite3_stmt *statement = fleet->statement[ADD_RUN];
	char print[PRINT], cpus[CPUS_TEXT];
	int64_t machine = 0, kind = 0, id;
	int ret;

	bind_text(fleet->statement[ADD_MACHINE], 1, name);
	ret = step_once(fleet->statement[ADD_MACHINE], &machine);
	bind_kind(fleet->statement[ADD_KIND], &run->identity);
	bind_text(fleet->statement[ADD_KIND], 10, run->identity.brand);
	if (ret >= 0)
		ret = step_once(fleet->statement[ADD_KIND], &kind);
	if (ret < 0)
		return ret;
	print_run(name, run, print);
	cpus_print(&run->cpus, cpus, sizeof(cpus));
	bind_text(statement, 1, print);
	sqlite3_bind_int64(statement, 2, machine);
	sqlite3_bind_int64(statement, 3, kind);
	sqlite3_bind_int64(statement, 4, run->time);
	bind_text(statement, 5, run->boot);
	bind_text(statement, 6, run->identity.kernel);
	bind_text(statement, 7, run->source);
	bind_text(statement, 8, cpus);
	bind_number(statement, 9, run->epoch);
	bind_number(statement, 10, run->identity.tsc_khz);
	ret = step_once(statement, &id);
	if (ret <= 0)
		return ret;
	for (size_t i = 0; i < run->sums.count && ret >= 0; i++) {
		const struct sum *s = &run->sums.sum[i];
		const struct count *c = &s->count;

		statement = fleet->statement[ADD_SUM];
		sqlite3_bind_int64(statement, 1, id);
		bind_text(statement, 2, sum_kind_name(s->kind));
		bind_number(statement, 3, s->rung.first);
		bind_number(statement, 4, s->rung.second);
		bind_number(statement, 5, s->rung.stretch);
		bind_text(statement, 6, crossing_name(s->crossing));
		bind_text(statement, 7, placement_name(s->placement));
		bind_number(statement, 8, s->executors);
		bind_number(statement, 9, c->slices);
		bind_number(statement, 10, c->toggles);
		bind_number(statement, 11, c->tears);
		sqlite3_bind_double(statement, 12, c->unevenness);
		sqlite3_bind_double(statement, 13, c->squares);
		sqlite3_bind_double(statement, 14, c->ticks);
		bind_number(statement, 15, c->worst_tears);
		bind_number(statement, 16, c->worst_toggles);
		ret = step_once(statement, NULL);
	}
	return ret < 0 ? ret : 1;
}

int fleet_has_counted(struct fleet *fleet, const struct evidence_run *run, int64_t begin,
		      int64_t end)
{
	sqlite3_stmt *statement = fleet->statement[HAS_COUNTED];
	uint64_t toggles = 0;

	for (size_t i = 0; i < run->sums.count; i++)
		if (run->sums.sum[i].kind == SUM_WAIT)
			toggles += run->sums.sum[i].count.toggles;
	bind_kind(statement, &run->identity);
	sqlite3_bind_int64(statement, 10, begin);
	sqlite3_bind_int64(statement, 11, end);
	bind_number(statement, 12, toggles);
	return step_once(statement, NULL);
}

int fleet_has_cpuid(struct fleet *fleet, const char *name)
{
	bind_text(fleet->statement[HAS_CPUID], 1, name);
	return step_once(fleet->statement[HAS_CPUID], NULL);
}

int fleet_add_cpuid(struct fleet *fleet, const char *name, const char *dump)
{
	bind_text(fleet->statement[ADD_CPUID], 1, name);
	bind_text(fleet->statement[ADD_CPUID], 2, dump);
	return step_once(fleet->statement[ADD_CPUID], NULL);
}

int fleet_set_aside(struct fleet *fleet, const char *file, size_t line, const char *text,
		    const char *reason)
{
	sqlite3_stmt *statement = fleet->statement[ADD_ASIDE];
	int before = sqlite3_total_changes(fleet->db), ret;
	char print[PRINT];

	snprintf(print, sizeof(print), "%016" PRIx64, mix(MIX_START, text));
	bind_text(statement, 1, print);
	bind_text(statement, 2, file);
	bind_number(statement, 3, line);
	bind_text(statement, 4, reason);
	ret = step_once(statement, NULL);
	return ret < 0 ? ret : sqlite3_total_changes(fleet->db) > before;
}

/* --- Reading ---------------------------------------------------------------------------------- */

static void read_text(sqlite3_stmt *row, int at, char *to, size_t size)
{
	const unsigned char *text = sqlite3_column_text(row, at);

	snprintf(to, size, "%s", text ? (const char *)text : "");
}

/* An array that grows, of things of one size. */
struct list {
	char *at;
	size_t count, size;
};

/* Doubled whenever it is full: then its count is a power of two. */
static void *list_more(struct list *list)
{
	size_t room = list->count ? 2 * list->count : 1;
	char *more = list->at;

	if ((list->count & (list->count - 1)) == 0)
		more = realloc(list->at, room * list->size);
	if (!more)
		return NULL;
	list->at = more;
	return memset(list->at + list->count++ * list->size, 0, list->size);
}

static int take_kind(sqlite3_stmt *row, void *list)
{
	struct fleet_kind *kind = list_more(list);

	if (!kind)
		return -ENOMEM;
	*kind = (struct fleet_kind){
		.id = sqlite3_column_int64(row, 0),
		.identity = {
			.family = (unsigned)sqlite3_column_int(row, 2),
			.model = (unsigned)sqlite3_column_int(row, 3),
			.stepping = (unsigned)sqlite3_column_int(row, 4),
			.sockets = (unsigned)sqlite3_column_int(row, 7),
			.cores = (unsigned)sqlite3_column_int(row, 8),
			.cpus = (unsigned)sqlite3_column_int(row, 9),
		},
		.machines = (uint64_t)sqlite3_column_int64(row, 11),
		.runs = (uint64_t)sqlite3_column_int64(row, 12),
		.from = sqlite3_column_int64(row, 13),
		.to = sqlite3_column_int64(row, 14),
		.khz = { (uint64_t)sqlite3_column_int64(row, 15),
			 (uint64_t)sqlite3_column_int64(row, 16) },
	};
	read_text(row, 1, kind->identity.vendor, sizeof(kind->identity.vendor));
	read_text(row, 5, kind->identity.microcode, sizeof(kind->identity.microcode));
	read_text(row, 6, kind->identity.hypervisor, sizeof(kind->identity.hypervisor));
	read_text(row, 10, kind->identity.brand, sizeof(kind->identity.brand));
	return 0;
}

int fleet_kinds(struct fleet *fleet, struct fleet_kind **kinds, size_t *count)
{
	struct list list = { .size = sizeof(**kinds) };
	int ret =
		ask_store(fleet,
			  "SELECT kind.*, count(DISTINCT machine), count(*), min(time), max(time), "
			  "min(nullif(tsc_khz, 0)), max(tsc_khz) FROM kind JOIN run ON run.kind = "
			  "kind.id GROUP BY kind.id ORDER BY 12 DESC, 1",
			  0, take_kind, &list);

	*kinds = (struct fleet_kind *)(void *)list.at;
	*count = list.count;
	return ret;
}

static int take_host(sqlite3_stmt *row, void *list)
{
	struct fleet_host *host = list_more(list);

	if (!host)
		return -ENOMEM;
	host->machine = sqlite3_column_int64(row, 0);
	read_text(row, 1, host->name, sizeof(host->name));
	host->kind = sqlite3_column_int64(row, 2);
	read_text(row, 3, host->kernel, sizeof(host->kernel));
	host->khz = (uint64_t)sqlite3_column_int64(row, 4);
	host->time = sqlite3_column_int64(row, 5);
	host->runs = (uint64_t)sqlite3_column_int64(row, 6);
	return 0;
}

/* SQLite takes what stands beside max() from the row that has it. */
int fleet_hosts(struct fleet *fleet, struct fleet_host **hosts, size_t *count)
{
	struct list list = { .size = sizeof(**hosts) };
	int ret = ask_store(
		fleet,
		"SELECT machine, name, kind, kernel, tsc_khz, max(time), count(*) FROM run "
		"JOIN machine ON machine.id = run.machine GROUP BY machine ORDER BY machine",
		0, take_host, &list);

	*hosts = (struct fleet_host *)(void *)list.at;
	*count = list.count;
	return ret;
}

/* A row is a sum of the run before, or begins one. Rows that are not ours are passed over. */
static int take_sum(sqlite3_stmt *row, void *arg)
{
	struct list *list = arg;
	struct fleet_run *runs = (struct fleet_run *)(void *)list->at, *run;
	char kind[16], crossing[32], placement[32];
	int64_t id = sqlite3_column_int64(row, 0);
	int codes[3];
	struct sum s = {
		.rung = { (uint64_t)sqlite3_column_int64(row, 7),
			  (uint64_t)sqlite3_column_int64(row, 8),
			  (uint64_t)sqlite3_column_int64(row, 9) },
		.executors = (unsigned)sqlite3_column_int(row, 12),
		.count = {
			.slices = (uint64_t)sqlite3_column_int64(row, 13),
			.toggles = (uint64_t)sqlite3_column_int64(row, 14),
			.tears = (uint64_t)sqlite3_column_int64(row, 15),
			.unevenness = sqlite3_column_double(row, 16),
			.squares = sqlite3_column_double(row, 17),
			.ticks = sqlite3_column_double(row, 18),
			.worst_tears = (uint64_t)sqlite3_column_int64(row, 19),
			.worst_toggles = (uint64_t)sqlite3_column_int64(row, 20),
		},
	};

	if (!list->count || runs[list->count - 1].id != id) {
		run = list_more(list);
		if (!run)
			return -ENOMEM;
		run->id = id;
		run->machine = sqlite3_column_int64(row, 1);
		read_text(row, 2, run->name, sizeof(run->name));
		read_text(row, 3, run->kernel, sizeof(run->kernel));
		run->time = sqlite3_column_int64(row, 4);
		run->epoch = (unsigned)sqlite3_column_int(row, 5);
		runs = (struct fleet_run *)(void *)list->at;
	}
	read_text(row, 6, kind, sizeof(kind));
	read_text(row, 10, crossing, sizeof(crossing));
	read_text(row, 11, placement, sizeof(placement));
	codes[0] = sum_kind_parse(kind);
	codes[1] = crossing_parse(crossing);
	codes[2] = placement_parse(placement);
	if (codes[0] < 0 || codes[1] < 0 || codes[2] < 0)
		return 0;
	s.kind = (enum sum_kind)codes[0];
	s.crossing = (enum crossing)codes[1];
	s.placement = (enum placement)codes[2];
	return sums_add(&runs[list->count - 1].sums, &s);
}

int fleet_runs(struct fleet *fleet, int64_t kind, struct fleet_run **runs, size_t *count)
{
	struct list list = { .size = sizeof(**runs) };
	int ret = ask_store(
		fleet,
		"SELECT run.id, machine, name, kernel, time, epoch, what, first, second, "
		"stretch, crossing, placement, executors, slices, toggles, tears, unevenness, "
		"squares, ticks, worst_tears, worst_toggles FROM run "
		"JOIN machine ON machine.id = run.machine JOIN sum ON sum.run = run.id "
		"WHERE kind = ?1 ORDER BY machine, time, run.id",
		kind, take_sum, &list);

	*runs = (struct fleet_run *)(void *)list.at;
	*count = list.count;
	return ret;
}

void fleet_runs_free(struct fleet_run *runs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		sums_free(&runs[i].sums);
	free(runs);
}

uint64_t fleet_asides(struct fleet *fleet)
{
	uint64_t count = 0;

	ask_store(fleet, "SELECT count(*) FROM aside", 0, take_number, &count);
	return count;
}
