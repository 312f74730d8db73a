/* SPDX-License-Identifier: MIT */
#include "bench/cases/scaling/known.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/cases/scaling/known_sites.h"
#include "patchcore/life/library.h"
#include "patchcore/patchcore.h"

#define LIMIT_S	 60  /* for any one answer */
#define PER_SITE 700 /* bytes of memory, with the tables */
#define WARM_UP	 8   /* samples; the CPU has just come from another process */

struct request {
	uint32_t what;
	uint32_t count;
};

/* Followed by the samples. */
struct reply {
	int32_t ret;
	uint32_t count;
	char why[BENCH_WHY];
};

/* --- Both sides ------------------------------------------------------------------------------ */

/* All or nothing. No SIGPIPE where nobody listens any more. */
static int send_all(int fd, const void *data, size_t size)
{
	const char *at = data;

	while (size) {
		ssize_t n = send(fd, at, size, MSG_NOSIGNAL);

		if (n < 0)
			return -errno;
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

/* -ENODATA: it has ended. -EINTR: a signal came. */
static int receive_all(int fd, void *data, size_t size)
{
	char *at = data;

	while (size) {
		ssize_t n = recv(fd, at, size, 0);

		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		if (n == 0)
			return -ENODATA;
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

/* --- The child ------------------------------------------------------------------------------- */

static int choose_policy(uint32_t what, char *why)
{
	enum pc_policy policy = what == KNOWN_WAIT	   ? PC_POLICY_WAIT
				: what == KNOWN_MEMBARRIER ? PC_POLICY_MEMBARRIER
							   : PC_POLICY_AUTO;
	struct pc_status status = { 0 };
	int ret = policy == PC_POLICY_AUTO ? 0 : pc_set_policy(policy);

	if (ret == 0)
		return 0;
	pc_get_status(&status);
	snprintf(why, BENCH_WHY, "refused by the library: %.120s",
		 policy == PC_POLICY_MEMBARRIER ? "no membarrier SYNC_CORE" : status.reason);
	return ret;
}

static int take_samples(struct known_sites *sites, const struct request *request, double *ticks,
			char *why)
{
	int ret = choose_policy(request->what, why);

	for (uint32_t i = 0; i < WARM_UP && ret == 0; i++)
		ret = known_sites_time(sites, (enum known_what)request->what, &ticks[0]);
	for (uint32_t i = 0; i < request->count && ret == 0; i++)
		ret = known_sites_time(sites, (enum known_what)request->what, &ticks[i]);
	return ret;
}

static int serve_one(struct known_sites *sites, const struct request *request)
{
	static double ticks[KNOWN_COUNT_MAX];
	struct reply reply = { 0 };
	int ret;

	if (request->what >= KNOWN_KINDS || request->count > KNOWN_COUNT_MAX)
		return -EINVAL;
	reply.ret = take_samples(sites, request, ticks, reply.why);
	reply.count = reply.ret == 0 ? request->count : 0;
	ret = send_all(STDIN_FILENO, &reply, sizeof(reply));
	return ret < 0 ? ret : send_all(STDIN_FILENO, ticks, reply.count * sizeof(*ticks));
}

/* Rather this process than its parent, where memory runs out. */
static void volunteer(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, "1000", 4) < 0)
		errno = 0;
	close(fd);
}

static int get_ready(struct known_sites *sites, unsigned long count,
		     const struct known_waits *waits)
{
	int ret;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	volunteer();
	if (waits->first)
		library_assume_waits(waits->first, waits->second, waits->stretch);
	ret = pc_init();
	if (ret == 0)
		ret = known_sites_make(sites, count, 1);
	return ret < 0 ? ret : pc_text_open(sites->code, sites->code_bytes);
}

int known_serve(unsigned long count, const struct known_waits *waits)
{
	struct known_sites sites;
	struct reply ready = { .ret = get_ready(&sites, count, waits) };
	struct request request;
	int ret = send_all(STDIN_FILENO, &ready, sizeof(ready));

	if (ready.ret < 0)
		return ready.ret; /* and the process with it */
	while (ret == 0) {
		ret = receive_all(STDIN_FILENO, &request, sizeof(request));
		if (ret == 0)
			ret = serve_one(&sites, &request);
	}
	known_sites_free(&sites);
	return ret == -ENODATA ? 0 : ret;
}

/* --- The parent ------------------------------------------------------------------------------ */

/* What could be had without driving anything out, bytes; 0: unknown. */
static uint64_t memory_available(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	uint64_t kib = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib * 1024;
}

/* Half of what there is must be left to others. */
static int check_memory(unsigned long sites, char *why)
{
	uint64_t available = memory_available(), need = (uint64_t)sites * PER_SITE;

	if (!available || need <= available / 2)
		return 0;
	snprintf(why, BENCH_WHY,
		 "%lu sites take %" PRIu64 " MiB, too much of the %" PRIu64 " MiB available", sites,
		 need >> 20, available >> 20);
	return -ENOMEM;
}

/* Between fork() and exec(). */
static void become_child(int socket, char *const argv[])
{
	if (dup2(socket, STDIN_FILENO) < 0 || dup2(socket, STDOUT_FILENO) < 0)
		_exit(126);
	execv("/proc/self/exe", argv);
	_exit(127);
}

static int start(struct known *known, int child_end, unsigned long sites,
		 const struct known_waits *waits)
{
	char text[4][24];
	char *argv[] = {
		"tmax", "bench", "--serve-sites", text[0], text[1], text[2], text[3], NULL
	};

	snprintf(text[0], sizeof(text[0]), "%lu", sites);
	snprintf(text[1], sizeof(text[1]), "%" PRIu64, waits->first);
	snprintf(text[2], sizeof(text[2]), "%" PRIu64, waits->second);
	snprintf(text[3], sizeof(text[3]), "%" PRIu64, waits->stretch);
	known->pid = fork();
	if (known->pid == 0)
		become_child(child_end, argv);
	if (known->pid > 0)
		return 0;
	known->pid = 0;
	return -errno;
}

static int receive_reply(struct known *known, struct reply *reply, char *why)
{
	int ret = receive_all(known->socket, reply, sizeof(*reply));

	if (ret < 0) {
		snprintf(why, BENCH_WHY, "the process that knows the sites: %s",
			 ret == -ENODATA ? "has ended" : strerror(-ret));
		return ret;
	}
	reply->why[BENCH_WHY - 1] = '\0';
	if (reply->ret < 0)
		snprintf(why, BENCH_WHY, "%s", reply->why[0] ? reply->why : strerror(-reply->ret));
	return reply->ret;
}

int known_open(struct known *known, unsigned long sites, const struct known_waits *waits, char *why)
{
	struct timeval limit = { .tv_sec = LIMIT_S };
	struct reply reply;
	int ends[2], ret = check_memory(sites, why);

	*known = (struct known){ 0 };
	if (ret < 0)
		return ret;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
		ret = -errno;
		snprintf(why, BENCH_WHY, "socketpair: %s", strerror(-ret));
		return ret;
	}
	known->socket = ends[0];
	setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	ret = start(known, ends[1], sites, waits);
	close(ends[1]);
	if (ret == 0)
		ret = receive_reply(known, &reply, why);
	if (ret < 0)
		known_close(known);
	return ret;
}

int known_measure(struct known *known, enum known_what what, unsigned count, struct samples *s,
		  char *why)
{
	struct request request = { what, count };
	double ticks[KNOWN_COUNT_MAX];
	struct reply reply;
	int ret = send_all(known->socket, &request, sizeof(request));

	if (ret < 0)
		snprintf(why, BENCH_WHY, "the process that knows the sites: %s", strerror(-ret));
	if (ret == 0)
		ret = receive_reply(known, &reply, why);
	if (ret == 0 && reply.count != count)
		ret = -EPROTO;
	if (ret == 0)
		ret = receive_all(known->socket, ticks, count * sizeof(*ticks));
	for (unsigned i = 0; i < count && ret == 0; i++)
		samples_add(s, ticks[i]);
	return ret;
}

void known_close(struct known *known)
{
	if (known->socket > 0)
		close(known->socket);
	if (known->pid > 0) {
		kill(known->pid, SIGKILL);
		while (waitpid(known->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	*known = (struct known){ 0 };
}
