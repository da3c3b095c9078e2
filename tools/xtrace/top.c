/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace top: shows what the GPUs are busy with, and refreshes the terminal. Figures are rates over
 * the last seconds, for each process, call path and kernel.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/text.h"
#include "commands.h"
#include "data_dir.h"
#include "live_processes.h"
#include "log/base/compare.h"
#include "log/base/grow.h"
#include "log/base/monotonic.h"
#include "log/base/number_format.h"

#define TOP_HISTORY 4 /* snapshots: rates are over the time from the oldest to the newest */
#define TOP_GPUS    8 /* shown of each process */

struct top_snapshot {
	uint64_t time_ns, launch_count, cost_ns;
	uint64_t gpu_ns; /* of all GPUs: the time that is either busy or idle */
	uint64_t busy_ns;
	uint64_t idle_ns[IDLE_CLASSES];
};

struct top_process {
	uint64_t log_id;
	const struct live_process *live;	  /* NULL: gone */
	struct top_snapshot history[TOP_HISTORY]; /* newest first */
	unsigned snapshot_count;
	/* Figures: */
	bool is_known;		   /* busy and idle: there are figures of its GPUs */
	double busy, cost;	   /* ratios; busy is the mean of its GPUs */
	double idle[IDLE_CLASSES]; /* the same, by cause */
	double launches_per_second;
	uint64_t allocated_bytes, lost_count;
	unsigned gpus[TOP_GPUS], gpu_count;
};

/* A call path or a kernel. */
struct top_line {
	size_t row;
	uint64_t ns, count;
};

struct top_ranking {
	struct top_line *lines; /* sorted by time */
	size_t count, capacity;
};

struct top_figures {
	struct live_processes processes;
	struct live_names names;
	struct top_process *rows;
	size_t row_count, row_capacity;
	struct top_ranking paths, kernels;
	bool has_idle;		   /* of any process */
	double idle[IDLE_CLASSES]; /* ratios: the mean of all GPUs of all processes */
	enum idle_class idle_order[IDLE_CLASSES]; /* the largest first */
	uint64_t window_ns;			  /* of paths and kernels */
	uint64_t started_ns[LIVE_HOT_SLOTS];
	unsigned slot;
};

struct top_view {
	unsigned columns, lines; /* of the terminal; lines 0: no limit */
	bool is_screen;		 /* with escape sequences, and a line about keys */
	bool is_paused, is_typing;
	const char *filter; /* shown are only names that contain it; "": all */
};

/* Set processes.directories or processes.pid first. Returns 0 or -ENOMEM. */
static int top_figures_init(struct top_figures *top)
{
	top->processes.names = &top->names;
	for (unsigned s = 0; s < LIVE_HOT_SLOTS; s++)
		top->started_ns[s] = monotonic_ns();
	return live_names_init(&top->names);
}

static struct top_snapshot snapshot_of(struct top_process *row)
{
	const struct live_totals *totals = &row->live->log->totals;
	struct top_snapshot snapshot = {
		.time_ns = monotonic_ns(),
		.launch_count = totals->launch_count,
		.cost_ns = live_account_value(&totals->accounts, "callbacks.ns") +
			   live_account_value(&totals->accounts, "writer.cpu_ns") +
			   live_account_value(&totals->accounts, "flusher.cpu_ns"),
	};

	row->gpu_count = 0;
	row->allocated_bytes = 0;
	row->lost_count = live_totals_lost(totals, false) + live_totals_lost(totals, true);
	row->lost_count = larger(row->lost_count, row->live->lost_count);
	for (unsigned g = 0; g < LIVE_GPUS; g++) {
		if (!totals->gpus[g])
			continue;
		snapshot.busy_ns += live_busy_ns(totals->gpus[g]);
		for (int c = 0; c < IDLE_CLASSES; c++) {
			snapshot.idle_ns[c] += totals->gpus[g]->idle.ns[c];
			snapshot.gpu_ns += totals->gpus[g]->idle.ns[c];
		}
		row->allocated_bytes += totals->gpus[g]->allocated_bytes;
		if (row->gpu_count < TOP_GPUS)
			row->gpus[row->gpu_count++] = g;
	}
	snapshot.gpu_ns += snapshot.busy_ns;
	return snapshot;
}

/* Whether a process records, and nothing is known of its GPUs since the last call. */
static bool top_figures_are_pending(const struct top_figures *top)
{
	for (size_t i = 0; i < top->row_count; i++) {
		struct top_process row = top->rows[i];

		if (!row.live->has_ended && row.live->state == XT_STATE_RECORDING &&
		    snapshot_of(&row).gpu_ns == row.history[0].gpu_ns && row.gpu_count)
			return true;
	}
	return false;
}

/* Data come in batches, so a ratio of a short time may exceed 1. */
static double ratio(uint64_t part, double whole)
{
	return (double)part >= whole ? 1 : (double)part / whole;
}

static void compute_process(struct top_process *row)
{
	const struct top_snapshot *new, *old;
	double span_ns, gpu_ns;

	memmove(&row->history[1], &row->history[0], (TOP_HISTORY - 1) * sizeof(row->history[0]));
	row->history[0] = snapshot_of(row);
	if (row->snapshot_count < TOP_HISTORY)
		row->snapshot_count++;
	new = &row->history[0];
	old = &row->history[row->snapshot_count - 1];
	span_ns = (double)(new->time_ns - old->time_ns);
	row->busy = row->cost = row->launches_per_second = 0;
	row->is_known = false;
	memset(row->idle, 0, sizeof(row->idle));
	if (span_ns <= 0)
		return;
	row->launches_per_second = (double)(new->launch_count - old->launch_count) / span_ns * 1e9;
	row->cost = ratio(new->cost_ns - old->cost_ns, span_ns);
	if (!row->gpu_count)
		return;
	/* A GPU's figures lag behind by a varying time, so divide by the time that they cover. */
	gpu_ns = (double)(new->gpu_ns - old->gpu_ns);
	row->is_known = gpu_ns > 0;
	row->busy = row->is_known ? ratio(new->busy_ns - old->busy_ns, gpu_ns) : 0;
	for (int c = 0; row->is_known && c < IDLE_CLASSES; c++)
		row->idle[c] = ratio(new->idle_ns[c] - old->idle_ns[c], gpu_ns);
}

static void compute_idle(struct top_figures *top)
{
	unsigned gpu_count = 0;

	memset(top->idle, 0, sizeof(top->idle));
	for (size_t i = 0; i < top->row_count; i++) {
		if (!top->rows[i].is_known)
			continue;
		gpu_count += top->rows[i].gpu_count;
		for (int c = 0; c < IDLE_CLASSES; c++)
			top->idle[c] += top->rows[i].idle[c] * top->rows[i].gpu_count;
	}
	top->has_idle = gpu_count != 0;
	for (int c = 0; c < IDLE_CLASSES; c++) {
		int at = c;

		top->idle[c] /= gpu_count ? gpu_count : 1;
		for (; at && top->idle[top->idle_order[at - 1]] < top->idle[c]; at--)
			top->idle_order[at] = top->idle_order[at - 1];
		top->idle_order[at] = (enum idle_class)c;
	}
}

/* The past of a process that was just found is not of the last seconds. */
static void forget_past(const struct live_process *live)
{
	for (unsigned s = 0; s < LIVE_HOT_SLOTS; s++)
		live_hot_advance(&live->log->hot);
}

static struct top_process *find_row(struct top_figures *top, uint64_t log_id)
{
	for (size_t i = 0; i < top->row_count; i++)
		if (top->rows[i].log_id == log_id)
			return &top->rows[i];
	return NULL;
}

/*
 * Points the rows to their processes, which an update may have moved, and removes the rows of
 * others. adds_new: adds rows for processes without one. Returns 0 or -ENOMEM.
 */
static int match_rows(struct top_figures *top, bool adds_new)
{
	size_t kept = 0;
	int error = 0;

	for (size_t i = 0; i < top->row_count; i++)
		top->rows[i].live = NULL;
	for (size_t i = 0; i < top->processes.count && !error; i++) {
		const struct live_process *live = &top->processes.rows[i];
		uint64_t id = live->log->header.log_id;
		struct top_process *row = find_row(top, id);

		if (!live->log->is_current || (!row && !adds_new))
			continue;
		if (!row) {
			error = grow(top->rows, top->row_capacity, top->row_count + 1);
			if (error)
				break;
			row = &top->rows[top->row_count++];
			*row = (struct top_process){.log_id = id};
			forget_past(live);
		}
		row->live = live;
	}
	for (size_t i = 0; i < top->row_count; i++)
		if (top->rows[i].live)
			top->rows[kept++] = top->rows[i];
	top->row_count = kept;
	return error;
}

COMPARE_BY(compare_lines, struct top_line, DOWN(ns) UP(row))

/* Adds the window of a process to the lines, which are in the order of rows. */
static int add_ranking(struct top_ranking *sum, const struct live_ranking *ranking)
{
	if (grow(sum->lines, sum->capacity, ranking->count))
		return -ENOMEM;
	for (; sum->count < ranking->count; sum->count++)
		sum->lines[sum->count] = (struct top_line){.row = sum->count};
	for (size_t i = 0; i < ranking->count; i++) {
		sum->lines[i].ns += live_hot_sum(ranking->rows[i].recent_ns);
		sum->lines[i].count += live_hot_sum(ranking->rows[i].recent_count);
	}
	return 0;
}

static void sort(struct top_ranking *ranking)
{
	size_t kept = 0;

	for (size_t i = 0; i < ranking->count; i++)
		if (ranking->lines[i].count)
			ranking->lines[kept++] = ranking->lines[i];
	ranking->count = kept;
	SORT(ranking->lines, kept, compare_lines);
}

static int compute_lines(struct top_figures *top)
{
	int error = 0;

	top->paths.count = top->kernels.count = 0;
	for (size_t i = 0; i < top->row_count && !error; i++) {
		struct live_hot *hot = &top->rows[i].live->log->hot;

		error = add_ranking(&top->paths, &hot->paths);
		if (!error)
			error = add_ranking(&top->kernels, &hot->kernels);
		live_hot_advance(hot);
	}
	sort(&top->paths);
	sort(&top->kernels);
	top->window_ns = monotonic_ns() - top->started_ns[(top->slot + 1) % LIVE_HOT_SLOTS];
	top->slot = (top->slot + 1) % LIVE_HOT_SLOTS;
	top->started_ns[top->slot] = monotonic_ns();
	return error;
}

/* Computes the figures of the time since the earlier calls. Returns 0 or -ENOMEM. */
static int top_figures_compute(struct top_figures *top)
{
	int error = match_rows(top, true);

	for (size_t i = 0; i < top->row_count; i++)
		compute_process(&top->rows[i]);
	compute_idle(top);
	return error ? error : compute_lines(top);
}

/* Reads the logs for a short time. Returns true if there is more to read now. */
static bool top_figures_read(struct top_figures *top)
{
	bool has_more = live_processes_update(&top->processes);

	match_rows(top, false); /* needs no memory */
	return has_more;
}

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
static void __attribute__((format(printf, 3, 4)))
put_line(const struct top_view *view, bool is_heading, const char *format, ...)
{
	char line[LINE_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	if (view->columns)
		line[cut(line, view->columns)] = '\0';
	if (view->is_screen)
		printf("%s%s%s" CLEAR_LINE "\n", is_heading ? REVERSE : "", line,
		       is_heading ? NORMAL : "");
	else
		printf("%s\n", line);
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
	strcpy(out, row->live->log->totals.command);
	utf8_make_plain(out, '?');
}

/* "-" if the figure is unknown. */
static const char *percent_of(double ratio, bool is_known, char out[PERCENT_BYTES])
{
	snprintf(out, PERCENT_BYTES, is_known ? "%.1f" : "-", 100 * ratio);
	return out;
}

static void put_process(const struct top_view *view, const struct top_process *row)
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
	put_line(view, false, "%7s %-9s %-4s %6s %10s %11s %4s %5s %s", pid, state_of(row), gpus,
		 percent_of(row->busy, row->is_known, busy), launches, memory, lost,
		 percent_of(row->cost, is_recording || row->cost > 0, cost), command);
}

static void put_processes(const struct top_figures *top, const struct top_view *view, unsigned room)
{
	put_line(view, true, "%7s %-9s %-4s %6s %10s %11s %4s %5s %s", "PID", "STATE", "GPU",
		 "BUSY %", "LAUNCHES/S", "MEMORY", "LOST", "COST%", "COMMAND");
	for (size_t i = 0; i < top->row_count && i < room; i++)
		put_process(view, &top->rows[i]);
}

/* "GPU idle %: 20.1 nothing submitted, 1.7 launch late (CPU busy)", as many as fit. */
static void put_idle(const struct top_figures *top, const struct top_view *view)
{
	char text[512] = "GPU idle %:", part[80];
	size_t length = strlen(text), room = sizeof(text) - 1;

	if (view->columns && view->columns < room)
		room = view->columns;
	for (int i = 0; i < IDLE_CLASSES && top->has_idle; i++) {
		enum idle_class class = top->idle_order[i];
		size_t part_bytes;

		if (i && 100 * top->idle[class] < IDLE_PERCENT_MIN)
			break;
		part_bytes = (size_t)snprintf(part, sizeof(part), "%s %.1f %s", i ? "," : "",
					      100 * top->idle[class], idle_causes[class]);
		if (length + part_bytes > room)
			break;
		memcpy(text + length, part, part_bytes + 1);
		length += part_bytes;
	}
	put_line(view, false, "%s%s", text, top->has_idle ? "" : " -");
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

typedef const char *name_function(const struct live_names *names, size_t row);

static void put_ranking(const struct top_figures *top, const struct top_view *view,
			const char *heading, const struct top_ranking *ranking,
			name_function *name_of, unsigned room)
{
	double seconds = (double)top->window_ns / 1e9;
	uint64_t sum = 0;
	unsigned name_columns =
		view->columns > RIGHT_COLUMN + 10 ? view->columns - RIGHT_COLUMN : LINE_BYTES;

	for (size_t i = 0; i < ranking->count; i++)
		sum += ranking->lines[i].ns;
	put_line(view, false, "%s", "");
	put_line(view, true, "%6s %11s  %s", "GPU %", "WORK/S", heading);
	for (size_t i = 0; i < ranking->count && room; i++) {
		const struct top_line *line = &ranking->lines[i];
		const char *name = name_of(&top->names, line->row);
		char rate[COUNT_BYTES];
		const char *end = end_of(name, name_columns);

		if (!matches(name, view->filter))
			continue;
		format_count(rate, (uint64_t)((double)line->count / seconds));
		put_line(view, false, "%6.1f %11s  %s%s",
			 sum ? 100 * (double)line->ns / (double)sum : 0, rate,
			 end == name ? "" : "...", end);
		room--;
	}
}

static void put_status(const struct top_figures *top, const struct top_view *view)
{
	char filter[160] = "";

	/* The keys come last: they may not fit. */
	if (view->is_typing || *view->filter)
		snprintf(filter, sizeof(filter), "  filter: %s%s", view->filter,
			 view->is_typing ? "_" : "");
	put_line(view, false, "xtrace top: %zu process%s, last %.1f s%s%s%s", top->row_count,
		 top->row_count == 1 ? "" : "es", (double)top->window_ns / 1e9,
		 view->is_paused ? "  [paused]" : "", filter,
		 view->is_screen ? "  q quit  p pause  / filter" : "");
}

static void top_text(const struct top_figures *top, const struct top_view *view)
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
		fputs(CURSOR_HOME, stdout);
	put_status(top, view);
	put_processes(top, view, processes);
	if (top->row_count && (!view->lines || view->lines > 4))
		put_idle(top, view);
	if (table) {
		put_ranking(top, view, "CALL PATH", &top->paths, live_names_path, table);
		put_ranking(top, view, "KERNEL", &top->kernels, live_names_kernel, table);
	}
	if (view->is_screen)
		fputs(CLEAR_REST, stdout);
}

static void add_number(cJSON *item, const char *key, double value, bool is_known)
{
	cJSON_AddItemToObject(item, key, is_known ? cJSON_CreateNumber(value) : cJSON_CreateNull());
}

static cJSON *process_json(const struct top_process *row)
{
	cJSON *item = cJSON_CreateObject(), *gpus, *idle;
	char command[LIVE_COMMAND_BYTES];

	command_of(row, command);
	add_number(item, "pid", row->live->traced.pid, row->live->traced.pid);
	cJSON_AddStringToObject(item, "state", state_of(row));
	cJSON_AddStringToObject(item, "command", command);
	gpus = cJSON_AddArrayToObject(item, "gpus");
	for (unsigned g = 0; g < row->gpu_count; g++)
		cJSON_AddItemToArray(gpus, cJSON_CreateNumber(row->gpus[g]));
	add_number(item, "busy_ratio", row->busy, row->is_known);
	idle = cJSON_AddObjectToObject(item, "idle_ratios");
	for (int c = 0; c < IDLE_CLASSES; c++)
		add_number(idle, idle_causes[c], row->idle[c], row->is_known);
	cJSON_AddNumberToObject(item, "launches_per_second", row->launches_per_second);
	cJSON_AddNumberToObject(item, "allocated_bytes", (double)row->allocated_bytes);
	cJSON_AddNumberToObject(item, "lost", (double)row->lost_count);
	cJSON_AddNumberToObject(item, "cost_ratio", row->cost);
	return item;
}

static void add_lines(cJSON *root, const char *key, const struct top_figures *top,
		      const struct top_ranking *ranking, name_function *name_of, const char *filter)
{
	cJSON *array = cJSON_AddArrayToObject(root, key), *item;

	for (size_t i = 0; i < ranking->count; i++) {
		const char *name = name_of(&top->names, ranking->lines[i].row);

		if (!matches(name, filter))
			continue;
		item = cJSON_CreateObject();
		cJSON_AddStringToObject(item, "name", name);
		cJSON_AddNumberToObject(item, "gpu_ns", (double)ranking->lines[i].ns);
		cJSON_AddNumberToObject(item, "count", (double)ranking->lines[i].count);
		cJSON_AddItemToArray(array, item);
	}
}

/* Returns 0 or -ENOMEM. */
static int print_json(const struct top_figures *top, const char *filter)
{
	cJSON *root = cJSON_CreateObject(), *array = cJSON_AddArrayToObject(root, "processes");

	for (size_t i = 0; i < top->row_count; i++)
		cJSON_AddItemToArray(array, process_json(&top->rows[i]));
	cJSON_AddNumberToObject(root, "window_ns", (double)top->window_ns);
	add_lines(root, "paths", top, &top->paths, live_names_path, filter);
	add_lines(root, "kernels", top, &top->kernels, live_names_kernel, filter);
	return json_print(root);
}

#define INTERVAL_NS  UINT64_C(1000000000)
#define READ_MS	     100
#define CATCH_UP_NS  UINT64_C(5000000000) /* with the logs of processes that have run for long */
#define PENDING_NS   UINT64_C(250000000)
#define PENDING_MAX  6 /* the tracer adds its clock each second */
#define FILTER_BYTES 64
#define KEY_ESCAPE   27
#define SHOW_SCREEN  "\033[?1049h\033[?25l" /* the alternate screen, without a cursor */
#define HIDE_SCREEN  "\033[?25h\033[?1049l"

struct top_request {
	bool is_once, is_json;
	uint64_t interval_ns;
	const char *filter;
};

static const struct option_row option_rows[] = {
	{"once", .help = "Print once, as plain text, and exit", .apply = option_flag,
	 .offset = offsetof(struct top_request, is_once)},
	{"json", .help = "Print once, as JSON, and exit", .apply = option_flag,
	 .offset = offsetof(struct top_request, is_json)},
	{"interval", .value = "TIME", .expected = "a time such as 2s or 500ms",
	 .help = "Refresh each TIME (default: 1s)", .apply = option_time,
	 .offset = offsetof(struct top_request, interval_ns)},
	{"filter", .value = "TEXT", .help = "Show only paths and kernels that contain TEXT",
	 .apply = option_text, .offset = offsetof(struct top_request, filter)},
	{0},
};

static volatile sig_atomic_t is_ended, is_resized;

static void on_signal(int number)
{
	if (number == SIGWINCH)
		is_resized = 1;
	else
		is_ended = 1;
}

struct screen {
	struct termios before;
	struct top_view view;
	char filter[FILTER_BYTES];
	bool is_open;
};

static void open_screen(struct screen *screen)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH};
	const struct sigaction action = {.sa_handler = on_signal};
	struct termios raw;

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaction(signals[i], &action, NULL);
	if (tcgetattr(STDIN_FILENO, &screen->before))
		return;
	raw = screen->before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	/* Stopped, it would leave the terminal as it is now. */
	raw.c_cc[VSUSP] = _POSIX_VDISABLE;
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	screen->is_open = true;
	fputs(SHOW_SCREEN, stdout);
}

static void close_screen(struct screen *screen)
{
	fputs(HIDE_SCREEN, stdout);
	fflush(stdout);
	if (screen->is_open)
		tcsetattr(STDIN_FILENO, TCSANOW, &screen->before);
}

static void draw(struct screen *screen, const struct top_figures *top)
{
	struct winsize size = {0};

	is_resized = 0;
	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	screen->view.columns = size.ws_col ? size.ws_col : 80;
	screen->view.lines = size.ws_row ? size.ws_row : 24;
	screen->view.filter = screen->filter;
	top_text(top, &screen->view);
	fflush(stdout);
}

/* While a filter is typed. Enter keeps it, and Escape removes it. */
static void type(struct screen *screen, char key)
{
	size_t length = strlen(screen->filter);

	if (key == '\n' || key == '\r' || key == KEY_ESCAPE)
		screen->view.is_typing = false;
	if (key == KEY_ESCAPE)
		*screen->filter = '\0';
	else if ((key == '\b' || key == 0x7f) && length)
		screen->filter[length - 1] = '\0';
	else if ((unsigned char)key >= ' ' && key != 0x7f && length + 1 < FILTER_BYTES)
		screen->filter[length] = key, screen->filter[length + 1] = '\0';
}

/* Returns false to quit. */
static bool press(struct screen *screen, char key)
{
	if (screen->view.is_typing) {
		type(screen, key);
		return true;
	}
	if (key == 'p')
		screen->view.is_paused = !screen->view.is_paused;
	screen->view.is_typing = key == '/';
	if (key == '/' || key == KEY_ESCAPE)
		*screen->filter = '\0';
	return key != 'q';
}

/* Waits for keys. Returns false to quit. */
static bool read_keys(struct screen *screen, const struct top_figures *top, int timeout_ms)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	char keys[64];
	ssize_t length;

	if (poll(&input, 1, timeout_ms) <= 0)
		return true;
	length = read(STDIN_FILENO, keys, sizeof(keys));
	/* A terminal that was closed is readable, and has no keys. */
	if (length <= 0)
		return false;
	/* Arrows and the like begin with Escape. */
	if (length > 1 && keys[0] == KEY_ESCAPE)
		return true;
	for (ssize_t i = 0; i < length; i++)
		if (!press(screen, keys[i]))
			return false;
	draw(screen, top);
	return true;
}

static int refresh(struct screen *screen, struct top_figures *top, uint64_t interval_ns)
{
	uint64_t next_ns = monotonic_ns();
	int error = 0;

	while (!error && !is_ended) {
		bool has_more = top_figures_read(top);

		if (monotonic_ns() >= next_ns + (has_more ? CATCH_UP_NS : 0) &&
		    !screen->view.is_paused) {
			error = top_figures_compute(top);
			draw(screen, top);
			next_ns = monotonic_ns() + interval_ns;
		} else if (is_resized) {
			draw(screen, top);
		}
		if (!read_keys(screen, top, has_more ? 0 : READ_MS))
			break;
	}
	return error;
}

/* A log may grow faster than it can be read. */
static void catch_up(struct top_figures *top)
{
	uint64_t start_ns = monotonic_ns();

	while (monotonic_ns() - start_ns < CATCH_UP_NS && top_figures_read(top))
		;
}

static void read_for(struct top_figures *top, uint64_t time_ns)
{
	uint64_t start_ns = monotonic_ns();

	while (monotonic_ns() - start_ns < time_ns)
		if (!top_figures_read(top))
			nap_ns(READ_MS * 1000000);
	catch_up(top);
}

/* The first figures are about the time between two readings. */
static int print_once(struct top_figures *top, const struct top_request *request)
{
	const char *filter = request->filter ? request->filter : "";
	const struct top_view view = {.filter = filter};
	int error;

	catch_up(top);
	error = top_figures_compute(top);
	top->started_ns[(top->slot + 1) % LIVE_HOT_SLOTS] = monotonic_ns();
	if (error)
		return error;
	read_for(top, request->interval_ns);
	for (int i = 0; i < PENDING_MAX && top_figures_are_pending(top); i++)
		read_for(top, PENDING_NS);
	error = top_figures_compute(top);
	if (error)
		return error;
	if (request->is_json) {
		error = print_json(top, filter);
	} else if (top->row_count) {
		top_text(top, &view);
	} else {
		print_note("no running process carries xtrace");
	}
	return error;
}

static int show(struct top_figures *top, const struct top_request *request)
{
	struct screen screen = {.view = {.is_screen = true}};
	int error = top_figures_init(top);

	if (!error && (request->is_once || request->is_json)) {
		error = print_once(top, request);
	} else if (!error) {
		snprintf(screen.filter, sizeof(screen.filter), "%s",
			 request->filter ? request->filter : "");
		open_screen(&screen);
		error = refresh(&screen, top, request->interval_ns);
		close_screen(&screen);
	}
	live_processes_free(&top->processes);
	live_names_free(&top->names);
	free_all(top->rows, top->paths.lines, top->kernels.lines);
	if (error)
		print_error("cannot show processes: %s", strerror(-error));
	return error ? STATUS_FAILED : STATUS_OK;
}

/* Returns 0, or -1 after an error message. */
static int choose_process(struct top_figures *top, char **operand)
{
	struct process_list list = {0};
	int error;

	if (!access(*operand, F_OK)) {
		top->processes.directories = operand;
		top->processes.directory_count = 1;
		return 0;
	}
	top->processes.pid = (pid_t)strtol(*operand, NULL, 10);
	error = strspn(*operand, "0123456789") == strlen(*operand)
			? processes_find_pid(&list, top->processes.pid)
			: -ENOENT;
	processes_free(&list);
	if (error == -ENOENT)
		print_error("cannot watch '%s': it is no trace directory, and no process that "
			    "carries xtrace",
			    *operand);
	else if (error)
		print_error("cannot watch process %s: %s", *operand, strerror(-error));
	return error ? -1 : 0;
}

static int run_top(const struct command *command, int argc, char **argv)
{
	struct top_request request = {.interval_ns = INTERVAL_NS};
	struct top_figures top = {0};
	int status, count;

	status = command_parse(command, NULL, &request, argc, argv, 1, &count);
	if (status != COMMAND_GO_ON)
		return status;
	if (!request.is_once && !request.is_json &&
	    (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))) {
		print_error("this is no terminal; use --once or --json");
		return STATUS_FAILED;
	}
	if (count && choose_process(&top, &argv[1]))
		return STATUS_FAILED;
	return show(&top, &request);
}

static const char details[] =
	"PID names one process, DIR the trace directory of a recording; without them, all\n"
	"processes that you can inspect are shown.\n\n"
	"  BUSY %      part of the time in which the GPU worked for the process\n"
	"  MEMORY      GPU memory that was allocated while recording and not freed\n"
	"  LOST        events that are missing in the log\n"
	"  COST%       CPU time of xtrace, of one core\n"
	"  GPU idle %  part of the time in which the GPU did not work for the process, by cause\n"
	"  GPU %       part of the GPU time of all shown processes\n\n"
	"Keys: q quits, p pauses the display, / filters paths and kernels (Enter keeps the\n"
	"filter, Escape removes it).\n";

const struct command command_top = {
	.name = "top",
	.arguments = "[OPTION]... [PID|DIR]",
	.summary = "Show live what the GPUs are busy with",
	.details = details,
	.options = option_rows,
	.run = run_top,
};
