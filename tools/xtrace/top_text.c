/* SPDX-License-Identifier: Apache-2.0 */
#include "top_text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "json_file.h"
#include "log/base/number_format.h"
#include "base/utf8.h"

#define LINE_BYTES	 2048
#define ONCE_LINES	 10   /* of a table, without a limit by the terminal */
#define TABLE_EXTRA	 2    /* an empty line and a heading */
#define IDLE_PERCENT_MIN 0.05 /* less is not shown */
#define CLEAR_LINE	 "\033[K"
#define CLEAR_REST	 "\033[J"
#define CURSOR_HOME	 "\033[H"
#define REVERSE		 "\033[7m"
#define NORMAL		 "\033[0m"
#define PERCENT_BYTES	 32
#define RIGHT_COLUMN	 20 /* where names of paths and kernels begin */

static bool matches(const char *text, const char *filter)
{
	return !*filter || strcasestr(text, filter);
}

/* Bytes of the first `columns` characters. */
static size_t cut(const char *text, unsigned columns)
{
	size_t at = 0;

	for (; text[at]; at++)
		if (((unsigned char)text[at] & 0xc0) != 0x80 && !columns--)
			break;
	return at;
}

/* Prints a line that fits the terminal. */
static void __attribute__((format(printf, 4, 5)))
put_line(FILE *out, const struct top_view *view, bool is_heading, const char *format, ...)
{
	char line[LINE_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	if (view->columns)
		line[cut(line, view->columns)] = '\0';
	if (view->is_screen)
		fprintf(out, "%s%s%s" CLEAR_LINE "\n", is_heading ? REVERSE : "", line,
			is_heading ? NORMAL : "");
	else
		fprintf(out, "%s\n", line);
}

/* "0,1" or "0-7". */
static void gpu_text(const struct top_process *row, char *out, size_t out_bytes)
{
	size_t length = 0;

	snprintf(out, out_bytes, "-");
	if (row->gpu_count > 2 &&
	    row->gpus[row->gpu_count - 1] - row->gpus[0] == row->gpu_count - 1) {
		snprintf(out, out_bytes, "%u-%u", row->gpus[0], row->gpus[row->gpu_count - 1]);
		return;
	}
	for (unsigned g = 0; g < row->gpu_count && length < out_bytes; g++)
		length += (size_t)snprintf(out + length, out_bytes - length, "%s%u", g ? "," : "",
					   row->gpus[g]);
}

static const char *state_of(const struct top_process *row)
{
	return row->live->has_ended ? "ended" : process_state_name(row->live->state);
}

static void command_of(const struct top_process *row, char out[LIVE_COMMAND_BYTES])
{
	strcpy(out, live_log_totals(row->live->log)->command);
	utf8_make_plain(out, '?');
}

/* "-" if the figure is unknown. */
static const char *percent_of(double ratio, bool is_known, char out[PERCENT_BYTES])
{
	snprintf(out, PERCENT_BYTES, is_known ? "%.1f" : "-", 100 * ratio);
	return out;
}

static void put_process(FILE *out, const struct top_view *view, const struct top_process *row)
{
	bool is_recording = !row->live->has_ended && row->live->state == XT_STATE_RECORDING;
	char gpus[32], launches[COUNT_BYTES] = "-", memory[TIME_BYTES], lost[COUNT_BYTES],
		       command[LIVE_COMMAND_BYTES], pid[16], busy[PERCENT_BYTES],
		       cost[PERCENT_BYTES];

	snprintf(pid, sizeof(pid), row->live->traced.pid ? "%d" : "?", row->live->traced.pid);
	gpu_text(row, gpus, sizeof(gpus));
	if (is_recording || row->launches_per_second > 0)
		format_count(launches, (uint64_t)row->launches_per_second);
	format_bytes(memory, row->allocated_bytes);
	format_count(lost, row->lost_count);
	command_of(row, command);
	put_line(out, view, false, "%7s %-9s %-4s %6s %10s %11s %4s %5s %s", pid, state_of(row),
		 gpus, percent_of(row->busy, row->is_known, busy), launches, memory, lost,
		 percent_of(row->cost, is_recording || row->cost > 0, cost), command);
}

/* Returns the number of lines. */
static unsigned put_processes(FILE *out, const struct top_figures *top, const struct top_view *view,
			      unsigned room)
{
	unsigned count = 0;

	put_line(out, view, true, "%7s %-9s %-4s %6s %10s %11s %4s %5s %s", "PID", "STATE", "GPU",
		 "BUSY %", "LAUNCHES/S", "MEMORY", "LOST", "COST%", "COMMAND");
	for (size_t i = 0; i < top->row_count && count < room; i++, count++)
		put_process(out, view, &top->rows[i]);
	return count + 1;
}

/* "GPU idle %: 20.1 nothing submitted, 1.7 launch late (CPU busy)", as many as fit. */
static void put_idle(FILE *out, const struct top_figures *top, const struct top_view *view)
{
	char text[512] = "GPU idle %:", part[80];
	size_t length = strlen(text), room = sizeof(text) - 1;

	if (view->columns && view->columns < room)
		room = view->columns;
	for (int i = 0; i < IDLE_CLASSES && top->has_idle; i++) {
		enum idle_class class = top->idle_order[i];
		size_t cause_bytes, part_bytes;
		const char *cause = idle_class_text(class, &cause_bytes);

		if (i && 100 * top->idle[class] < IDLE_PERCENT_MIN)
			break;
		part_bytes = (size_t)snprintf(part, sizeof(part), "%s %.1f %.*s", i ? "," : "",
					      100 * top->idle[class], (int)cause_bytes, cause);
		if (length + part_bytes > room)
			break;
		memcpy(text + length, part, part_bytes + 1);
		length += part_bytes;
	}
	put_line(out, view, false, "%s%s", text, top->has_idle ? "" : " -");
}

/* The end of a path says most. */
static const char *end_of(const char *name, unsigned columns)
{
	size_t length = strlen(name);
	const char *at = name;

	while (length > columns && (at = strchr(at, ';'))) {
		at++;
		if (strlen(at) + 3 <= columns)
			return at;
	}
	return name;
}

static uint64_t sum_of(const struct top_line *lines, size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += lines[i].ns;
	return sum;
}

typedef const char *name_function(const struct live_names *names, size_t row);

static void put_lines(FILE *out, const struct top_figures *top, const struct top_view *view,
		      const char *heading, const struct top_line *lines, size_t count,
		      name_function *name_of, unsigned room)
{
	double sum = (double)sum_of(lines, count), seconds = (double)top->window_ns / 1e9;
	unsigned name_columns =
		view->columns > RIGHT_COLUMN + 10 ? view->columns - RIGHT_COLUMN : LINE_BYTES;

	put_line(out, view, false, "%s", "");
	put_line(out, view, true, "%6s %11s  %s", "GPU %", "WORK/S", heading);
	for (size_t i = 0; i < count && room; i++) {
		const char *name = name_of(&top->names, lines[i].row);
		char rate[COUNT_BYTES];
		const char *end = end_of(name, name_columns);

		if (!matches(name, view->filter))
			continue;
		format_count(rate, (uint64_t)((double)lines[i].count / seconds));
		put_line(out, view, false, "%6.1f %11s  %s%s",
			 sum > 0 ? 100 * (double)lines[i].ns / sum : 0, rate,
			 end == name ? "" : "...", end);
		room--;
	}
}

static void put_status(FILE *out, const struct top_figures *top, const struct top_view *view)
{
	char filter[160] = "";

	/* The keys come last: they may not fit. */
	if (view->is_typing || *view->filter)
		snprintf(filter, sizeof(filter), "  filter: %s%s", view->filter,
			 view->is_typing ? "_" : "");
	put_line(out, view, false, "xtrace top: %zu process%s, last %.1f s%s%s%s", top->row_count,
		 top->row_count == 1 ? "" : "es", (double)top->window_ns / 1e9,
		 view->is_paused ? "  [paused]" : "", filter,
		 view->is_screen ? "  q quit  p pause  / filter" : "");
}

void top_text(FILE *out, const struct top_figures *top, const struct top_view *view)
{
	unsigned table = ONCE_LINES, processes = UINT32_MAX, rest = view->lines;

	if (view->lines) {
		/* The status, the heading of processes, idle time, and the cursor's line. */
		rest = rest > 4 ? rest - 4 : 1;
		processes = rest / 3;
		if (processes > top->row_count)
			processes = (unsigned)top->row_count;
		rest -= processes;
		table = rest > 2 * TABLE_EXTRA + 1 ? (rest - 2 * TABLE_EXTRA) / 2 : 0;
	}
	if (view->is_screen)
		fputs(CURSOR_HOME, out);
	put_status(out, top, view);
	put_processes(out, top, view, processes);
	if (top->row_count && (!view->lines || view->lines > 4))
		put_idle(out, top, view);
	if (table) {
		put_lines(out, top, view, "CALL PATH", top->paths, top->path_count, live_names_path,
			  table);
		put_lines(out, top, view, "KERNEL", top->kernels, top->kernel_count,
			  live_names_kernel, table);
	}
	if (view->is_screen)
		fputs(CLEAR_REST, out);
}

static void add_ratio(cJSON *item, const char *key, double ratio, bool is_known)
{
	cJSON_AddItemToObject(item, key, is_known ? cJSON_CreateNumber(ratio) : cJSON_CreateNull());
}

static cJSON *process_json(const struct top_process *row)
{
	cJSON *item = cJSON_CreateObject(), *gpus, *idle;
	char command[LIVE_COMMAND_BYTES];

	command_of(row, command);
	if (row->live->traced.pid)
		cJSON_AddNumberToObject(item, "pid", row->live->traced.pid);
	else
		cJSON_AddNullToObject(item, "pid");
	cJSON_AddStringToObject(item, "state", state_of(row));
	cJSON_AddStringToObject(item, "command", command);
	gpus = cJSON_AddArrayToObject(item, "gpus");
	for (unsigned g = 0; g < row->gpu_count; g++)
		cJSON_AddItemToArray(gpus, cJSON_CreateNumber(row->gpus[g]));
	add_ratio(item, "busy_ratio", row->busy, row->is_known);
	idle = cJSON_AddObjectToObject(item, "idle_ratios");
	for (int c = 0; c < IDLE_CLASSES; c++) {
		size_t length;
		const char *cause = idle_class_text((enum idle_class)c, &length);
		char key[64];

		snprintf(key, sizeof(key), "%.*s", (int)length, cause);
		add_ratio(idle, key, row->idle[c], row->is_known);
	}
	cJSON_AddNumberToObject(item, "launches_per_second", row->launches_per_second);
	cJSON_AddNumberToObject(item, "allocated_bytes", (double)row->allocated_bytes);
	cJSON_AddNumberToObject(item, "lost", (double)row->lost_count);
	cJSON_AddNumberToObject(item, "cost_ratio", row->cost);
	return item;
}

static void add_lines(cJSON *root, const char *key, const struct top_figures *top,
		      const struct top_line *lines, size_t count, name_function *name_of,
		      const char *filter)
{
	cJSON *array = cJSON_AddArrayToObject(root, key);

	for (size_t i = 0; i < count; i++) {
		const char *name = name_of(&top->names, lines[i].row);
		cJSON *item;

		if (!matches(name, filter))
			continue;
		item = cJSON_CreateObject();
		cJSON_AddStringToObject(item, "name", name);
		cJSON_AddNumberToObject(item, "gpu_ns", (double)lines[i].ns);
		cJSON_AddNumberToObject(item, "count", (double)lines[i].count);
		cJSON_AddItemToArray(array, item);
	}
}

char *top_json(const struct top_figures *top, const char *filter)
{
	cJSON *root = cJSON_CreateObject(), *array = cJSON_AddArrayToObject(root, "processes");
	char *text;

	for (size_t i = 0; i < top->row_count; i++)
		cJSON_AddItemToArray(array, process_json(&top->rows[i]));
	cJSON_AddNumberToObject(root, "window_ns", (double)top->window_ns);
	add_lines(root, "paths", top, top->paths, top->path_count, live_names_path, filter);
	add_lines(root, "kernels", top, top->kernels, top->kernel_count, live_names_kernel, filter);
	text = json_file_text(root);
	cJSON_Delete(root);
	return text;
}
