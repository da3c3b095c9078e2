/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client of debuginfod. Its library is loaded only when needed, because it depends on libcurl and
 * much else, and few users have servers.
 */
#include "merge/symbolize/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/monotonic.h"

#define IDLE_NS_MAX    UINT64_C(20000000000)
#define TOTAL_NS_MAX   UINT64_C(300000000000) /* for all files of a run */
#define FILE_BYTES_MAX (INT64_C(1) << 31)

typedef int (*progress_function)(void *client, long done, long total);

static void *(*begin)(void);
static void (*end)(void *client);
static int (*find_debuginfo)(void *client, const unsigned char *build_id, int build_id_bytes,
			     char **path_out);
static void (*set_progress)(void *client, progress_function function);
static void (*set_user_data)(void *client, void *data);
static void *(*get_user_data)(void *client);

static const struct {
	const char *name;
	void *place;
} functions[] = {
	{"debuginfod_begin", &begin},
	{"debuginfod_end", &end},
	{"debuginfod_find_debuginfo", &find_debuginfo},
	{"debuginfod_set_progressfn", &set_progress},
	{"debuginfod_set_user_data", &set_user_data},
	{"debuginfod_get_user_data", &get_user_data},
};

/*
 * Progress callback of the client, called several times a second. A nonzero result aborts the
 * download. Until a server answers, the client increments done at each call, so a step of one is
 * not progress.
 */
static int on_progress(void *client, long done, long total)
{
	struct debuginfod *server = get_user_data(client);
	uint64_t now = monotonic_ns();

	server->is_too_large = done > FILE_BYTES_MAX || total > FILE_BYTES_MAX;
	if ((uint64_t)done > server->last_bytes + 1)
		server->progress_ns = now;
	server->last_bytes = (uint64_t)done;
	server->timed_out = now - server->progress_ns > IDLE_NS_MAX ||
			    server->spent_ns + now - server->started_ns > TOTAL_NS_MAX;
	return server->timed_out || server->is_too_large;
}

static bool open_library(struct debuginfod *server)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	if (server->client)
		return true;
	if (server->disabled || !urls || !urls[strspn(urls, " ")])
		return false;
	server->disabled = true;
	server->library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!server->library) {
		if (server->report)
			report_note(server->report,
				    "DEBUGINFOD_URLS is ignored: libdebuginfod.so.1 is not "
				    "installed");
		return false;
	}
	for (size_t f = 0; f < sizeof(functions) / sizeof(functions[0]); f++) {
		void *function = dlsym(server->library, functions[f].name);

		if (!function)
			return false;
		memcpy(functions[f].place, &function, sizeof(function));
	}
	server->client = begin();
	if (!server->client)
		return false;
	set_user_data(server->client, server);
	set_progress(server->client, on_progress);
	server->disabled = false;
	return true;
}

int debuginfod_fetch(struct debuginfod *server, const char *path, const void *build_id,
		     size_t build_id_bytes)
{
	int fd;

	if (server->disabled || !open_library(server))
		return -1;
	server->last_bytes = 0;
	server->timed_out = server->is_too_large = false;
	server->started_ns = server->progress_ns = monotonic_ns();
	fd = find_debuginfo(server->client, build_id, (int)build_id_bytes, NULL);
	server->spent_ns += monotonic_ns() - server->started_ns;
	if (fd >= 0)
		return fd;
	if (fd == -ENOENT && !server->timed_out && !server->is_too_large)
		return -1;
	if (server->is_too_large) {
		if (server->report)
			report_note(server->report,
				    "%s: debuginfod: the debug file is larger than 2 GiB", path);
		return -1;
	}
	server->disabled = true;
	if (server->report)
		report_note(server->report, "%s: debuginfod: %s; not asking servers again", path,
			    server->timed_out ? "no answer in time" : strerror(-fd));
	return -1;
}

void debuginfod_end(struct debuginfod *server)
{
	if (server->client)
		end(server->client);
	/* Do not unload the library: its dependencies have threads and exit handlers. */
	server->client = NULL;
}
