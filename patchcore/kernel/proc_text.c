/* SPDX-License-Identifier: MIT */
#include "patchcore/kernel/proc_text.h"

#include "patchcore/kernel/sys.h"

/* Keeps the compiler from turning a loop into a call of libc's strlen() or the like. */
#define NO_IDIOM() __asm__ volatile("" ::: "memory")

NOPATCH static const char *begins_with(const char *text, const char *what)
{
	while (*what && *text == *what) {
		NO_IDIOM();
		text++;
		what++;
	}
	return *what ? NULL : text;
}

NOPATCH const char *proc_find(const char *text, const char *what)
{
	for (; *text; text++) {
		const char *behind = begins_with(text, what);

		if (behind)
			return behind;
	}
	return NULL;
}

NOPATCH const char *proc_last(const char *text, char c)
{
	const char *last = NULL;

	for (; *text; text++) {
		NO_IDIOM();
		if (*text == c)
			last = text;
	}
	return last;
}

NOPATCH const char *proc_field(const char *text, unsigned n)
{
	while (n > 0 && *text) {
		NO_IDIOM();
		if (*text++ == ' ')
			n--;
	}
	return n ? NULL : text;
}

NOPATCH static unsigned digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (unsigned)(c - 'a') + 10;
	return c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10 : 16;
}

NOPATCH uint64_t proc_number(const char *text, unsigned base)
{
	uint64_t number = 0;

	while (*text == ' ' || *text == '\t') {
		NO_IDIOM();
		text++;
	}
	if (text[0] == '0' && text[1] == 'x')
		text += 2;
	while (digit(*text) < base)
		number = number * base + digit(*text++);
	return number;
}

NOPATCH char *proc_put(char *end, const char *text)
{
	while (*text) {
		NO_IDIOM();
		*end++ = *text++;
	}
	*end = '\0';
	return end;
}

NOPATCH char *proc_put_number(char *end, unsigned number)
{
	char digits[11];
	unsigned at = sizeof(digits) - 1;

	digits[at] = '\0';
	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	return proc_put(end, digits + at);
}
