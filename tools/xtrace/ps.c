/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace ps: lists the running processes that carry xtrace.
 */
#include "commands.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "json_file.h"
#include "log/base/monotonic.h"
#include "log/base/number_format.h"
#include "processes.h"

#define INTERVAL_MS  500
#define COMMAND_SHOW 48

struct ps_request {
	bool is_json;
};

static const struct option_row option_rows[] = {
	{"json", .help = "Print JSON", .apply = option_flag,
	 .offset = offsetof(struct ps_request, is_json)},
	{0},
};

struct row {
	const struct traced_process *process;
	struct process_status before, status;
	bool is_alive;
	double seconds;
	char command[256];
};

static double launches_per_second(const struct row *row)
{
	return (double)(row->status.launch_count - row->before.launch_count) / row->seconds;
}

/* The command line, with spaces between the arguments. "?" if the process is not visible. */
static void read_command(struct row *row)
{
	char path[64];
	size_t length;
	FILE *file;

	snprintf(row->command, sizeof(row->command), "?");
	snprintf(path, sizeof(path), "/proc/%d/cmdline", row->process->pid);
	file = row->process->pid ? fopen(path, "re") : NULL;
	if (!file)
		return;
	length = fread(row->command, 1, sizeof(row->command) - 1, file);
	fclose(file);
	while (length && !row->command[length - 1])
		length--;
	row->command[length] = '\0';
	for (size_t i = 0; i < length; i++)
		if (!row->command[i])
			row->command[i] = ' ';
		else if ((unsigned char)row->command[i] < ' ' ||
			 (unsigned char)row->command[i] >= 0x7f)
			row->command[i] = '?';
}

/* "0,2"; "-" if no work was recorded yet. */
static void gpu_text(uint64_t gpus, char *out, size_t out_bytes)
{
	size_t length = 0;

	snprintf(out, out_bytes, "-");
	for (unsigned gpu = 0; gpu < 64 && length < out_bytes; gpu++)
		if (gpus >> gpu & 1)
			length += (size_t)snprintf(out + length, out_bytes - length, "%s%u",
						   length ? "," : "", gpu);
}

static void print_row(const struct row *row)
{
	char gpus[64], pid[16], launches[COUNT_BYTES] = "-", size[TIME_BYTES], lost[COUNT_BYTES];

	gpu_text(row->status.gpus, gpus, sizeof(gpus));
	snprintf(pid, sizeof(pid), row->process->pid ? "%d" : "?", row->process->pid);
	if (row->status.state == XT_STATE_RECORDING)
		format_count(launches, (uint64_t)launches_per_second(row));
	format_count(lost, row->status.lost_count);
	format_bytes(size, row->status.log_bytes);
	printf("%8s  %-9s  %-4s %11s %8s %11s  %.*s\n", pid, process_state_name(row->status.state),
	       gpus, launches, lost, size, COMMAND_SHOW, row->command);
}

static cJSON *json_row(const struct row *row)
{
	cJSON *item = cJSON_CreateObject(), *gpus;

	if (row->process->pid)
		cJSON_AddNumberToObject(item, "pid", row->process->pid);
	else
		cJSON_AddNullToObject(item, "pid");
	cJSON_AddStringToObject(item, "state", process_state_name(row->status.state));
	if (*row->status.problem)
		cJSON_AddStringToObject(item, "problem", row->status.problem);
	gpus = cJSON_AddArrayToObject(item, "gpus");
	for (unsigned gpu = 0; gpu < 64; gpu++)
		if (row->status.gpus >> gpu & 1)
			cJSON_AddItemToArray(gpus, cJSON_CreateNumber(gpu));
	cJSON_AddNumberToObject(item, "launches", (double)row->status.launch_count);
	cJSON_AddNumberToObject(item, "launches_per_second", launches_per_second(row));
	cJSON_AddNumberToObject(item, "lost", (double)row->status.lost_count);
	cJSON_AddNumberToObject(item, "log_bytes", (double)row->status.log_bytes);
	cJSON_AddStringToObject(item, "log", row->process->log);
	cJSON_AddStringToObject(item, "command", row->command);
	return item;
}

/* Reads each process twice, some time apart. */
static void read_rows(struct row *rows, const struct process_list *list)
{
	const struct timespec interval = {0, INTERVAL_MS * 1000000l};
	bool is_any_recording = false;
	uint64_t start_ns = monotonic_ns();

	for (size_t i = 0; i < list->count; i++) {
		rows[i].process = &list->rows[i];
		rows[i].is_alive = process_is_alive(&list->rows[i]) &&
				   !process_status_read(&list->rows[i], &rows[i].before);
		is_any_recording |= rows[i].before.state == XT_STATE_RECORDING;
	}
	if (is_any_recording)
		nanosleep(&interval, NULL);
	for (size_t i = 0; i < list->count; i++) {
		rows[i].seconds = (double)(monotonic_ns() - start_ns) / 1e9;
		rows[i].is_alive &= !process_status_read(&list->rows[i], &rows[i].status);
		read_command(&rows[i]);
	}
}

static void note_hidden(size_t count)
{
	const char *why = !geteuid()   ? "not even root may do that, as outside of a container"
			  : count == 1 ? "it belongs to another user, or has raised privileges"
				       : "they belong to other users, or have raised privileges";

	print_note("%zu other process%s cannot be inspected: %s", count, count == 1 ? "" : "es",
		   why);
}

static void print_rows(const struct row *rows, const struct process_list *list)
{
	bool has_heading = false;

	for (size_t i = 0; i < list->count; i++) {
		if (!rows[i].is_alive)
			continue;
		if (!has_heading)
			printf("%8s  %-9s  %-4s %11s %8s %11s  %s\n", "PID", "STATE", "GPU",
			       "LAUNCHES/S", "LOST", "LOG", "COMMAND");
		has_heading = true;
		print_row(&rows[i]);
		if (*rows[i].status.problem)
			printf("          %s\n", rows[i].status.problem);
	}
	if (!has_heading && !list->deleted_count)
		print_note("no running process carries xtrace");
	if (!has_heading && list->hidden_count)
		note_hidden(list->hidden_count);
}

static void note_deleted(const struct process_list *list)
{
	for (size_t i = 0; i < list->deleted_count; i++)
		print_note("process %d records nothing, because its trace directory was deleted; "
			   "restart it to record it",
			   list->deleted[i]);
}

static void print_json(const struct row *rows, const struct process_list *list)
{
	cJSON *root = cJSON_CreateObject(), *array = cJSON_AddArrayToObject(root, "processes");
	char *text;

	for (size_t i = 0; i < list->count; i++)
		if (rows[i].is_alive)
			cJSON_AddItemToArray(array, json_row(&rows[i]));
	text = json_file_text(root);
	if (text)
		fputs(text, stdout);
	free(text);
	cJSON_Delete(root);
}

static int run_ps(const struct command *command, int argc, char **argv)
{
	struct ps_request request = {0};
	struct process_list list = {0};
	int status, count, error = 0;
	struct row *rows;

	status = command_parse(command, NULL, &request, argc, argv, ANY_OPERANDS, &count);
	if (status != COMMAND_GO_ON)
		return status;
	if (!count)
		error = processes_find_all(&list);
	for (int i = 1; i <= count && !error; i++) {
		error = processes_find_directory(&list, argv[i]);
		if (error)
			print_error("cannot use '%s': %s", argv[i], strerror(-error));
	}
	rows = error ? NULL : calloc(list.count + 1, sizeof(*rows));
	if (rows) {
		read_rows(rows, &list);
		(request.is_json ? print_json : print_rows)(rows, &list);
		if (!request.is_json)
			note_deleted(&list);
	}
	free(rows);
	processes_free(&list);
	return rows ? STATUS_OK : STATUS_FAILED;
}

static const char details[] =
	"DIR is a trace directory; without one, all processes that you can inspect are listed. "
	"Name "
	"the\n"
	"directory to see processes of containers that share it.\n\n"
	"  recording   records\n"
	"  armed       has not recorded yet; 'xtrace start' starts it\n"
	"  stopped     does not record; CUPTI's cost remains, or a part of it\n"
	"  paused      does not record, but CUPTI is still enabled\n"
	"  stopping    waits for the GPU to finish recorded work\n"
	"  waiting     starts after the --delay of 'xtrace start'\n"
	"  yielded     does not record, because another tool uses CUPTI\n"
	"  full        does not record, because the log has reached --max-size\n\n"
	"LOG is the size of the log, LOST the number of events that are missing in it.\n";

const struct command command_ps = {
	.name = "ps",
	.arguments = "[OPTION]... [DIR]...",
	.summary = "List the running processes that carry xtrace",
	.details = details,
	.options = option_rows,
	.run = run_ps,
};
