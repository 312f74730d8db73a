/* SPDX-License-Identifier: MIT */
/*
 * threads N [LOST] - threads that start and end, eight at a time, each with an exception through
 * frames of functions that can be probed. Says how many there were, and on standard error by how
 * many KiB memory has grown since a fifth of them was over. Each loses LOST bytes.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <thread>
#include <vector>

#define N __attribute__((noinline))

static unsigned long lost;
static void *volatile last;

N static int deep(int n)
{
	if (!n)
		throw 42;
	return deep(n - 1) + 1;
}

N static int caught(int i)
{
	try {
		return deep(4 + i % 2);
	} catch (int thrown) {
		return thrown;
	}
}

N static void task(int i, int *result)
{
	*result = caught(i);
	if (!lost)
		return;
	last = malloc(lost);
	memset(last, 1, lost);
}

N static int eight(int from)
{
	std::vector<std::thread> threads;
	int result[8], sum = 0;

	for (int i = 0; i < 8; i++)
		threads.emplace_back(task, from + i, &result[i]);
	for (int i = 0; i < 8; i++) {
		threads[(size_t)i].join();
		sum += result[i] == 42;
	}
	return sum;
}

/* That is the process's own. */
static long kib()
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[128];
	long value = 0;

	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "RssAnon: %ld", &value) == 1)
			break;
	if (status)
		fclose(status);
	return value;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 5000, sum = 0;
	long before = 0;

	lost = argc > 2 ? strtoul(argv[2], nullptr, 10) : 0;
	mallopt(M_ARENA_MAX, 1);
	for (int i = 0; i < n; i += 8) {
		if (!before && i >= n / 5)
			before = kib();
		sum += eight(i);
	}
	printf("%d\n", sum);
	fprintf(stderr, "grown %ld\n", kib() - before);
	return 0;
}
