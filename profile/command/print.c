/* SPDX-License-Identifier: MIT */
#include "profile/command/command.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/demangle.h"
#include "base/text.h"

json_t *name_json(const char *name)
{
	char *text = name ? text_utf8(name) : NULL;
	json_t *json = json_string(text);

	free(text);
	return json;
}

json_t *demangled_json(const char *name)
{
	const char *shown = name_for_people(name, true);

	return shown == name ? NULL : name_json(shown);
}

int print_json_line(FILE *out, json_t *object)
{
	int ret = object ? 0 : -ENOMEM;

	if (object && (json_dumpf(object, out, JSON_COMPACT) < 0 || putc('\n', out) == EOF))
		ret = -EIO;
	json_decref(object);
	return ret;
}

int print_json(FILE *out, const char *type, json_t *body)
{
	char date[32];
	time_t now = time(NULL);
	json_t *object;

	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
	object = json_pack("{s:s, s:i, s:s, s:s}", "type", type, "schema", JSON_SCHEMA, "tool",
			   PACKAGE_STRING, "date", date);
	/* A body that is missing is no object: without it nothing is told. */
	if (object && json_object_update_missing(object, body) < 0) {
		json_decref(object);
		object = NULL;
	}
	json_decref(body);
	return print_json_line(out, object);
}
