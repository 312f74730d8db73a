/* SPDX-License-Identifier: MIT */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdbool.h>
#include <string.h>
#include <time.h>

/* clock_seconds - the time of a clock. 0: its thread has ended. */
static inline double clock_seconds(clockid_t clock)
{
	struct timespec time = { 0 };

	clock_gettime(clock, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* seconds_now - since some fixed moment, never stepping back. */
static inline double seconds_now(void)
{
	return clock_seconds(CLOCK_MONOTONIC);
}

/* date_text - a time in UTC: "2026-01-31T23:59:59Z", or the day alone; "?" beyond all calendars. */
#define DATE_ROOM 32
static inline const char *date_text(time_t when, bool only_day, char text[DATE_ROOM])
{
	struct tm utc;

	if (!gmtime_r(&when, &utc) ||
	    !strftime(text, DATE_ROOM, only_day ? "%Y-%m-%d" : "%Y-%m-%dT%H:%M:%SZ", &utc))
		strcpy(text, "?");
	return text;
}

#endif
