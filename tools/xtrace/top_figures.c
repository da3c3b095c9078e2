/* SPDX-License-Identifier: Apache-2.0 */
#include "top_figures.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "log/base/grow.h"
#include "log/base/monotonic.h"

int top_figures_init(struct top_figures *top)
{
	top->processes.names = &top->names;
	for (unsigned s = 0; s < LIVE_HOT_SLOTS; s++)
		top->started_ns[s] = monotonic_ns();
	return live_names_init(&top->names);
}

void top_figures_free(struct top_figures *top)
{
	live_processes_free(&top->processes);
	live_names_free(&top->names);
	free(top->rows);
	free(top->paths);
	free(top->kernels);
}

static struct top_snapshot snapshot_of(struct top_process *row)
{
	const struct live_totals *totals = live_log_totals(row->live->log);
	struct top_snapshot snapshot = {
		.time_ns = monotonic_ns(),
		.launch_count = totals->launch_count,
		.cost_ns = live_totals_account(totals, "callbacks.ns") +
			   live_totals_account(totals, "writer.cpu_ns") +
			   live_totals_account(totals, "flusher.cpu_ns"),
	};

	row->gpu_count = 0;
	row->allocated_bytes = 0;
	row->lost_count = live_totals_lost(totals, false) + live_totals_lost(totals, true);
	if (row->lost_count < row->live->lost_count)
		row->lost_count = row->live->lost_count;
	for (unsigned g = 0; g < LIVE_GPUS; g++) {
		if (!totals->gpus[g])
			continue;
		snapshot.busy_ns +=
			live_idle_busy_ns(&totals->gpus[g]->idle, &totals->gpus[g]->busy);
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

bool top_figures_are_pending(const struct top_figures *top)
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
	struct live_hot *hot = live_log_hot(live->log);

	for (unsigned s = 0; hot && s < LIVE_HOT_SLOTS; s++)
		live_hot_advance(hot);
}

static int find_row(struct top_figures *top, const struct live_process *live,
		    struct top_process **row_out)
{
	uint64_t id = live_log_header(live->log)->log_id;

	for (size_t i = 0; i < top->row_count; i++)
		if (top->rows[i].log_id == id) {
			*row_out = &top->rows[i];
			return 0;
		}
	if (grow(&top->rows, &top->row_capacity, top->row_count + 1, sizeof(*top->rows)))
		return -ENOMEM;
	*row_out = &top->rows[top->row_count++];
	**row_out = (struct top_process){.log_id = id};
	forget_past(live);
	return 0;
}

static const struct live_process *find_live(const struct top_figures *top, uint64_t log_id)
{
	for (size_t i = 0; i < top->processes.count; i++) {
		const struct live_process *live = &top->processes.rows[i];

		if (live_log_is_current(live->log) && live_log_header(live->log)->log_id == log_id)
			return live;
	}
	return NULL;
}

static void remove_gone(struct top_figures *top)
{
	size_t kept = 0;

	for (size_t i = 0; i < top->row_count; i++)
		if (top->rows[i].live)
			top->rows[kept++] = top->rows[i];
	top->row_count = kept;
}

static int compute_processes(struct top_figures *top)
{
	int error = 0;

	for (size_t i = 0; i < top->row_count; i++)
		top->rows[i].live = NULL;
	for (size_t i = 0; i < top->processes.count && !error; i++) {
		const struct live_process *live = &top->processes.rows[i];
		struct top_process *row;

		if (!live_log_is_current(live->log))
			continue;
		error = find_row(top, live, &row);
		if (error)
			break;
		row->live = live;
		compute_process(row);
	}
	remove_gone(top);
	compute_idle(top);
	return error;
}

static int compare_lines(const void *a, const void *b)
{
	const struct top_line *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return x->row < y->row ? -1 : x->row > y->row;
}

/* Adds the window of a process to the lines, which are in the order of rows. */
static int add_ranking(struct top_line **lines, size_t *count, size_t *capacity,
		       const struct live_ranking *ranking)
{
	if (grow(lines, capacity, ranking->count, sizeof(**lines)))
		return -ENOMEM;
	for (; *count < ranking->count; ++*count)
		(*lines)[*count] = (struct top_line){.row = *count};
	for (size_t i = 0; i < ranking->count; i++) {
		(*lines)[i].ns += live_hot_recent_ns(&ranking->rows[i]);
		(*lines)[i].count += live_hot_recent_count(&ranking->rows[i]);
	}
	return 0;
}

static void sort(struct top_line *lines, size_t *count)
{
	size_t kept = 0;

	for (size_t i = 0; i < *count; i++)
		if (lines[i].count)
			lines[kept++] = lines[i];
	*count = kept;
	if (kept)
		qsort(lines, kept, sizeof(*lines), compare_lines);
}

static int compute_lines(struct top_figures *top)
{
	int error = 0;

	top->path_count = top->kernel_count = 0;
	for (size_t i = 0; i < top->row_count && !error; i++) {
		struct live_hot *hot = live_log_hot(top->rows[i].live->log);

		error = add_ranking(&top->paths, &top->path_count, &top->path_capacity,
				    &hot->paths);
		if (!error)
			error = add_ranking(&top->kernels, &top->kernel_count,
					    &top->kernel_capacity, &hot->kernels);
		live_hot_advance(hot);
	}
	sort(top->paths, &top->path_count);
	sort(top->kernels, &top->kernel_count);
	top->window_ns = monotonic_ns() - top->started_ns[(top->slot + 1) % LIVE_HOT_SLOTS];
	top->slot = (top->slot + 1) % LIVE_HOT_SLOTS;
	top->started_ns[top->slot] = monotonic_ns();
	return error;
}

int top_figures_compute(struct top_figures *top)
{
	int error = compute_processes(top);

	return error ? error : compute_lines(top);
}

bool top_figures_read(struct top_figures *top)
{
	bool has_more = live_processes_update(&top->processes);

	/* The update may have moved or removed them. */
	for (size_t i = 0; i < top->row_count; i++)
		top->rows[i].live = find_live(top, top->rows[i].log_id);
	remove_gone(top);
	return has_more;
}
