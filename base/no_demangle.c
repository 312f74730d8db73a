/* SPDX-License-Identifier: MIT */
#include "base/demangle.h"

#include <error.h>

const char *demangle_name(const char *name, bool parameters, char room[NAME_ROOM])
{
	(void)parameters;
	(void)room;
	return name;
}

const char *name_for_people(const char *name, bool parameters)
{
	static bool said;

	(void)parameters;
	if (is_mangled(name) && !said)
		error(0, 0,
		      "names of C++ and Rust stay mangled: fastinst was built without libiberty "
		      "(Debian: libiberty-dev)");
	said |= is_mangled(name);
	return name;
}
