/* SPDX-License-Identifier: MIT */
/* A library that test_fastinst.sh loads and unloads. */
unsigned long plugin_step(unsigned long x);
unsigned long plugin_run(unsigned long n);

__attribute__((noinline)) unsigned long plugin_step(unsigned long x)
{
	__asm__ volatile("");
	return x + 1;
}

unsigned long plugin_run(unsigned long n)
{
	unsigned long x = 0;

	while (n--)
		x = plugin_step(x);
	return x;
}
