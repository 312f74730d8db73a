/* SPDX-License-Identifier: MIT */
/*
 * Traced programs connect to a socket and tell of their probes; their threads make rings in the
 * folder of the socket. The rings are read together, by the time of their next events.
 */
#include "commands/fastinst/trace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/counts/base.h"
#include "agent/counts/control.h"
#include "agent/launch/launch.h"
#include "base/text.h"
#include "commands/fastinst/source_of.h"
#include "probes/elf/array.h"

#define DEPTH_MAX 4096
#define PATIENCE  5	/* seconds */
#define ROUND	  20000 /* events, before other things are looked at */
#define PATCHABLE 5	/* bytes of NOPs */

/* A thread: its ring, and the functions that it is in. */
struct stream {
	char name[64];
	struct ring *ring;
	bool damaged, has_next;
	struct trace_event next;
	uint64_t lost;
	struct trace_frame frame[DEPTH_MAX];
	unsigned depth;
	struct stream *after;
};

/* --- Probes ----------------------------------------------------------------------------------- */

/* A word such as "exit-jump" is of the kind "exit". */
static enum fi_kind read_kind(const char *word)
{
	size_t len = strcspn(word, "-");

	for (enum fi_kind kind = 0; kind <= FI_COMPARE; kind++)
		if (!strncmp(word, kind_name(kind), len) && !kind_name(kind)[len])
			return kind;
	return FI_BLOCK;
}

/* Has the agent record a register or word of memory, also as a string. */
static void request_word(uint64_t *how, unsigned reg, bool is_string)
{
	unsigned at = reg, shift = 0, mask = 0xf;

	if (reg >= SOURCE_MEMORY) {
		at -= SOURCE_MEMORY;
		shift = RING_HOW_MEMORY;
		mask = 0x3f;
		if (is_string && at < RING_POINTED)
			*how |= UINT64_C(1) << (RING_HOW_POINTED + at);
	} else if (reg >= SOURCE_VECTOR) {
		at -= SOURCE_VECTOR;
		shift = RING_HOW_VECTORS;
	} else if (is_string) {
		*how |= UINT64_C(1) << (RING_HOW_STRINGS + at);
	}
	if ((*how >> shift & mask) <= at)
		*how = (*how & ~((uint64_t)mask << shift)) | (uint64_t)(at + 1) << shift;
}

static void request_values(uint64_t *how, const struct source_value *value, unsigned n)
{
	for (const struct source_value *end = value + n; value < end; value++) {
		unsigned bits = value->bits * (value->count ? value->count : 1u);

		if (value->form == SOURCE_OTHER || value->form == SOURCE_MORE)
			continue;
		for (unsigned i = 0; i < (value->shift + bits + 63) / 64; i++)
			request_word(how, source_word(value, i),
				     value->form == SOURCE_STRING && !value->shift);
	}
}

/* The operands of a comparison of floats are in two vector registers. */
static void set_floats(struct traced *probe, bool is_double)
{
	static const struct source_value floats[2][2] = {
		{ { .name = "", .form = SOURCE_FLOAT, .bits = 32, .reg = SOURCE_VECTOR },
		  { .name = "", .form = SOURCE_FLOAT, .bits = 32, .reg = SOURCE_VECTOR + 1 } },
		{ { .name = "", .form = SOURCE_FLOAT, .bits = 64, .reg = SOURCE_VECTOR },
		  { .name = "", .form = SOURCE_FLOAT, .bits = 64, .reg = SOURCE_VECTOR + 1 } },
	};

	probe->has_types = true;
	probe->types.arg = floats[is_double];
	probe->types.args = 2;
	request_values(&probe->how, probe->types.arg, 2);
}

/* A partial copy of a function, such as main.cold or f.isra.0, has other arguments than declared.
 */
static void look_up_types(struct traced *probe, const char *provider)
{
	const struct source_function *types = &probe->types;
	bool is_patchable = !strcmp(provider, "patchable");
	struct source *source;
	uint64_t result = RING_HOW_RESULT;

	/* At other probes the argument registers hold something else. */
	if ((!is_patchable && strcmp(provider, "entries") != 0) || strchr(probe->function, '.'))
		return;
	source = source_of(probe->object);
	probe->has_types = source && source_function(source, probe->addr,
						     is_patchable ? PATCHABLE : 0, &probe->types);
	if (!probe->has_types)
		return;
	if (probe->kind == FI_EXIT && types->results) {
		request_values(&result, types->result, types->results);
		probe->how = result;
	} else if (probe->kind == FI_ENTRY) {
		request_values(&probe->how, types->arg, types->args);
	}
}

static void free_probe(struct traced *probe)
{
	free(probe->function);
	free(probe->object);
}

/* ID KIND ADDRESS PROVIDER FUNCTION OBJECT */
static int read_probe(char *line, void *arg)
{
	struct traced_table *table = arg;
	struct traced probe = { .pair = SIZE_MAX };
	char *field[6];

	if (text_fields(&line, field, 6) < 6)
		return 0;
	probe.id = (uint32_t)strtoul(field[0], NULL, 10);
	if (table->n && probe.id <= table->probe[table->n - 1].id)
		return 0;
	probe.kind = read_kind(field[1]);
	probe.addr = strtoull(field[2], NULL, 16);
	probe.function = strdup(field[4]);
	probe.object = strdup(field[5]);
	if (!probe.function || !probe.object || ARRAY_ADD(table->probe, table->n, probe)) {
		free_probe(&probe);
		return -ENOMEM;
	}
	if (!strncmp(field[1], "compare-", 8))
		set_floats(&table->probe[table->n - 1], !strcmp(field[1], "compare-double"));
	else if (strcmp(field[1], "exit-jump") != 0)
		look_up_types(&table->probe[table->n - 1], field[3]);
	return 0;
}

static int order_by_name(const void *a, const void *b)
{
	const struct traced *one = *(struct traced *const *)a, *two = *(struct traced *const *)b;
	int order = strcmp(one->object, two->object);

	if (!order)
		order = strcmp(one->function, two->function);
	return order ? order : (int)one->kind - (int)two->kind;
}

static bool same_function(const struct traced *a, const struct traced *b)
{
	return !strcmp(a->function, b->function) && !strcmp(a->object, b->object);
}

/* All entries and exits of a function get the id of its first entry as pair, if it has exits. */
static void pair_exits(struct traced_table *table)
{
	struct traced **sorted = calloc(table->n + 1, sizeof(struct traced *));

	for (size_t i = 0; sorted && i < table->n; i++)
		sorted[i] = &table->probe[i];
	if (sorted)
		qsort(sorted, table->n, sizeof(struct traced *), order_by_name);
	for (size_t i = 0, end; sorted && i < table->n; i = end) {
		bool left = false;

		for (end = i; end < table->n && same_function(sorted[i], sorted[end]); end++)
			left |= sorted[end]->kind == FI_EXIT;
		for (size_t k = i; left && sorted[i]->kind == FI_ENTRY && k < end; k++)
			if (sorted[k]->kind <= FI_EXIT)
				sorted[k]->pair = (size_t)(sorted[i] - table->probe);
	}
	free(sorted);
}

static struct traced *probe_of(const struct trace_read *trace, unsigned table, uint32_t id)
{
	const struct traced_table *in = table < trace->tables ? &trace->table[table] : NULL;
	size_t i = in ? SORTED_FROM(in->probe, in->n, id, id) : 0;

	return in && i < in->n && in->probe[i].id == id ? &in->probe[i] : NULL;
}

/* --- The socket ------------------------------------------------------------------------------- */

static void answer_agent(FILE *to, const struct traced_table *table, size_t number)
{
	fprintf(to, "table %zu\n", number);
	for (size_t i = 0; i < table->n; i++)
		if (table->probe[i].how)
			fprintf(to, "%u %" PRIx64 "\n", table->probe[i].id, table->probe[i].how);
}

static int read_table(FILE *from, struct traced_table *table)
{
	int ret = text_lines(from, read_probe, table);

	pair_exits(table);
	return ret;
}

static int process_of(int fd)
{
	struct ucred process = { 0 };
	socklen_t len = sizeof(process);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &process, &len) ? 0 : process.pid;
}

static void serve_agent(struct trace_read *trace, FILE *stream)
{
	struct traced_table *table;

	if (trace->tables > UINT16_MAX ||
	    ARRAY_ADD(trace->table, trace->tables, (struct traced_table){ 0 }))
		return;
	table = &trace->table[trace->tables - 1];
	if (!read_table(stream, table))
		answer_agent(stream, table, trace->tables - 1);
}

static size_t accept_all(struct trace_read *trace)
{
	size_t n = 0;
	FILE *stream;
	int fd;

	while ((fd = accept4(trace->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		socket_limit(fd, PATIENCE);
		if (!trace->first)
			trace->first = process_of(fd);
		stream = fdopen(fd, "r+");
		if (stream) {
			serve_agent(trace, stream);
			fclose(stream);
		} else {
			close(fd);
		}
		n++;
	}
	return n;
}

/* --- Functions that a thread is in ------------------------------------------------------------ */

static uint64_t time_since_start(const struct trace_read *trace, uint64_t time)
{
	return time > trace->start ? time - trace->start : 0;
}

static struct trace_frame *find_frame(struct stream *stream, unsigned table, size_t pair)
{
	for (unsigned i = stream->depth; i-- > 0;)
		if (stream->frame[i].table == table && stream->frame[i].pair == pair)
			return &stream->frame[i];
	return NULL;
}

static void drop_frames(struct stream *stream, unsigned depth)
{
	while (stream->depth > depth)
		free(stream->frame[--stream->depth].pending);
}

/* Leaves this function, and callees whose exits were not seen. */
static void leave_functions(struct stream *stream, struct shown *shown)
{
	unsigned depth;

	shown->frame = find_frame(stream, shown->event->table, shown->probe->pair);
	if (!shown->frame)
		return;
	depth = (unsigned)(shown->frame - stream->frame);
	for (unsigned i = depth; i < stream->depth; i++)
		shown->left += stream->frame[i].is_shown;
	drop_frames(stream, depth + 1);
	shown->depth = depth;
}

static void enter_function(struct stream *stream, struct shown *shown)
{
	if (stream->depth == DEPTH_MAX)
		return;
	shown->frame = &stream->frame[stream->depth++];
	*shown->frame = (struct trace_frame){ .table = shown->event->table,
					      .pair = shown->probe->pair,
					      .since = shown->time };
}

static void end_stream(const struct trace_read *trace, struct stream *stream)
{
	trace->to.end(stream->frame, stream->depth, time_since_start(trace, stream->next.time),
		      trace->to.arg);
	drop_frames(stream, 0);
}

/* --- Rings ------------------------------------------------------------------------------------ */

static struct ring *map_ring(const char *folder, const char *name)
{
	struct ring *ring = MAP_FAILED;
	struct stat stat;
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return NULL;
	/* An unfinished ring is shorter, or has no magic. */
	if (!fstat(fd, &stat) && S_ISREG(stat.st_mode) && stat.st_size >= (off_t)sizeof(*ring))
		ring = mmap(NULL, sizeof(*ring), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (ring == MAP_FAILED)
		return NULL;
	if (atomic_load_explicit(&ring->magic, memory_order_acquire) == RING_MAGIC)
		return ring;
	munmap(ring, sizeof(*ring));
	return NULL;
}

static void find_rings(struct trace_read *trace)
{
	DIR *dir = opendir(trace->folder);
	const struct dirent *entry;
	struct stream *stream;

	while (dir && (entry = readdir(dir))) {
		if (*entry->d_name < '0' || *entry->d_name > '9' ||
		    strlen(entry->d_name) >= sizeof(stream->name))
			continue;
		for (stream = trace->streams; stream; stream = stream->after)
			if (!strcmp(stream->name, entry->d_name))
				break;
		stream = stream ? NULL : calloc(1, sizeof(*stream));
		if (!stream)
			continue;
		strcpy(stream->name, entry->d_name);
		stream->ring = map_ring(trace->folder, stream->name);
		if (!stream->ring) {
			free(stream);
			continue;
		}
		atomic_store_explicit(&stream->ring->closed, trace->stopped, memory_order_relaxed);
		stream->after = trace->streams;
		trace->streams = stream;
	}
	if (dir)
		closedir(dir);
}

static void drop_stream(const struct trace_read *trace, struct stream *stream)
{
	char path[128];

	end_stream(trace, stream);
	snprintf(path, sizeof(path), "%s/%s", trace->folder, stream->name);
	unlink(path);
	munmap(stream->ring, sizeof(*stream->ring));
	free(stream);
}

/* Looks at the process first: as long as it lives, its thread may write to the ring. */
static void drop_ended(struct trace_read *trace)
{
	struct stream **place = &trace->streams;

	while (*place) {
		struct stream *stream = *place;
		struct ring *ring = stream->ring;
		bool gone = atomic_load_explicit(&ring->ended, memory_order_acquire) ||
			    (kill(ring->pid, 0) < 0 && errno == ESRCH);

		if (!gone || stream->has_next ||
		    (!stream->damaged &&
		     atomic_load_explicit(&ring->written, memory_order_acquire) !=
			     atomic_load_explicit(&ring->read, memory_order_relaxed))) {
			place = &stream->after;
			continue;
		}
		*place = stream->after;
		drop_stream(trace, stream);
	}
}

/* --- Events ----------------------------------------------------------------------------------- */

static uint64_t find_how(unsigned table, uint32_t id, void *trace)
{
	const struct traced *probe = probe_of(trace, table, id);

	return probe ? probe->how : 0;
}

static void tell_lost(struct trace_read *trace, struct stream *stream, uint64_t time)
{
	uint64_t lost = atomic_load_explicit(&stream->ring->lost, memory_order_relaxed);

	if (lost <= stream->lost)
		return;
	trace->to.lost(lost - stream->lost, stream->ring->pid, stream->ring->tid,
		       time_since_start(trace, time), trace->to.arg);
	trace->lost += lost - stream->lost;
	stream->lost = lost;
}

static void show_event(struct trace_read *trace, struct stream *stream)
{
	const struct trace_event *event = &stream->next;
	struct traced *probe = probe_of(trace, event->table, event->id);
	struct shown shown = {
		.probe = probe,
		.event = event,
		.time = time_since_start(trace, event->time),
		.pid = stream->ring->pid,
		.tid = stream->ring->tid,
		.frames = stream->frame,
	};

	stream->has_next = false;
	if (!probe)
		return;
	probe->seen++;
	shown.depth = stream->depth;
	if (probe->kind == FI_EXIT && probe->pair != SIZE_MAX)
		leave_functions(stream, &shown);
	else if (probe->kind == FI_ENTRY && probe->pair != SIZE_MAX)
		enter_function(stream, &shown);
	trace->to.event(&shown, trace->to.arg);
	if (probe->kind == FI_EXIT && shown.frame)
		drop_frames(stream, (unsigned)(shown.frame - stream->frame));
}

static struct stream *find_first_event(struct trace_read *trace)
{
	struct stream *first = NULL;

	for (struct stream *stream = trace->streams; stream; stream = stream->after) {
		if (!stream->has_next && !stream->damaged) {
			int ret = ring_get(stream->ring, find_how, trace, &stream->next);

			stream->has_next = ret > 0;
			stream->damaged = ret < 0;
		}
		if (stream->has_next && (!first || stream->next.time < first->next.time))
			first = stream;
	}
	return first;
}

size_t trace_poll(struct trace_read *trace)
{
	size_t n = accept_all(trace);
	struct stream *stream;

	find_rings(trace);
	for (size_t round = 0; round < ROUND && (stream = find_first_event(trace)); round++, n++)
		show_event(trace, stream);
	for (stream = trace->streams; stream; stream = stream->after)
		tell_lost(trace, stream, stream->next.time);
	drop_ended(trace);
	return n;
}

void trace_finish(struct trace_read *trace)
{
	for (struct stream *stream = trace->streams; stream; stream = stream->after)
		end_stream(trace, stream);
}

void trace_stop(struct trace_read *trace)
{
	trace->stopped = true;
	for (struct stream *stream = trace->streams; stream; stream = stream->after)
		atomic_store_explicit(&stream->ring->closed, 1, memory_order_relaxed);
}

/* --- Life ------------------------------------------------------------------------------------- */

static bool make_folder(struct trace_read *trace)
{
	int ret;

	strcpy(trace->folder, "/dev/shm/fastinst-trace-XXXXXX");
	if (!folder_make(trace->folder))
		return true;
	strcpy(trace->folder, "/tmp/fastinst-trace-XXXXXX");
	ret = folder_make(trace->folder);
	errno = -ret;
	return !ret;
}

struct trace_read *trace_open(const struct trace_to *to)
{
	struct trace_read *trace = calloc(1, sizeof(*trace));
	char path[SOCKET_PATH];
	struct timespec now;

	if (!trace || !make_folder(trace)) {
		free(trace);
		return NULL;
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	trace->start = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	trace->to = *to;
	snprintf(path, sizeof(path), "%s/socket", trace->folder);
	trace->listener = socket_listen(path, 64);
	if (trace->listener >= 0)
		return trace;
	trace_close(trace);
	return NULL;
}

void trace_close(struct trace_read *trace)
{
	while (trace->streams) {
		struct stream *stream = trace->streams;

		trace->streams = stream->after;
		drop_stream(trace, stream);
	}
	if (trace->listener >= 0)
		close(trace->listener);
	folder_remove(trace->folder);
	for (size_t t = 0; t < trace->tables; t++) {
		for (size_t i = 0; i < trace->table[t].n; i++)
			free_probe(&trace->table[t].probe[i]);
		free(trace->table[t].probe);
	}
	free(trace->table);
	free(trace);
}
