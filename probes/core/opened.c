/* SPDX-License-Identifier: MIT */
/*
 * Pages of code that are held writable for many changes. Some cannot be closed when those are made:
 * a thread that forks sleeps meanwhile, or one in the middle of a change. They are closed with the
 * next ones.
 */
#include <errno.h>

#include <patchcore/mapping.h>

#include "probes/core/core.h"

static bool are_open;	   /* pages of some object are, or were when it was unloaded */
static bool keep_writable; /* whole segments, until the end */

/* Not in a segment with pages that are still open: there each change opens its own. */
void object_note(struct object *object, const uint8_t *site, size_t len)
{
	uintptr_t at = (uintptr_t)site;

	for (struct segment *one = object->segment; one < object->segment + SEGMENTS_MAX; one++) {
		if (at - one->start >= one->end - one->start || one->is_open)
			continue;
		if (keep_writable) {
			at = one->start;
			len = one->end - one->start;
		}
		one->from = one->sites && one->from < at ? one->from : at;
		one->to = one->sites && one->to > at + len ? one->to : at + len;
		one->sites++;
	}
}

/* Where code may not become writable, what is kept open gets an alias. */
static bool open_range(void *from, size_t len)
{
	return !pc_text_open(from, len) || (keep_writable && !pc_text_alias(from, len));
}

static void open_segment(struct segment *segment, size_t least)
{
	if (segment->sites && (keep_writable || segment->sites >= least))
		segment->is_open = open_range((void *)segment->from, segment->to - segment->from);
	are_open |= segment->is_open;
	segment->sites = 0;
}

void object_open(size_t least)
{
	for (struct object *object = objects_list(); object; object = object->next)
		for (int i = 0; i < SEGMENTS_MAX; i++)
			open_segment(&object->segment[i], least);
}

/* After another error pages may still be open: if not, the next try finds none. */
static int close_segment(struct segment *segment)
{
	int ret = pc_text_close((void *)segment->from, segment->to - segment->from);

	segment->is_open = ret < 0 && ret != -ENOENT;
	are_open |= segment->is_open;
	return segment->is_open ? ret : 0;
}

/* Not of unloaded objects, whose place another one may have. */
static int close_segments(void *data)
{
	int error = 0, ret;

	(void)data;
	are_open = false;
	for (struct object *object = objects_list(); object; object = object->next)
		for (int i = 0; i < SEGMENTS_MAX; i++) {
			ret = object->segment[i].is_open ? close_segment(&object->segment[i]) : 0;
			error = ret ? ret : error;
		}
	return error;
}

int object_close(void)
{
	return are_open && !keep_writable ? objects_hold(close_segments, NULL) : 0;
}

bool object_is_kept(void)
{
	return keep_writable;
}

int fi_keep_writable(bool keep)
{
	int ret = core_lock();

	if (ret < 0)
		return ret;
	keep_writable = keep;
	ret = object_close();
	core_unlock();
	return ret;
}
