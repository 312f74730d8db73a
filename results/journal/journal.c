/* SPDX-License-Identifier: MIT */
/* The journal file: appending lines that survive, reading lines that lie. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "results/journal/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/text_file.h"

#define IDENTITY_TEXT_MAX 256

struct journal {
	int fd;
};

static int write_all(int fd, const char *text, size_t length)
{
	while (length) {
		ssize_t done = write(fd, text, length);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		text += done;
		length -= (size_t)done;
	}
	return 0;
}

/*
 * Locked, because taking back a line must not take another run's with it. A
 * file system without locks leaves that to the user.
 */
static int append_text(int fd, const char *text, size_t length)
{
	struct stat st;
	bool regular;
	char last;
	int rc;

	while (flock(fd, LOCK_EX) && errno == EINTR)
		;
	rc = fstat(fd, &st) ? -errno : 0;
	regular = !rc && S_ISREG(st.st_mode);
	/* A line that another run left cut is ended. */
	if (regular && st.st_size && pread(fd, &last, 1, st.st_size - 1) == 1 && last != '\n')
		rc = write_all(fd, "\n", 1);
	/* One write unless the disk fills up; then the next one tells why. */
	if (!rc)
		rc = write_all(fd, text, length);
	/* Things that cannot be flushed, such as a pipe, need no flushing. */
	if (!rc && fdatasync(fd) && errno != EINVAL && errno != EROFS)
		rc = -errno;
	/* If even that fails, the line stays cut, and the next program that appends ends it. */
	if (rc && regular)
		(void)!ftruncate(fd, st.st_size);
	flock(fd, LOCK_UN);
	return rc;
}

int journal_open(struct journal **journal, const char *path)
{
	struct journal *j = malloc(sizeof(*j));
	int rc, how = O_RDWR;
	struct stat st;

	if (!j)
		return -ENOMEM;
	/*
	 * What a file ends with is read. Of a pipe this process would be a reader: when no other is
	 * left, a write would wait for it.
	 */
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		how = O_WRONLY;
	/* A store of evidence that others may write to is refused. */
	j->fd = open(path, how | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	rc = j->fd < 0 ? -errno : append_text(j->fd, "", 0);
	if (rc)
		journal_close(j);
	else
		*journal = j;
	return rc;
}

int journal_close(struct journal *journal)
{
	int rc;

	if (!journal)
		return 0;
	rc = close(journal->fd) ? -errno : 0;
	free(journal);
	return rc;
}

int journal_put(struct journal *journal, json_t *line)
{
	char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
	size_t length = text ? strlen(text) : 0;
	int rc = -EMSGSIZE;

	json_decref(line);
	if (!text)
		return -EINVAL;
	text[length] = '\n';
	if (length < JOURNAL_LINE_MAX)
		rc = append_text(journal->fd, text, length + 1);
	free(text);
	return rc;
}

json_t *identity_to_json(const struct identity *id)
{
	char value[IDENTITY_TEXT_MAX];
	json_t *object = json_object();
	const char *name;

	for (unsigned i = 0; identity_field(id, i, &name, value, sizeof(value)); i++)
		if (json_object_set_new(object, name, json_string(value))) {
			json_decref(object);
			return NULL;
		}
	return object;
}

int identity_from_json(const json_t *object, struct identity *id)
{
	char ignored[IDENTITY_TEXT_MAX];
	struct identity none = { 0 };
	const char *name;

	memset(id, 0, sizeof(*id));
	for (unsigned i = 0; identity_field(&none, i, &name, ignored, sizeof(ignored)); i++) {
		const char *value = json_string_value(json_object_get(object, name));

		if (!value || identity_set(id, name, value))
			return -EINVAL;
	}
	return 0;
}

int journal_write_run(struct journal *journal, const char *plan, const struct identity *id,
		      json_t *untested, uint64_t seed)
{
	json_t *body = json_pack("{s:s, s:s, s:o}", "tool", PACKAGE_STRING, "plan", plan,
				 "identity", identity_to_json(id));
	int rc = -EINVAL;

	if ((!untested || json_is_array(untested)) &&
	    (seed == JOURNAL_NO_SEED || !json_object_set_new(body, "seed", seed_to_json(seed))) &&
	    !json_object_set_new(body, "untested", untested ? json_incref(untested) : json_array()))
		rc = journal_write_line(journal, "run", body);
	json_decref(body);
	return rc;
}

int journal_write_begin(struct journal *journal, const char *key)
{
	json_t *body = json_pack("{s:s}", "key", key);
	int rc = journal_write_line(journal, "begin", body);

	json_decref(body);
	return rc;
}

int journal_write_cell(struct journal *journal, const struct cell_record *record)
{
	return journal_put(journal, record_to_json(record));
}

json_t *journal_line(const char *type, json_t *body)
{
	char date[32];
	json_t *line;

	date_text(time(NULL), false, date);
	line = json_pack("{s:s, s:i, s:s}", "type", type, "schema", JOURNAL_SCHEMA, "date", date);
	/* What there is already, type and schema, wins: the body cannot pass for another. */
	if (!json_object_update_missing(line, body))
		return line;
	json_decref(line);
	return NULL;
}

int journal_write_line(struct journal *journal, const char *type, json_t *body)
{
	return journal_put(journal, journal_line(type, body));
}

int journal_tell(FILE *to, json_t *line)
{
	json_t *answer =
		json_pack("{s:O, s:O, s:s}", "type", json_object_get(line, "type"), "schema",
			  json_object_get(line, "schema"), "tool", PACKAGE_STRING);
	int rc = -EINVAL;

	if (answer && json_object_update_missing(answer, line) == 0)
		rc = json_dumpf(answer, to, JSON_COMPACT) == 0 && putc('\n', to) != EOF ? 0 : -EIO;
	json_decref(answer);
	json_decref(line);
	return rc;
}

/* --- Reading ----------------------------------------------------------------- */

static int take_json(struct journal_data *data, json_t *json)
{
	static const char *const others[] = { "estimate", "gaps", "tail", "bench", "epoch" };
	json_int_t schema = json_integer_value(json_object_get(json, "schema"));
	const char *type = json_text_of(json, "type");
	struct cell_record record;
	bool known = false;
	struct identity id;

	if (schema > JOURNAL_SCHEMA)
		data->newer++;
	if (schema != JOURNAL_SCHEMA)
		return -EINVAL;
	if (strcmp(type, "cell") == 0) {
		if (record_from_json(json, &record))
			return -EINVAL;
		json_object_del(data->begun, record.key);
		return ARRAY_ADD(data->records, data->count, record);
	}
	if (strcmp(type, "begin") == 0) {
		const char *key = json_string_value(json_object_get(json, "key"));
		json_t *date = json_object_get(json, "date");

		if (!key || !json_is_string(date))
			return -EINVAL;
		if (!data->begun)
			data->begun = json_object();
		return json_object_set(data->begun, key, date) ? -ENOMEM : 0;
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		known |= strcmp(type, others[i]) == 0;
	/* Both of these name the machine. */
	if (strcmp(type, "run") == 0 || strcmp(type, "evidence") == 0) {
		if (identity_from_json(json_object_get(json, "identity"), &id))
			return -EINVAL;
		if (data->have_identity && identity_differs(&data->identity, &id))
			data->mixed = 1;
		data->have_identity = 1;
		data->identity = id;
	} else if (!known) {
		return -EINVAL;
	}
	if (strcmp(type, "estimate") == 0) {
		data->concluded = data->count;
		data->concluded_others = json_array_size(data->others);
	}
	/* They are kept as they are, for readers that know their type. */
	if (!data->others)
		data->others = json_array();
	return json_array_append(data->others, json) ? -ENOMEM : 0;
}

static int take_line(void *arg, size_t number, const char *text, size_t length)
{
	struct journal_data *data = arg;
	json_error_t error = { 0 }; /* jansson leaves the code as it was */
	json_t *json = text ? json_loadb(text, length, JSON_REJECT_DUPLICATES, &error) : NULL;
	enum json_error_code code = json_error_code(&error);
	int rc = -EINVAL;

	if (json)
		rc = take_json(data, json);
	/* jansson gives a reason for every bad text, but seldom for a failed malloc(). */
	else if (text && (code == json_error_out_of_memory || code == json_error_unknown))
		rc = -ENOMEM;
	json_decref(json);
	if (rc && !data->skipped++)
		data->first_bad = number;
	return rc == -ENOMEM ? rc : 0;
}

int journal_each_line(FILE *stream, journal_take_fn *take, void *arg)
{
	char *text = malloc(JOURNAL_LINE_MAX);
	int rc = text ? 0 : -ENOMEM, c = 0;

	for (size_t number = 1; rc >= 0 && c != EOF; number++) {
		size_t length = 0;

		/* Of a line that is too long only its length is read. */
		while ((c = getc_unlocked(stream)) != EOF && c != '\n') {
			if (length < JOURNAL_LINE_MAX)
				text[length] = (char)c;
			length++;
		}
		if (c == EOF && !length)
			break;
		if (length < JOURNAL_LINE_MAX)
			text[length] = '\0';
		rc = take(arg, number, length < JOURNAL_LINE_MAX ? text : NULL, length);
	}
	if (rc >= 0)
		rc = !ferror(stream) ? 0 : errno ? -errno : -EIO;
	free(text);
	return rc;
}

int journal_read_stream(FILE *stream, struct journal_data *data)
{
	int rc = journal_each_line(stream, take_line, data);

	if (rc)
		journal_free(data);
	return rc;
}

int journal_read(const char *path, struct journal_data *data)
{
	FILE *stream = text_file_open(path);
	int rc;

	if (!stream)
		return -errno;
	rc = journal_read_stream(stream, data);
	fclose(stream);
	return rc;
}

void journal_free(struct journal_data *data)
{
	free(data->records);
	json_decref(data->others);
	json_decref(data->begun);
	memset(data, 0, sizeof(*data));
}

/* --- Lines of the other types ------------------------------------------------ */

const json_t *line_next(const struct journal_data *data, const char *type, size_t *i)
{
	while (*i < json_array_size(data->others)) {
		const json_t *line = json_array_get(data->others, (*i)++);

		if (strcmp(json_text_of(line, "type"), type) == 0)
			return line;
	}
	return NULL;
}

const json_t *line_last(const struct journal_data *data, const char *type)
{
	const json_t *line, *last = NULL;
	size_t i = 0;

	while ((line = line_next(data, type, &i)))
		last = line;
	return last;
}

double json_real_of(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	return json_is_number(value) ? json_number_value(value) : NAN;
}

const char *json_text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "?";
}

const json_t *json_find(const json_t *list, const char *member, const char *text)
{
	const json_t *object;
	size_t i;

	json_array_foreach(list, i, object)
	{
		if (strcmp(json_text_of(object, member), text) == 0)
			return object;
	}
	return NULL;
}
