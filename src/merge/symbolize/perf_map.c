/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads /tmp/perf-<pid>.map. The file is untrusted: any user can create it.
 */
#include "merge/symbolize/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "log/base/regular_file.h"

#define LINE_BYTES    65536
#define BYTES_MAX     (INT64_C(1) << 30)
#define START_ERROR_S 2	 /* precision of the process's start time */
#define END_ERROR_S   10 /* map and log are written in any order when the process ends */

struct wanted {
	uint64_t value;
	struct address *address;
	bool is_ambiguous;
};

COMPARE_BY(compare_wanted, struct wanted, UP(value))

/* Returns whether the log's owner wrote the map while the process lived. */
static bool is_of_process(const struct stat *map, const struct model *model, const char *log_path)
{
	int64_t start_s = strtoll(model_meta(model, "process.started"), NULL, 10);
	struct stat log;

	return start_s && !stat(log_path, &log) && map->st_uid == log.st_uid &&
	       map->st_size <= BYTES_MAX && map->st_mtim.tv_sec + START_ERROR_S >= start_s &&
	       map->st_mtim.tv_sec <= log.st_mtim.tv_sec + END_ERROR_S;
}

/* Opens the map of the log's process. Returns NULL if there is none. */
static FILE *open_map(const struct model *model, const char *log_path)
{
	char path[64];
	struct utsname here;
	struct stat status;
	FILE *map;
	int fd;

	if (uname(&here) < 0 || strcmp(here.nodename, model_meta(model, "host.name")) != 0)
		return NULL;
	snprintf(path, sizeof(path), "/tmp/perf-%u.map", model->pid);
	fd = xt_regular_open_at(AT_FDCWD, path, O_NOFOLLOW, &status);
	if (fd < 0)
		return NULL;
	map = is_of_process(&status, model, log_path) ? fdopen(fd, "r") : NULL;
	if (!map)
		close(fd);
	return map;
}

/* Parses "start size name". Returns the terminated name, or NULL if the line is malformed. */
static char *parse_line(char *line, uint64_t *start, uint64_t *bytes)
{
	char *end;

	errno = 0;
	*start = strtoull(line, &end, 16);
	if (errno || end == line || *end != ' ')
		return NULL;
	line = end + 1;
	*bytes = strtoull(line, &end, 16);
	if (errno || end == line || *end != ' ' || !*bytes || *start + *bytes < *start)
		return NULL;
	end[1 + strcspn(end + 1, "\r\n")] = '\0';
	return end[1] ? end + 1 : NULL;
}

static void name_wanted(struct model *model, struct wanted *wanted, uint32_t count, uint64_t start,
			uint64_t bytes, const char *name)
{
	uint32_t low = FIRST_NOT(i, 0, count, wanted[i].value < start);

	for (; low < count && wanted[low].value - start < bytes; low++) {
		struct address *address = wanted[low].address;
		uint32_t interned = names_intern(&model->names, name, strlen(name));

		wanted[low].is_ambiguous |=
			address->name != NAME_EMPTY && address->name != interned;
		address->name = interned;
		address->start = start;
		address->bytes = bytes;
	}
}

/* Skips lines longer than LINE_BYTES. */
static void read_map(FILE *map, struct model *model, struct wanted *wanted, uint32_t count)
{
	char *line = xt_malloc(LINE_BYTES);
	bool is_begin = true;

	while (fgets(line, LINE_BYTES, map)) {
		bool is_whole = strchr(line, '\n') || feof(map);
		uint64_t start, bytes;
		char *name = is_begin && is_whole ? parse_line(line, &start, &bytes) : NULL;

		if (name)
			name_wanted(model, wanted, count, start, bytes, name);
		is_begin = is_whole;
	}
	free(line);
}

/* The map has no times. If it lists several functions at an address, the called one is unknown. */
static void drop_ambiguous(struct wanted *wanted, uint32_t count, struct report *report,
			   const char *log_path)
{
	uint32_t dropped = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct address *address = wanted[i].address;

		if (!wanted[i].is_ambiguous)
			continue;
		address->name = NAME_EMPTY;
		address->start = address->bytes = 0;
		dropped++;
	}
	if (dropped)
		report_warn_once(report,
				 "%s: %u address%s in stacks had several generated functions; they "
				 "have no names",
				 log_path, dropped, dropped == 1 ? "" : "es");
}

void perf_map_resolve(struct addresses *addresses, struct model *model, const char *log_path,
		      const uint32_t *order, uint32_t count, struct report *report)
{
	FILE *map = open_map(model, log_path);
	struct wanted *wanted;

	if (!map)
		return;
	wanted = xt_calloc(count, sizeof(*wanted));
	for (uint32_t i = 0; i < count; i++) {
		struct address *address = &addresses->list[order[i]];

		wanted[i] = (struct wanted){address_lookup(address), address, false};
	}
	qsort(wanted, count, sizeof(*wanted), compare_wanted);
	read_map(map, model, wanted, count);
	drop_ambiguous(wanted, count, report, log_path);
	free(wanted);
	fclose(map);
}
