/* SPDX-License-Identifier: MIT */
/* For tests: how many threads there are. Behind cmocka.h. */
#ifndef BENCH_TESTS_THREADS_H
#define BENCH_TESTS_THREADS_H

#include <dirent.h>

/* The kernel lists a thread for a moment after it was joined. */
static inline unsigned threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned count = 0;

	assert_non_null(dir);
	for (struct dirent *entry; (entry = readdir(dir));)
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

#endif
