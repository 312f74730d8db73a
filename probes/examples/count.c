/* SPDX-License-Identifier: MIT */
/* Calls of a function, counted for a while: turned on, off, and told. */
#include <stdio.h>

#include <fastinst.h>

__attribute__((noinline)) static int parse(int x)
{
	__asm__ volatile("");
	return x + 1;
}

int main(void)
{
	struct fi_probe probe;
	const char *file;
	unsigned line;
	uint32_t id;
	int sum = 0, ret = fi_init();

	if (ret < 0 || fi_find("parse", &id, 1) != 1) {
		printf("no probes here: %d\n", ret);
		return ret < 0 ? 77 : 1;
	}
	fi_activate(id, NULL);
	for (int i = 0; i < 1000; i++)
		sum += parse(i);
	fi_deactivate(id);
	sum += parse(1);
	fi_get(id, &probe);
	printf("%s: %llu calls", probe.function, (unsigned long long)fi_count(id));
	if (!fi_source(id, &file, &line))
		printf(", %s:%u", file, line);
	printf("\n");
	return fi_count(id) == 1000 && sum == 500502 ? 0 : 1;
}
