/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/sums/cpu_logs.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

/* A thread of PyTorch's autograd engine that has no nodes to run. */
#define ENGINE_WAIT "_ZN5torch8autograd10ReadyQueue3pop"

void cpu_facts_add(struct cpu_facts *facts, const struct cpu_log *log)
{
	double hz = 1e9 / (double)log->period_ns;
	bool has_perf = !strcmp(model_meta(log->model, "cpu.source"), "perf");

	facts->has_perf = (facts->has_perf || !facts->process_count) && has_perf;
	facts->estimates_kernel |= model_meta(log->model, "cpu.kernel")[0] != '\0';
	facts->hz = hz > facts->hz ? hz : facts->hz;
	facts->process_count++;
	facts->thread_count += log->model->cpu_samples.thread_count;
	if (!has_perf && !facts->why[0])
		snprintf(facts->why, sizeof(facts->why), "%s", model_meta(log->model, "cpu.why"));
	if (!facts->why_no_memory[0])
		snprintf(facts->why_no_memory, sizeof(facts->why_no_memory), "%s",
			 model_meta(log->model, "cpu.memory"));
}

/* Names without MPI_ or PMPI_ of functions that no rank leaves before all have come. */
static const char *const needs_all[] = {
	"Allreduce", "Allgather", "Allgatherv", "Reduce_scatter", "Reduce_scatter_block",
	"Alltoall",  "Alltoallv", "Alltoallw",	"Barrier",
};

static struct mpi_call mpi_call_of(const char *function, uint32_t name)
{
	struct mpi_call call = {.name = name};

	function += function[0] == 'P';
	call.is_mpi = !strncmp(function, "MPI_", strlen("MPI_"));
	for (size_t f = 0; call.is_mpi && f < sizeof(needs_all) / sizeof(needs_all[0]); f++)
		call.needs_all |= !strcmp(function + strlen("MPI_"), needs_all[f]);
	return call;
}

/* The calls that a stack with a certain name is in. */
struct address_call {
	bool is_engine_wait;
	struct mpi_call mpi;
};

void cpu_log_note_stacks(struct cpu_log *log)
{
	const struct model *model = log->model;
	struct address_call *calls = xt_calloc(log->addresses.count + 1, sizeof(*calls));

	log->waits_for_main = xt_calloc(model->stacks.count + 1, 1);
	log->mpi_calls = xt_calloc(model->stacks.count + 1, sizeof(*log->mpi_calls));
	for (uint32_t a = 0; a < log->addresses.count; a++) {
		uint32_t name = log->addresses.list[a].name;
		const char *function = names_text(&model->names, name, NULL);

		calls[a].is_engine_wait = !strncmp(function, ENGINE_WAIT, strlen(ENGINE_WAIT));
		calls[a].mpi = mpi_call_of(function, name);
	}
	for (size_t s = 1; s < model->stacks.count; s++) {
		const struct stack *stack = &model->stacks.rows[s];

		for (uint32_t f = 0; f < stack->frame_count; f++) {
			const struct address_call *call =
				&calls[log->addresses.by_frame[stack->first_frame + f]];

			log->waits_for_main[s] |= call->is_engine_wait;
			if (!log->mpi_calls[s].is_mpi)
				log->mpi_calls[s] = call->mpi;
		}
		log->has_mpi |= log->mpi_calls[s].is_mpi;
	}
	free(calls);
}

bool cpu_log_waits_for(const struct cpu_log *log, const struct cpu_sample *sample,
		       uint32_t *pid_out, uint32_t *tid_out)
{
	*pid_out = sample->wait_pid;
	*tid_out = sample->wait_tid;
	if (*tid_out || sample->stack >= log->model->stacks.count ||
	    !log->waits_for_main[sample->stack] || sample->tid == log->input->header.pid)
		return *tid_out != 0;
	*pid_out = *tid_out = log->input->header.pid;
	return true;
}

void cpu_logs_free(struct cpu_logs *logs)
{
	for (size_t l = 0; l < logs->count; l++) {
		struct cpu_log *log = &logs->list[l];

		frames_free(&log->frames);
		addresses_free(&log->addresses);
		demangle_cache_free(&log->names);
		free_all(log->waits_for_main, log->mpi_calls);
		model_free(log->model);
	}
	free(logs->list);
	*logs = (struct cpu_logs){0};
}

/* The row that represents the time, if there is one. */
static bool find_row(const struct cpu_log *log, const struct cpu_thread *thread, uint64_t time_ns,
		     size_t *row_out)
{
	const struct cpu_samples *samples = &log->model->cpu_samples;
	size_t row = cpu_samples_covering(samples, thread, time_ns);

	*row_out = row;
	return row < thread->end && samples->list[row].cover.from_ns <= time_ns;
}

struct cpu_moment cpu_logs_find(const struct cpu_logs *logs, const struct input *near, uint32_t pid,
				uint32_t tid, uint64_t time_ns)
{
	for (size_t l = 0; l < logs->count; l++) {
		const struct cpu_log *log = &logs->list[l];
		struct cpu_moment moment = {.log = log};

		if (log->input->header.pid != pid || !input_shares_pids(log->input, near))
			continue;
		moment.thread = cpu_samples_of(&log->model->cpu_samples, tid);
		if (moment.thread && find_row(log, moment.thread, time_ns, &moment.row))
			return moment;
	}
	return (struct cpu_moment){0};
}
