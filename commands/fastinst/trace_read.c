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
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/counts/base.h"
#include "agent/counts/control.h"
#include "base/array.h"
#include "base/text.h"
#include "commands/fastinst/sites.h"

#define DEPTH_MAX 4096
#define PATIENCE  5	/* seconds */
#define ROUND	  20000 /* events, before other things are looked at */
#define PATCHABLE 5	/* bytes of NOPs */

/* A thread: its ring, and the functions that it is in. */
struct stream {
	char name[64];
	struct event_ring *ring;
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
	static struct source_value floats[2][2];

	for (uint8_t i = 0; i < 2; i++)
		floats[is_double][i] = (struct source_value){ .name = "",
							      .form = SOURCE_FLOAT,
							      .bits = is_double ? 64 : 32,
							      .reg = SOURCE_VECTOR + i };
	probe->has_types = true;
	probe->types.arg = floats[is_double];
	probe->types.args = 2;
	request_values(&probe->how, probe->types.arg, 2);
}

/* A partial copy of a function (main.cold, f.isra.0) has other arguments than declared. */
static void look_up_types(struct traced *probe, const char *provider)
{
	const struct source_function *types = &probe->types;
	bool is_patchable = !strcmp(provider, "patchable");
	struct source *source;

	/* At other probes the argument registers hold something else. */
	if ((!is_patchable && strcmp(provider, "entries") != 0) || strchr(probe->function, '.'))
		return;
	source = source_of(probe->object);
	probe->has_types = source && source_function(source, probe->addr,
						     is_patchable ? PATCHABLE : 0, &probe->types);
	if (!probe->has_types)
		return;
	if (probe->kind == FI_EXIT && types->results) {
		probe->how = RING_HOW_RESULT;
		request_values(&probe->how, types->result, types->results);
	} else if (probe->kind == FI_ENTRY) {
		request_values(&probe->how, types->arg, types->args);
	}
}

static uint64_t key_of(unsigned table, uint32_t id)
{
	return (uint64_t)table << 32 | id;
}

/* ID KIND ADDRESS PROVIDER FUNCTION OBJECT */
static int read_probe(char *line, void *arg)
{
	struct trace *trace = arg;
	struct traced probe = { .pair = SIZE_MAX };
	char *field[6];

	if (text_fields(&line, field, 6) < 6)
		return 0;
	probe.key = key_of(trace->tables, (uint32_t)strtoul(field[0], NULL, 10));
	if (trace->probes && probe.key <= trace->probe[trace->probes - 1].key)
		return 0;
	probe.kind = read_kind(field[1]);
	probe.addr = strtoull(field[2], NULL, 16);
	if (asprintf(&probe.function, "%s%c%s", field[4], 0, field[5]) < 0)
		return -ENOMEM;
	probe.object = probe.function + strlen(field[4]) + 1;
	if (ARRAY_ADD(trace->probe, trace->probes, probe)) {
		free(probe.function);
		return -ENOMEM;
	}
	if (!strncmp(field[1], "compare-", 8))
		set_floats(&trace->probe[trace->probes - 1], !strcmp(field[1], "compare-double"));
	else if (strcmp(field[1], "exit-jump") != 0)
		look_up_types(&trace->probe[trace->probes - 1], field[3]);
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

/* All entries and exits of a function get its first entry as pair, if it has exits. */
static void pair_exits(struct trace *trace, size_t first)
{
	size_t n = trace->probes - first;
	struct traced **sorted = calloc(n + 1, sizeof(struct traced *));

	for (size_t i = 0; sorted && i < n; i++)
		sorted[i] = &trace->probe[first + i];
	if (sorted)
		qsort(sorted, n, sizeof(struct traced *), order_by_name);
	for (size_t i = 0, end; sorted && i < n; i = end) {
		bool left = false;

		for (end = i; end < n && !strcmp(sorted[i]->function, sorted[end]->function) &&
			      !strcmp(sorted[i]->object, sorted[end]->object);
		     end++)
			left |= sorted[end]->kind == FI_EXIT;
		for (size_t k = i; left && sorted[i]->kind == FI_ENTRY && k < end; k++)
			if (sorted[k]->kind <= FI_EXIT)
				sorted[k]->pair = (size_t)(sorted[i] - trace->probe);
	}
	free(sorted);
}

static struct traced *probe_of(const struct trace *trace, unsigned table, uint32_t id)
{
	uint64_t key = key_of(table, id);
	size_t i = SORTED_FROM(trace->probe, trace->probes, key, key);

	return i < trace->probes && trace->probe[i].key == key ? &trace->probe[i] : NULL;
}

/* --- The socket ------------------------------------------------------------------------------- */

static int process_of(int fd)
{
	struct ucred process = { 0 };
	socklen_t len = sizeof(process);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &process, &len) ? 0 : process.pid;
}

static void serve_agent(struct trace *trace, FILE *stream)
{
	size_t first = trace->probes;
	int ret;

	if (trace->tables > UINT16_MAX)
		return;
	ret = text_lines(stream, read_probe, trace);
	pair_exits(trace, first);
	if (!ret)
		fprintf(stream, "table %u\n", trace->tables);
	for (; !ret && first < trace->probes; first++)
		if (trace->probe[first].how)
			fprintf(stream, "%u %" PRIx64 "\n", (uint32_t)trace->probe[first].key,
				trace->probe[first].how);
	trace->tables++;
}

static size_t accept_all(struct trace *trace)
{
	size_t n = 0;
	FILE *stream;
	int fd;

	for (; (fd = accept4(trace->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0; n++) {
		socket_limit(fd, PATIENCE);
		if (!trace->filter.pid)
			trace->filter.pid = process_of(fd);
		stream = fdopen(fd, "r+");
		if (stream) {
			serve_agent(trace, stream);
			fclose(stream);
		} else {
			close(fd);
		}
	}
	return n;
}

/* --- Functions that a thread is in ------------------------------------------------------------ */

static uint64_t time_since_start(const struct trace *trace, uint64_t time)
{
	return time > trace->start ? time - trace->start : 0;
}

static struct trace_frame *find_frame(struct stream *stream, size_t pair)
{
	for (unsigned i = stream->depth; i-- > 0;)
		if (stream->frame[i].pair == pair)
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

	shown->frame = find_frame(stream, shown->probe->pair);
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
	*shown->frame = (struct trace_frame){ .pair = shown->probe->pair, .since = shown->time };
}

/* --- Rings ------------------------------------------------------------------------------------ */

static struct event_ring *map_ring(const char *folder, const char *name)
{
	struct event_ring *ring = MAP_FAILED;
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

static void add_stream(struct trace *trace, const char *name)
{
	struct stream *stream = trace->streams;

	while (stream && strcmp(stream->name, name) != 0)
		stream = stream->after;
	if (stream || strlen(name) >= sizeof(stream->name))
		return;
	stream = calloc(1, sizeof(*stream));
	if (!stream)
		return;
	strcpy(stream->name, name);
	stream->ring = map_ring(trace->folder, name);
	stream->after = trace->streams;
	if (stream->ring)
		trace->streams = stream;
	else
		free(stream);
}

static void find_rings(struct trace *trace)
{
	DIR *dir = opendir(trace->folder);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (*entry->d_name >= '0' && *entry->d_name <= '9')
			add_stream(trace, entry->d_name);
	if (dir)
		closedir(dir);
}

static void drop_stream(struct trace *trace, struct stream *stream)
{
	char path[128];

	show_open(trace, stream->frame, stream->depth, time_since_start(trace, stream->next.time));
	drop_frames(stream, 0);
	snprintf(path, sizeof(path), "%s/%s", trace->folder, stream->name);
	unlink(path);
	munmap(stream->ring, sizeof(*stream->ring));
	free(stream);
}

/* Looks at the process first: as long as it lives, its thread may write to the ring. */
static void drop_ended(struct trace *trace)
{
	struct stream **place = &trace->streams;

	while (*place) {
		struct stream *stream = *place;
		struct event_ring *ring = stream->ring;
		bool gone = atomic_load_explicit(&ring->ended, memory_order_acquire) ||
			    (kill(ring->pid, 0) < 0 && errno == ESRCH);
		bool is_read = stream->damaged ||
			       atomic_load_explicit(&ring->written, memory_order_acquire) ==
				       atomic_load_explicit(&ring->read, memory_order_relaxed);

		if (gone && is_read && !stream->has_next) {
			*place = stream->after;
			drop_stream(trace, stream);
		} else {
			place = &stream->after;
		}
	}
}

/* --- Events ----------------------------------------------------------------------------------- */

static uint64_t find_how(unsigned table, uint32_t id, void *trace)
{
	const struct traced *probe = probe_of(trace, table, id);

	return probe ? probe->how : 0;
}

static void tell_lost(struct trace *trace, struct stream *stream)
{
	uint64_t lost = atomic_load_explicit(&stream->ring->lost, memory_order_relaxed);

	if (lost <= stream->lost)
		return;
	show_event(trace, &(struct shown){ .lost = lost - stream->lost,
					   .time = time_since_start(trace, stream->next.time),
					   .pid = stream->ring->pid,
					   .tid = stream->ring->tid });
	trace->lost += lost - stream->lost;
	stream->lost = lost;
}

static void take_event(struct trace *trace, struct stream *stream)
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
	show_event(trace, &shown);
	if (probe->kind == FI_EXIT && shown.frame)
		drop_frames(stream, (unsigned)(shown.frame - stream->frame));
}

static struct stream *find_first_event(struct trace *trace)
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

size_t trace_poll(struct trace *trace)
{
	size_t n = accept_all(trace);
	struct stream *stream;

	find_rings(trace);
	for (size_t round = 0; round < ROUND && (stream = find_first_event(trace)); round++, n++)
		take_event(trace, stream);
	for (stream = trace->streams; stream; stream = stream->after) {
		tell_lost(trace, stream);
		/* Has the program write no more. */
		atomic_store_explicit(&stream->ring->closed, trace->limited, memory_order_relaxed);
	}
	drop_ended(trace);
	return n;
}

void trace_finish(struct trace *trace)
{
	while (trace->streams) {
		struct stream *stream = trace->streams;

		trace->streams = stream->after;
		drop_stream(trace, stream);
	}
}

int trace_open(struct trace *trace)
{
	char path[SOCKET_PATH];
	struct timespec now;
	int ret;

	strcpy(trace->folder, "/dev/shm/fastinst-trace-XXXXXX");
	ret = folder_make(trace->folder);
	if (ret) {
		strcpy(trace->folder, "/tmp/fastinst-trace-XXXXXX");
		ret = folder_make(trace->folder);
	}
	if (ret)
		return ret;
	clock_gettime(CLOCK_MONOTONIC, &now);
	trace->start = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	snprintf(path, sizeof(path), "%s/socket", trace->folder);
	trace->listener = socket_listen(path, 64);
	if (trace->listener < 0)
		trace_close(trace);
	return trace->listener < 0 ? trace->listener : 0;
}

void trace_close(struct trace *trace)
{
	trace_finish(trace);
	if (trace->listener >= 0)
		close(trace->listener);
	folder_remove(trace->folder);
	while (trace->probes)
		free(trace->probe[--trace->probes].function);
	free(trace->probe);
}
