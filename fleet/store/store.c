/* SPDX-License-Identifier: MIT */
/* The database: its statements, and rows from and into structs by tables of fields. */
#include "fleet/store/store.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_file.h"

#define FLEET_VERSION 4	   /* of the tables */
#define HOUR	      3600 /* seconds */

enum statement {
	ADD_KIND,
	ADD_MACHINE,
	ADD_RUN,
	ADD_SUM,
	ADD_PROTOCOL,
	ADD_ASIDE,
	FIND_RUN,
	FIND_BOOT,
	DROP_RUN,
	FORGET_JOURNAL,
	STATEMENTS
};

#define FIND_IN                                                                                    \
	"SELECT run.id, name, time, up FROM run JOIN machine ON "                                  \
	"machine.id = run.machine"

/* Parameters of kinds are in the order of kind_fields. */
static const char *const texts[STATEMENTS] = {
	[ADD_KIND] = "INSERT INTO kind (vendor, family, model, stepping, microcode, hypervisor, "
		     "sockets, cores, cpus, brand) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
		     "ON CONFLICT DO UPDATE SET brand = brand RETURNING id",
	[ADD_MACHINE] = "INSERT INTO machine (name) VALUES (?) "
			"ON CONFLICT DO UPDATE SET name = name RETURNING id",
	[ADD_RUN] = "INSERT INTO run (print, machine, kind, time, up, boot, kernel, source, "
		    "cpus, tsc_khz) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
	[ADD_SUM] = "INSERT OR IGNORE INTO sum (run, what, crossing, placement, executors, first, "
		    "second, stretch, slices, toggles, tears, unevenness, squares, ticks, "
		    "worst_tears, worst_toggles) "
		    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[ADD_PROTOCOL] = "INSERT OR IGNORE INTO protocol (run, name, changes, tears, died) "
			 "VALUES (?, ?, ?, ?, ?)",
	[ADD_ASIDE] = "INSERT INTO aside (print, file, line, reason) VALUES (?, ?, ?, ?) "
		      "ON CONFLICT DO NOTHING RETURNING 1",
	[FIND_RUN] = FIND_IN " WHERE print = ?",
	[FIND_BOOT] = FIND_IN " WHERE boot = ? AND boot <> '' ORDER BY up < 0, run.id LIMIT 1",
	[DROP_RUN] = "UPDATE run SET dropped = 1 WHERE id = ?",
	/* It gives way to one that has grown, and to its evidence. */
	[FORGET_JOURNAL] = "DELETE FROM run WHERE print = ?1 AND source = 'journal' AND "
			   "(?2 <> 'journal' OR time < ?3)",
};

/* clang-format off */
const struct field kind_fields[] = {
	TEXT(struct identity, "vendor", vendor, -1),
	BOUNDED(struct identity, "family", family, NUMBER_UNSIGNED, 0, UINT32_MAX),
	BOUNDED(struct identity, "model", model, NUMBER_UNSIGNED, 0, UINT32_MAX),
	BOUNDED(struct identity, "stepping", stepping, NUMBER_UNSIGNED, 0, UINT32_MAX),
	TEXT(struct identity, "microcode", microcode, -1),
	TEXT(struct identity, "hypervisor", hypervisor, -1),
	BOUNDED(struct identity, "sockets", sockets, NUMBER_UNSIGNED, 0, UINT32_MAX),
	BOUNDED(struct identity, "cores", cores, NUMBER_UNSIGNED, 0, UINT32_MAX),
	BOUNDED(struct identity, "cpus", cpus, NUMBER_UNSIGNED, 0, UINT32_MAX),
	TEXT(struct identity, "brand", brand, -1),
	END
};

static const struct field kind_sum_fields[] = {
	COUNT(struct fleet_kind, "machines", machines),
	COUNT(struct fleet_kind, "runs", runs),
	SIGNED(struct fleet_kind, "from", from),
	SIGNED(struct fleet_kind, "to", to),
	COUNT(struct fleet_kind, "lowest_khz", khz[0]),
	COUNT(struct fleet_kind, "highest_khz", khz[1]),
	END
};

static const struct field host_fields[] = {
	SIGNED(struct fleet_host, "machine", machine),
	TEXT(struct fleet_host, "name", name, -1),
	SIGNED(struct fleet_host, "kind", kind),
	TEXT(struct fleet_host, "kernel", kernel, -1),
	COUNT(struct fleet_host, "khz", khz),
	SIGNED(struct fleet_host, "time", time),
	COUNT(struct fleet_host, "runs", runs),
	END
};

static const struct field run_fields[] = {
	SIGNED(struct fleet_run, "id", id),
	SIGNED(struct fleet_run, "machine", machine),
	TEXT(struct fleet_run, "name", name, -1),
	TEXT(struct fleet_run, "kernel", kernel, -1),
	SIGNED(struct fleet_run, "time", time),
	END
};

static const struct field protocol_fields[] = {
	TEXT(struct fleet_protocol, "name", name, -1),
	COUNT(struct fleet_protocol, "changes", changes),
	COUNT(struct fleet_protocol, "tears", tears),
	COUNT(struct fleet_protocol, "died", died),
	COUNT(struct fleet_protocol, "machines", machines),
	END
};
/* clang-format on */

struct fleet {
	sqlite3 *db;
	sqlite3_stmt *statement[STATEMENTS];
	bool writes;
};

/* SQLite's own words are lost: the caller says what went wrong with which file. */
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
		return -EBUSY;
	case SQLITE_READONLY:
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
	while (code == SQLITE_OK || (code == SQLITE_ROW && ret >= 0)) {
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

/* A database of version 0 has no tables yet. */
static int check_tables(struct fleet *fleet, bool create)
{
	uint64_t version = 0;
	int ret = ask_store(fleet, "PRAGMA user_version", 0, take_number, &version);
	char path[PATH_MAX], number[48], *text;

	if (ret < 0 || version == FLEET_VERSION)
		return ret;
	if (version || !create)
		return -EPROTO;
	text = data_file("fleet.sql", path, sizeof(path)) == 0 ? text_file_read(path) : NULL;
	ret = text ? run_text(fleet, text) : -ENOENT;
	free(text);
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
		ret = check_tables(fleet, create);
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

static void bind_text(sqlite3_stmt *statement, int at, const char *text)
{
	sqlite3_bind_text(statement, at, text, -1, SQLITE_TRANSIENT);
}

static void bind_number(sqlite3_stmt *statement, int at, uint64_t number)
{
	sqlite3_bind_int64(statement, at, number > INT64_MAX ? INT64_MAX : (int64_t)number);
}

/* The members of a struct, from this parameter on. Returns the one behind them. */
static int bind_fields(sqlite3_stmt *statement, int at, const struct field *f, const void *base)
{
	for (; f->name; f++, at++) {
		const char *member = (const char *)base + f->offset;

		if (f->type == NUMBER_WORDS)
			bind_text(statement, at, member);
		else if (f->type == NUMBER_NAME)
			bind_text(statement, at, f->name_of(*(const unsigned *)member));
		else if (f->type == NUMBER_UNSIGNED)
			bind_number(statement, at, *(const unsigned *)member);
		else if (f->type == NUMBER_REAL)
			sqlite3_bind_double(statement, at, *(const double *)member);
		else
			bind_number(statement, at, *(const uint64_t *)member);
	}
	return at;
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

/* The same, after it has parameters, from at on: t is a text, i an int64_t, n a uint64_t. */
static int run_statement(struct fleet *fleet, enum statement which, int64_t *id, int at,
			 const char *types, ...)
{
	sqlite3_stmt *statement = fleet->statement[which];
	va_list args;

	va_start(args, types);
	for (; *types; types++, at++)
		if (*types == 't')
			bind_text(statement, at, va_arg(args, const char *));
		else if (*types == 'i')
			sqlite3_bind_int64(statement, at, va_arg(args, int64_t));
		else
			bind_number(statement, at, va_arg(args, uint64_t));
	va_end(args);
	return step_once(statement, id);
}

/* A run that is known by its print or its boot. */
struct found {
	int64_t id, time, up;
	char machine[FLEET_NAME];
};

/* 1, 0: none, or a negative errno. */
static int find_run(struct fleet *fleet, enum statement which, const char *by, struct found *found)
{
	sqlite3_stmt *statement = fleet->statement[which];
	int code;

	bind_text(statement, 1, by);
	code = sqlite3_step(statement);
	if (code == SQLITE_ROW) {
		found->id = sqlite3_column_int64(statement, 0);
		snprintf(found->machine, sizeof(found->machine), "%s",
			 (const char *)sqlite3_column_text(statement, 1));
		found->time = sqlite3_column_int64(statement, 2);
		found->up = sqlite3_column_int64(statement, 3);
	}
	sqlite3_reset(statement);
	return code == SQLITE_ROW ? 1 : errno_of(code);
}

int fleet_add_run(struct fleet *fleet, char name[FLEET_NAME], const struct evidence_run *run,
		  int64_t *id)
{
	sqlite3_stmt *add_kind = fleet->statement[ADD_KIND], *add_sum = fleet->statement[ADD_SUM];
	char cpus[CPUS_TEXT];
	int64_t machine = 0, kind = 0, time = run->time;
	struct found found;
	int ret;

	ret = run_statement(fleet, FORGET_JOURNAL, NULL, 1, "tti", run->print, run->source,
			    run->time);
	if (ret == 0)
		ret = find_run(fleet, FIND_RUN, run->print, &found);
	if (ret > 0) {
		snprintf(name, FLEET_NAME, "%s", found.machine);
		*id = found.id;
		return 0;
	}
	if (ret == 0)
		ret = find_run(fleet, FIND_BOOT, run->boot, &found);
	/* A boot is one machine's, and has one clock, though the time may be set. */
	if (ret > 0) {
		snprintf(name, FLEET_NAME, "%s", found.machine);
		if (run->up >= 0 && found.up >= 0)
			time = found.time - found.up + run->up;
	}
	if (ret >= 0)
		ret = run_statement(fleet, ADD_MACHINE, &machine, 1, "t", name);
	bind_fields(add_kind, 1, kind_fields, &run->identity);
	if (ret >= 0)
		ret = step_once(add_kind, &kind);
	if (ret < 0)
		return ret;
	cpus_print(&run->cpus, cpus, sizeof(cpus));
	ret = run_statement(fleet, ADD_RUN, id, 1, "tiiiittttn", run->print, machine, kind, time,
			    run->up, run->boot, run->identity.kernel, run->source, cpus,
			    run->identity.tsc_khz);
	for (size_t i = 0; i < run->sums.count && ret >= 0; i++) {
		const struct sum *s = &run->sums.sum[i];

		bind_number(add_sum, 1, (uint64_t)*id);
		bind_fields(add_sum, bind_fields(add_sum, 2, sum_fields, s), count_fields,
			    &s->count);
		ret = step_once(add_sum, NULL);
	}
	return ret < 0 ? ret : 1;
}

int fleet_add_protocol(struct fleet *fleet, int64_t run, const struct fleet_protocol *protocol)
{
	return run_statement(fleet, ADD_PROTOCOL, NULL, 1, "itnnn", run, protocol->name,
			     protocol->changes, protocol->tears, protocol->died);
}

int fleet_drop_run(struct fleet *fleet, int64_t id)
{
	return run_statement(fleet, DROP_RUN, NULL, 1, "i", id);
}

int fleet_begin_file(struct fleet *fleet)
{
	return run_text(fleet, "SAVEPOINT file");
}

int fleet_end_file(struct fleet *fleet, bool keep)
{
	return run_text(fleet, keep ? "RELEASE file" : "ROLLBACK TO file; RELEASE file");
}

int fleet_set_aside(struct fleet *fleet, const char *file, size_t line, const char *text,
		    const char *reason)
{
	char print[EVIDENCE_PRINT];

	snprintf(print, sizeof(print), "%016" PRIx64, hash_text(HASH_START, text));
	return run_statement(fleet, ADD_ASIDE, NULL, 1, "ttnt", print, file, (uint64_t)line,
			     reason);
}

/* --- Reading ---------------------------------------------------------------------------------- */

/* Columns into the members of a struct: the next column, or -EINVAL for a name that is none. */
static int read_fields(sqlite3_stmt *row, int at, const struct field *f, void *base)
{
	for (; f->name; f++, at++) {
		const char *text = (const char *)sqlite3_column_text(row, at);
		char *member = (char *)base + f->offset;
		int name;

		if (f->type == NUMBER_WORDS) {
			snprintf(member, (size_t)f->max, "%s", text ? text : "");
		} else if (f->type == NUMBER_NAME) {
			name = f->parse(text ? text : "");
			if (name < 0)
				return -EINVAL;
			*(unsigned *)member = (unsigned)name;
		} else if (f->type == NUMBER_UNSIGNED) {
			*(unsigned *)member = (unsigned)sqlite3_column_int(row, at);
		} else if (f->type == NUMBER_REAL) {
			*(double *)member = sqlite3_column_double(row, at);
		} else {
			*(int64_t *)member = sqlite3_column_int64(row, at);
		}
	}
	return at;
}

/* An array that grows, of things of one size. */
struct growing_list {
	void *at;
	size_t count, size;
};

static void *list_more(struct growing_list *list)
{
	void *more = reallocarray(list->at, list->count + 1, list->size);

	if (!more)
		return NULL;
	list->at = more;
	return memset((char *)more + list->count++ * list->size, 0, list->size);
}

static int take_kind(sqlite3_stmt *row, void *list)
{
	struct fleet_kind *kind = list_more(list);

	if (!kind)
		return -ENOMEM;
	kind->id = sqlite3_column_int64(row, 0);
	read_fields(row, read_fields(row, 1, kind_fields, &kind->identity), kind_sum_fields, kind);
	return 0;
}

int fleet_kinds(struct fleet *fleet, struct fleet_kind **kinds, size_t *count)
{
	struct growing_list list = { .size = sizeof(**kinds) };
	int ret =
		ask_store(fleet,
			  "SELECT kind.*, count(DISTINCT machine), count(*), min(time), max(time), "
			  "min(nullif(tsc_khz, 0)), max(tsc_khz) FROM kind JOIN run ON run.kind = "
			  "kind.id WHERE NOT dropped GROUP BY kind.id ORDER BY 12 DESC, 1",
			  0, take_kind, &list);

	*kinds = list.at;
	*count = list.count;
	return ret;
}

static int take_host(sqlite3_stmt *row, void *list)
{
	struct fleet_host *host = list_more(list);

	return host ? read_fields(row, 0, host_fields, host) : -ENOMEM;
}

/* SQLite takes what stands beside max() from the row that has it. */
int fleet_hosts(struct fleet *fleet, struct fleet_host **hosts, size_t *count)
{
	struct growing_list list = { .size = sizeof(**hosts) };
	int ret = ask_store(
		fleet,
		"SELECT machine, name, kind, kernel, tsc_khz, max(time), count(*) FROM run "
		"JOIN machine ON machine.id = run.machine GROUP BY machine ORDER BY machine",
		0, take_host, &list);

	*hosts = list.at;
	*count = list.count;
	return ret;
}

static int take_protocol(sqlite3_stmt *row, void *list)
{
	struct fleet_protocol *protocol = list_more(list);

	return protocol ? read_fields(row, 0, protocol_fields, protocol) : -ENOMEM;
}

int fleet_protocols(struct fleet *fleet, int64_t kind, struct fleet_protocol **protocols,
		    size_t *count)
{
	struct growing_list list = { .size = sizeof(**protocols) };
	int ret = ask_store(
		fleet,
		"SELECT protocol.name, sum(changes), sum(tears), sum(died), "
		"count(DISTINCT machine) FROM protocol JOIN run ON run.id = protocol.run "
		"WHERE kind = ?1 AND NOT dropped GROUP BY protocol.name "
		"ORDER BY sum(died) DESC, sum(tears) * 1.0 / max(sum(changes), 1) DESC, 1",
		kind, take_protocol, &list);

	*protocols = list.at;
	*count = list.count;
	return ret;
}

/* A row is a sum of the run before, or begins one. Rows that are not ours are passed over. */
static int take_sum(sqlite3_stmt *row, void *arg)
{
	struct growing_list *list = arg;
	struct fleet_run fresh = { 0 }, *run = list->at;
	struct sum sum = { 0 };
	int at = read_fields(row, 0, run_fields, &fresh);

	if (list->count && run[list->count - 1].id == fresh.id) {
		run += list->count - 1;
	} else {
		run = list_more(list);
		if (!run)
			return -ENOMEM;
		*run = fresh;
	}
	at = read_fields(row, at, sum_fields, &sum);
	if (at < 0)
		return 0;
	read_fields(row, at, count_fields, &sum.count);
	return sums_add(&run->sums, &sum);
}

int fleet_runs(struct fleet *fleet, int64_t kind, struct fleet_run **runs, size_t *count)
{
	struct growing_list list = { .size = sizeof(**runs) };
	int ret = ask_store(
		fleet,
		"SELECT run.id, machine, name, kernel, time, what, crossing, placement, "
		"executors, first, second, stretch, slices, toggles, tears, unevenness, squares, "
		"ticks, worst_tears, worst_toggles FROM run "
		"JOIN machine ON machine.id = run.machine JOIN sum ON sum.run = run.id "
		"WHERE kind = ?1 AND NOT dropped ORDER BY machine, time, run.id",
		kind, take_sum, &list);

	*runs = list.at;
	*count = list.count;
	return ret;
}

void fleet_runs_free(struct fleet_run *runs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		sums_free(&runs[i].sums);
	free(runs);
}

int hours_of(struct hours *hours, const struct fleet_run *runs, size_t count, bool by_machine)
{
	int ret = 0;

	*hours = (struct hours){ .sums = calloc(count + 1, sizeof(*hours->sums)),
				 .first = calloc(count + 1, sizeof(*hours->first)) };
	if (!hours->sums || !hours->first)
		return -ENOMEM;
	for (size_t i = 0; i < count && ret == 0; i++) {
		if (i == 0 || runs[i].machine != runs[i - 1].machine ||
		    (!by_machine && runs[i].time / HOUR != runs[i - 1].time / HOUR))
			hours->first[hours->count++] = &runs[i];
		ret = sums_add_all(&hours->sums[hours->count - 1], &runs[i].sums);
	}
	return ret;
}

void hours_free(struct hours *hours)
{
	for (size_t i = 0; i < hours->count; i++)
		sums_free(&hours->sums[i]);
	free(hours->sums);
	free(hours->first);
}
