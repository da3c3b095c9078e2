/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process is recognised by the random id in its log. Names are not enough: several may lead to
 * one log, and a later process may use the name of an earlier one.
 */
#include "live_processes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/message.h"
#include "data_dir.h"
#include "log/base/grow.h"
#include "log/base/monotonic.h"

#define SEARCH_NS	    UINT64_C(2000000000) /* reading the maps of all processes takes long */
#define SEARCH_DIRECTORY_NS UINT64_C(500000000)
#define UPDATE_NS	    UINT64_C(50000000) /* the server answers no request meanwhile */
#define READ_NS		    UINT64_C(20000000) /* of this, for one process */

static void free_row(struct live_process *row)
{
	live_log_close(row->log);
	free(row->traced.crash_buffer);
	free(row->traced.log);
}

static void remove_row(struct live_processes *processes, size_t at)
{
	free_row(&processes->rows[at]);
	memmove(&processes->rows[at], &processes->rows[at + 1],
		(--processes->count - at) * sizeof(*processes->rows));
}

/* The name of a log is HOST.PID.xtr. */
static void set_name(struct live_process *row)
{
	const char *slash = strrchr(row->traced.log, '/');
	size_t suffix_bytes = strlen(DATA_DIR_LOG_SUFFIX);

	row->name = slash ? slash + 1 : row->traced.log;
	row->name_length = strlen(row->name);
	if (row->name_length > suffix_bytes)
		row->name_length -= suffix_bytes;
}

/* Opens the log. Returns 0, or a negative number if that has to be tried again later. */
static int open_row(struct live_process *row, const struct traced_process *found,
		    struct live_names *names)
{
	struct live_namer namer = names ? live_names_namer(names) : (struct live_namer){0};

	*row = (struct live_process){.traced.pid = found->pid};
	row->traced.crash_buffer = strdup(found->crash_buffer);
	/* The path that the process sees may not exist here. */
	row->traced.log =
		strndup(found->crash_buffer, strlen(found->crash_buffer) - strlen(".spool"));
	if (!row->traced.crash_buffer || !row->traced.log)
		return -ENOMEM;
	set_name(row);
	return live_log_open(&row->log, row->traced.log, names ? &namer : NULL);
}

static bool has_same_name(const struct live_process *a, const struct live_process *b)
{
	return a->name_length == b->name_length && !memcmp(a->name, b->name, a->name_length);
}

/*
 * Whether the log is followed already, or another one of its name, which would have the same
 * labels. Forgets an ended process whose name is used again.
 */
static bool is_known(struct live_processes *processes, const struct live_process *new)
{
	uint64_t id = live_log_header(new->log)->log_id;

	for (size_t i = processes->count; i-- > 0;) {
		struct live_process *row = &processes->rows[i];

		if (live_log_header(row->log)->log_id == id)
			return true;
		if (!has_same_name(row, new))
			continue;
		if (!row->has_ended)
			return true;
		remove_row(processes, i);
	}
	return false;
}

static bool is_followed_path(const struct live_processes *processes, const char *crash_buffer)
{
	for (size_t i = 0; i < processes->count; i++)
		if (!processes->rows[i].has_ended &&
		    !strcmp(processes->rows[i].traced.crash_buffer, crash_buffer))
			return true;
	return false;
}

static void add(struct live_processes *processes, const struct traced_process *found)
{
	struct live_process row;

	if (is_followed_path(processes, found->crash_buffer) || !process_is_alive(found))
		return;
	if (processes->count == LIVE_PROCESSES_MAX) {
		if (!processes->is_full_noted)
			print_note("more than %d processes carry xtrace; the rest is left out",
				   LIVE_PROCESSES_MAX);
		processes->is_full_noted = true;
		return;
	}
	if (open_row(&row, found, processes->names) || is_known(processes, &row) ||
	    grow(&processes->rows, &processes->capacity, processes->count + 1,
		 sizeof(*processes->rows)))
		free_row(&row);
	else
		processes->rows[processes->count++] = row;
}

static void search_directory(struct process_list *list, const char *directory)
{
	char **logs;
	size_t log_count;

	/* It may appear later. */
	if (data_dir_list_logs(directory, &logs, &log_count))
		return;
	for (size_t i = 0; i < log_count; i++)
		processes_add_log(list, directory, logs[i]);
	data_dir_free_logs(logs, log_count);
}

static bool has_new_process(const struct live_processes *processes, const struct process_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (!is_followed_path(processes, list->rows[i].crash_buffer) &&
		    process_is_alive(&list->rows[i]))
			return true;
	return false;
}

static void search(struct live_processes *processes)
{
	struct process_list list = {0};

	for (size_t d = 0; d < processes->directory_count; d++)
		search_directory(&list, processes->directories[d]);
	if (processes->pid)
		processes_find_pid(&list, processes->pid);
	else if (!processes->directory_count)
		processes_find_all(&list);
	if (processes->directory_count && has_new_process(processes, &list))
		processes_find_pids(&list);
	for (size_t i = 0; i < list.count; i++)
		add(processes, &list.rows[i]);
	processes_free(&list);
}

static void end(struct live_process *row)
{
	if (!row->has_ended)
		row->ended_ns = monotonic_ns();
	row->has_ended = true;
}

/* Returns true if there is more to read. A log is read after its end, too: recovery appends. */
static bool read_row(struct live_process *row)
{
	/* Before reading: once the process has ended, what is in the log now is all of it. */
	bool is_alive = !row->has_ended && process_is_alive(&row->traced);
	struct process_status status;
	int outcome;

	if (is_alive && !process_status_read(&row->traced, &status)) {
		row->state = status.state;
		row->log_bytes = status.log_bytes;
		row->lost_count = status.lost_count;
	}
	outcome = row->has_failed ? 0 : live_log_read(row->log, READ_NS);
	if (!outcome && !row->has_failed && !row->has_ended)
		live_log_advance(row->log, is_alive);
	if (outcome < 0 && outcome != -ESTALE)
		print_note("cannot follow '%s': %s", row->traced.log, strerror(-outcome));
	row->has_failed |= outcome < 0;
	if (outcome == -ESTALE || (!is_alive && outcome <= 0))
		end(row);
	return outcome > 0;
}

static void remove_ended(struct live_processes *processes)
{
	uint64_t now = monotonic_ns();

	for (size_t i = processes->count; i-- > 0;)
		if (processes->rows[i].has_ended &&
		    now - processes->rows[i].ended_ns > processes->keep_ns)
			remove_row(processes, i);
}

bool live_processes_update(struct live_processes *processes)
{
	uint64_t start_ns = monotonic_ns(),
		 period_ns = processes->directory_count ? SEARCH_DIRECTORY_NS : SEARCH_NS;
	bool has_more = false;

	if (!processes->searched_ns || start_ns - processes->searched_ns >= period_ns) {
		search(processes);
		start_ns = processes->searched_ns = monotonic_ns();
	}
	for (size_t i = 0; i < processes->count; i++) {
		/* The next update begins with those that were left out. */
		if (i && monotonic_ns() - start_ns > UPDATE_NS)
			return true;
		processes->next = (processes->next + 1) % processes->count;
		has_more |= read_row(&processes->rows[processes->next]);
	}
	remove_ended(processes);
	return has_more;
}

void live_processes_free(struct live_processes *processes)
{
	for (size_t i = 0; i < processes->count; i++)
		free_row(&processes->rows[i]);
	free(processes->rows);
	*processes = (struct live_processes){0};
}
