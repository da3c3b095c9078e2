/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/ranks/mpi_waits.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "log/base/number_format.h"
#include "merge/ranks/wait_cause.h"
#include "merge/sums/cpu_logs.h"
#include "merge/sums/run.h"

#define NOTABLE_SHARE 0.02 /* of the window: less has no verdict */
#define LATE_PART     0.8  /* a late rank has less than this part of the time of any other */
#define PERIODS_MIN   4	   /* of samples: less than that may be chance */
#define FUNCTIONS_MAX 16
#define COVERED_MIN   0.7 /* of the window, in which each rank has a sample and a CPU */
#define NOTABLE_CAUSE 0.2 /* of the cost: a line with less is not named */

/* Visits what a thread of a log does in the window. */
typedef void visit(void *context, const struct cpu_log *log, const struct cpu_sample *sample,
		   uint64_t ns);

static int64_t realtime_ns(const struct cpu_log *log, uint64_t time_ns)
{
	return (int64_t)(time_ns - log->model->times.start_ns +
			 log->model->times.start_realtime_ns);
}

static struct mpi_call call_of(const struct cpu_log *log, const struct cpu_sample *sample)
{
	return sample->stack < log->model->stacks.count ? log->mpi_calls[sample->stack]
							: (struct mpi_call){0};
}

/* Returns whether a sample is in a collective that no rank leaves before all have come. */
static bool is_in_collective(const struct cpu_log *log, const struct cpu_sample *sample)
{
	return call_of(log, sample).needs_all;
}

/* Returns the thread with most time in collectives, or else the main thread; NULL: neither. */
static const struct cpu_thread *find_thread(const struct cpu_log *log)
{
	const struct cpu_samples *samples = &log->model->cpu_samples;
	const struct cpu_thread *best = NULL;
	uint64_t best_ns = 0;

	for (size_t t = 0; t < samples->thread_count; t++) {
		const struct cpu_thread *thread = &samples->threads[t];
		uint64_t ns = 0;

		for (size_t s = thread->first; s < thread->end; s++)
			ns += is_in_collective(log, &samples->list[s]) ? samples->list[s].weight_ns
								       : 0;
		if (ns > best_ns || (!best && thread->tid == log->input->header.pid)) {
			best = thread;
			best_ns = ns;
		}
	}
	return best;
}

/* Widens the window by a log: from the end of its first wait until that of its last. */
static void widen(struct mpi_waits *waits, const struct cpu_log *log)
{
	const struct cpu_samples *samples = &log->model->cpu_samples;

	for (size_t t = 0; t < samples->thread_count; t++) {
		int64_t thread_first_ns = INT64_MAX;
		bool is_first = true, was_in = false;

		for (size_t s = samples->threads[t].first; s < samples->threads[t].end; s++) {
			bool is_in = is_in_collective(log, &samples->list[s]);
			int64_t end_ns = realtime_ns(log, samples->list[s].cover.until_ns);

			if (is_in && end_ns > waits->until_ns)
				waits->until_ns = end_ns;
			is_first &= is_in || !was_in;
			was_in |= is_in;
			if (is_in && is_first)
				thread_first_ns = end_ns;
		}
		waits->from_ns = smaller(waits->from_ns, thread_first_ns);
	}
}

/* Returns the part of a sample's time that is in the window. */
static uint64_t within(const struct mpi_waits *waits, const struct cpu_log *log,
		       const struct cpu_sample *sample)
{
	int64_t from_ns = realtime_ns(log, sample->cover.from_ns);
	int64_t until_ns = realtime_ns(log, sample->cover.until_ns);
	int64_t length_ns = until_ns - from_ns;

	if (length_ns <= 0)
		return from_ns >= waits->from_ns && from_ns < waits->until_ns ? sample->weight_ns
									      : 0;
	from_ns = from_ns > waits->from_ns ? from_ns : waits->from_ns;
	until_ns = until_ns < waits->until_ns ? until_ns : waits->until_ns;
	return until_ns > from_ns ? (uint64_t)((double)sample->weight_ns *
					       (double)(until_ns - from_ns) / (double)length_ns)
				  : 0;
}

static void visit_samples(const struct mpi_waits *waits, const struct cpu_log *log, visit *visitor,
			  void *context)
{
	const struct cpu_thread *thread = find_thread(log);

	for (size_t s = thread ? thread->first : 0; thread && s < thread->end; s++)
		visitor(context, log, &log->model->cpu_samples.list[s],
			within(waits, log, &log->model->cpu_samples.list[s]));
}

/* The time of a rank by function. */
struct function_sums {
	struct mpi_rank *rank;
	uint32_t names[FUNCTIONS_MAX];
	uint64_t ns[FUNCTIONS_MAX];
	size_t count;
};

static void mpi_waits_add_call(void *context, const struct cpu_log *log,
			       const struct cpu_sample *sample, uint64_t ns)
{
	struct function_sums *sums = context;
	uint32_t name = call_of(log, sample).name;
	size_t f = 0;

	if (sample->state != XT_CPU_READY)
		sums->rank->covered_ns += ns;
	if (!ns || !is_in_collective(log, sample))
		return;
	sums->rank->ns += ns;
	while (f < sums->count && sums->names[f] != name)
		f++;
	if (f == FUNCTIONS_MAX)
		return;
	if (f == sums->count)
		sums->names[sums->count++] = name;
	sums->ns[f] += ns;
	if (sums->ns[f] > sums->rank->most_ns) {
		sums->rank->most_ns = sums->ns[f];
		/* The profiling interface has the same functions with a P. */
		sums->rank->function = names_text(&log->model->names, name, NULL);
		sums->rank->function += sums->rank->function[0] == 'P';
	}
}

static const struct cpu_log *log_of(const struct run *run, const struct mpi_rank *rank)
{
	return &run->cpu->logs->list[rank->cpu_log];
}

/* Adds the ranks of the job: processes with a rank, or that call MPI. */
static void add_ranks(struct mpi_waits *waits, const struct run *run)
{
	waits->ranks = xt_calloc(run->cpu->logs->count + 1, sizeof(*waits->ranks));
	for (size_t l = 0; l < run->cpu->logs->count; l++) {
		const struct cpu_log *log = &run->cpu->logs->list[l];
		size_t first = log->input->first;

		if (first >= run->inputs->count ||
		    (!log->has_mpi && run->inputs->logs[first].rank == RANK_UNKNOWN))
			continue;
		waits->ranks[waits->rank_count++] = (struct mpi_rank){.log = first, .cpu_log = l};
		widen(waits, log);
		waits->period_ns = larger(waits->period_ns, log->period_ns);
	}
}

/* Returns whether the samples show what all ranks did, with a free CPU. */
static bool is_covered(const struct mpi_waits *waits)
{
	double window_ns = (double)(waits->until_ns - waits->from_ns);

	for (size_t r = 0; r < waits->rank_count; r++)
		if ((double)waits->ranks[r].covered_ns < COVERED_MIN * window_ns)
			return false;
	return true;
}

static bool has_rank(const struct mpi_waits *waits, const struct run *run, uint32_t rank)
{
	for (size_t r = 0; r < waits->rank_count; r++)
		if (run->inputs->logs[waits->ranks[r].log].rank == rank)
			return true;
	return false;
}

/* Returns whether some rank of the job is known to have no CPU samples. */
static bool lacks_a_rank(const struct mpi_waits *waits, const struct run *run)
{
	const struct inputs *inputs = run->inputs;
	uint32_t count = 0;

	for (size_t l = 0; l < inputs->count; l++) {
		uint32_t rank = inputs->logs[l].rank;

		if (rank == RANK_UNKNOWN)
			continue;
		if (!has_rank(waits, run, rank))
			return true;
		count = rank < UINT16_MAX && rank >= count ? rank + 1 : count;
	}
	return count > waits->rank_count;
}

/* Finds the rank with clearly the least time, and what the job would gain without its delay. */
static void find_late(struct mpi_waits *waits, const struct run *run)
{
	uint64_t least_ns = UINT64_MAX, second_ns = UINT64_MAX;

	waits->late = SIZE_MAX;
	for (size_t r = 0; r < waits->rank_count; r++) {
		uint64_t ns = waits->ranks[r].ns;

		if (ns < least_ns) {
			second_ns = least_ns;
			least_ns = ns;
			waits->late = r;
		} else if (ns < second_ns) {
			second_ns = ns;
		}
	}
	/* With several late ranks, the job gains only what the next one leaves. */
	waits->cost_ns = second_ns - least_ns;
	waits->is_covered = !lacks_a_rank(waits, run) && is_covered(waits);
	if (!waits->is_covered || (double)least_ns > LATE_PART * (double)second_ns ||
	    waits->cost_ns < PERIODS_MIN * waits->period_ns ||
	    (double)waits->cost_ns < NOTABLE_SHARE * (double)(waits->until_ns - waits->from_ns)) {
		waits->late = SIZE_MAX;
		waits->cost_ns = 0;
	}
}

/* Time of the late rank, and of the others, by innermost frame of the user's code. */
struct frame_sums {
	const struct run *run;
	double *ns; /* by name in the paths: time of the late rank less the mean of the others */
	uint32_t *nodes; /* by name: a path of the late rank */
	double part;	 /* weight of the log that is added: 1, or -1/others */
};

static void add_frame(void *context, const struct cpu_log *log, const struct cpu_sample *sample,
		      uint64_t ns)
{
	struct frame_sums *sums = context;
	uint32_t node = sample->stack && frames_has_stack(&log->frames, sample->stack)
				? log->frames.nodes[sample->stack]
				: PATH_ROOT;
	uint32_t name;

	/* A rank that waits in other functions of MPI does nothing there that makes it late. */
	if (!ns || node == PATH_ROOT || call_of(log, sample).is_mpi)
		return;
	name = wait_cause_frame(&sums->run->paths, node);
	sums->ns[name] += sums->part * (double)ns;
	if (sums->part > 0)
		sums->nodes[name] = node;
}

/* Finds the line that the late rank runs longer than the others. */
static void find_cause(struct mpi_waits *waits, const struct run *run)
{
	size_t count = run->paths.names.count + 1;
	struct frame_sums sums = {.run = run,
				  .ns = xt_calloc(count, sizeof(*sums.ns)),
				  .nodes = xt_calloc(count, sizeof(*sums.nodes))};
	double most_ns = NOTABLE_CAUSE * (double)waits->cost_ns;

	for (size_t r = 0; r < waits->rank_count; r++) {
		sums.part = r == waits->late ? 1 : -1 / (double)(waits->rank_count - 1);
		visit_samples(waits, log_of(run, &waits->ranks[r]), add_frame, &sums);
	}
	waits->node = PATH_ROOT;
	for (size_t n = 0; n < count; n++) {
		if (sums.ns[n] <= most_ns)
			continue;
		most_ns = sums.ns[n];
		waits->node = sums.nodes[n];
		waits->node_ns = (uint64_t)most_ns;
	}
	free_all(sums.ns, sums.nodes);
}

void mpi_waits_find(struct mpi_waits *waits, const struct run *run)
{
	waits->from_ns = INT64_MAX;
	waits->until_ns = INT64_MIN;
	waits->late = SIZE_MAX;
	if (run->needs.ranks)
		add_ranks(waits, run);
	if (waits->rank_count < 2 || waits->until_ns <= waits->from_ns) {
		waits->rank_count = 0;
		return;
	}
	for (size_t r = 0; r < waits->rank_count; r++)
		visit_samples(waits, log_of(run, &waits->ranks[r]), mpi_waits_add_call,
			      &(struct function_sums){.rank = &waits->ranks[r]});
	find_late(waits, run);
	if (waits->late != SIZE_MAX)
		find_cause(waits, run);
}

void mpi_waits_free(struct mpi_waits *waits)
{
	free(waits->ranks);
	*waits = (struct mpi_waits){0};
}

char *mpi_waits_text(const struct run *run, const struct mpi_waits *waits)
{
	double window_ns = (double)(waits->until_ns - waits->from_ns);
	char time[TIME_BYTES], *where, *text;

	format_time(time, waits->period_ns);
	if (!waits->is_covered)
		return xt_strdup(
			"It is not known which rank is late in MPI: CPU samples are missing, "
			"or no CPU was free, for too long.");
	if (waits->late == SIZE_MAX)
		return xt_asprintf("No rank has clearly less time in MPI than the others, by CPU "
				   "samples every %s. Late ranks that change are not seen.",
				   time);
	where = wait_cause_where(&run->paths, waits->node);
	text = xt_asprintf("%s costs the job %.1f %%: the other ranks wait for it in MPI, by "
			   "CPU samples every %s.%s%s%s",
			   run->labels[waits->ranks[waits->late].log],
			   100 * (double)waits->cost_ns / window_ns, time,
			   where[0] ? " Main cause: " : "", where, where[0] ? "." : "");
	free(where);
	return text;
}
