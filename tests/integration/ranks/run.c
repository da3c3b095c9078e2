/* SPDX-License-Identifier: Apache-2.0 */
#include "run.h"

#include <stdlib.h>

#define START_LATENCY_NS 3000	/* from the call to the kernel */
#define STREAM_GAP_NS	 1000	/* between kernels of a stream */
#define EVENT_NS	 1500	/* until another stream sees the end */
#define END_SPREAD_NS	 2000.0 /* between the ranks of a collective */
#define GRAPH_GAP_NS	 400

struct run {
	struct job *job;
	struct rank_log *logs;
	struct truth *truth;
	struct rank_state *ranks;
	struct arrival *arrivals; /* of the current collective */
};

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* NEVER stays NEVER. */
static uint64_t after(uint64_t time_ns, uint64_t delay_ns)
{
	return time_ns == NEVER ? NEVER : time_ns + delay_ns;
}

/* About 1 % of the mean, and a little more. */
static uint64_t jittered(struct rank_state *rank, uint64_t mean_ns)
{
	double ns = (double)mean_ns * (1 + 0.01 * normal(&rank->random)) +
		    uniform(&rank->random, 0, 300);

	return ns > 0 ? (uint64_t)ns : 0;
}

static uint64_t varied(struct rank_state *rank, uint64_t mean_ns, double share)
{
	return (uint64_t)((double)mean_ns * (1 + share * uniform(&rank->random, -1, 1)));
}

/* The call of the current operation, and the start of its work if the other streams allow it. */
static void launch_op(struct run *run, uint32_t r, uint32_t step, uint32_t o)
{
	const struct op *op = &run->job->ops[o];
	struct rank_state *rank = &run->ranks[r];
	struct launch *l = &rank->launch;
	uint64_t free_ns = rank->free_ns[op->stream];
	bool is_replayed = rank->graph_ns && op->kind != OP_COPY;
	uint64_t launch_ns = job_launch_ns(run->job, r);

	*l = (struct launch){.op = o, .is_fault = job_is_fault(run->job, r, step, o)};
	l->is_replayed = is_replayed;
	l->correlation = is_replayed ? rank->correlation : ++rank->correlation;
	if (!is_replayed)
		rank->cpu_ns += job_pause_ns(run->job, r, step, o) +
				varied(rank, launch_ns, run->job->launch_jitter);
	l->enter_ns = is_replayed ? rank->graph_ns : rank->cpu_ns;
	l->exit_ns = l->enter_ns + varied(rank, launch_ns, run->job->launch_jitter);
	if (!is_replayed)
		rank->cpu_ns = l->exit_ns + 500;
	l->start_ns = later(l->enter_ns + varied(rank, START_LATENCY_NS, 0.2),
			    after(free_ns, is_replayed ? GRAPH_GAP_NS : STREAM_GAP_NS));
	if (op->stream != COMPUTE)
		l->start_ns = later(l->start_ns, after(rank->free_ns[COMPUTE], EVENT_NS));
	rank->has_launched = true;
	rank_log_launch(&run->logs[r], l);
}

static void finish(struct run *run, uint32_t r, uint64_t end_ns)
{
	struct rank_state *rank = &run->ranks[r];

	rank->launch.end_ns = end_ns;
	rank->free_ns[run->job->ops[rank->launch.op].stream] = end_ns;
	if (end_ns != NEVER)
		rank_log_work(&run->logs[r], &rank->launch);
	else
		run->logs[r].unfinished_count++;
}

/*
 * The end of a collective on one rank. In a broadcast every rank needs the root only; in a
 * reduction only the root needs the others. The root is the first rank.
 */
static uint64_t end_of(const struct run *run, enum collective collective, uint64_t last_ns,
		       uint64_t root_ns, uint32_t index, uint64_t transfer_ns)
{
	uint64_t start_ns = run->arrivals[index].start_ns;

	if (collective == BROADCAST)
		return after(later(start_ns, root_ns), transfer_ns);
	if (collective == REDUCE && index)
		return after(start_ns, transfer_ns);
	return after(last_ns, transfer_ns);
}

static void run_communicator(struct run *run, struct communicator *c, uint32_t step, uint32_t o)
{
	const struct op *op = &run->job->ops[o];
	uint64_t last_ns = 0, transfer_ns = job_transfer_ns(run->job, c, op, step);

	transfer_ns = jittered(&run->ranks[c->first], transfer_ns);
	for (uint32_t i = 0; i < c->count; i++) {
		const struct rank_state *rank = &run->ranks[c->first + i * c->stride];

		run->arrivals[i] = (struct arrival){
			.has_launched = rank->has_launched,
			.is_fault = rank->has_launched && rank->launch.is_fault,
			.enter_ns = rank->launch.enter_ns,
			.start_ns = rank->has_launched ? rank->launch.start_ns : NEVER,
		};
		last_ns = later(last_ns, run->arrivals[i].start_ns);
	}
	for (uint32_t i = 0; i < c->count && last_ns != NEVER; i++) {
		struct rank_state *rank = &run->ranks[c->first + i * c->stride];

		rank->waits_until_ns = later(rank->waits_until_ns, last_ns);
	}
	for (uint32_t i = 0; i < c->count; i++) {
		struct arrival *arrival = &run->arrivals[i];
		uint32_t r = c->first + i * c->stride;

		arrival->end_ns = end_of(run, op->collective, last_ns, run->arrivals[0].start_ns, i,
					 transfer_ns);
		arrival->end_ns = after(arrival->end_ns,
					(uint64_t)uniform(&run->ranks[r].random, 0, END_SPREAD_NS));
		if (arrival->has_launched)
			finish(run, r, arrival->end_ns);
	}
	if (run->truth)
		truth_add(run->truth, c, step, o, run->arrivals);
	c->next_index++;
}

static void run_collective(struct run *run, uint32_t step, uint32_t o)
{
	const struct job *job = run->job;
	enum group group = job->ops[o].group;
	uint32_t first = job->first_communicator[group];
	uint32_t end = group == WORLD	 ? 1
		       : group == TENSOR ? job->first_communicator[DATA]
					 : job->communicator_count;

	for (uint32_t r = 0; r < job->rank_count; r++) {
		struct rank_state *rank = &run->ranks[r];

		rank->has_launched = false;
		/* The rank is busy with something else for ever. */
		if (job->fault == FAULT_HANG && job_is_fault(job, r, step, o))
			rank->is_stopped = true;
		if (!rank->is_stopped)
			launch_op(run, r, step, o);
	}
	for (uint32_t c = first; c < end; c++)
		run_communicator(run, &job->communicators[c], step, o);
}

/* Ends the launch of a graph that keeps the CPU until it has run. */
static void end_graph_launch(struct run *run, uint32_t r)
{
	struct rank_state *rank = &run->ranks[r];

	if (!rank->graph_correlation || rank->free_ns[COMPUTE] == NEVER)
		return;
	rank->cpu_ns = later(rank->cpu_ns, rank->free_ns[COMPUTE]);
	rank_log_call(&run->logs[r], RANK_GRAPH_LAUNCH, PLACE_LOSS, rank->graph_correlation,
		      rank->graph_ns, rank->cpu_ns);
	rank->graph_correlation = 0;
}

/* The CPU waits for the compute stream. If that never ends, the call has no row. */
static void wait_for_gpu(struct run *run, uint32_t r, enum place place)
{
	struct rank_state *rank = &run->ranks[r];
	uint64_t enter_ns;

	end_graph_launch(run, r);
	enter_ns = rank->cpu_ns;
	rank->is_stopped |= rank->free_ns[COMPUTE] == NEVER;
	if (rank->is_stopped)
		return;
	rank->cpu_ns = later(enter_ns, rank->free_ns[COMPUTE]) + 4000;
	rank_log_call(&run->logs[r], RANK_WAIT, place, ++rank->correlation, enter_ns, rank->cpu_ns);
	rank->cpu_ns += varied(rank, 5000, 0.3);
	rank->graph_ns = 0;
}

/*
 * The time of a kernel. A collective that waits takes a part of the GPU until the last rank comes.
 */
static uint64_t kernel_ns(const struct run *run, const struct rank_state *rank, uint64_t mean_ns)
{
	uint64_t start_ns = rank->launch.start_ns;
	double factor = run->job->wait_factor, ns = (double)mean_ns, slow_ns;

	if (start_ns == NEVER || start_ns >= rank->waits_until_ns)
		return mean_ns;
	slow_ns = (double)(rank->waits_until_ns - start_ns);
	return (uint64_t)(ns * factor <= slow_ns ? ns * factor : slow_ns + ns - slow_ns / factor);
}

static void run_op(struct run *run, uint32_t r, uint32_t step, uint32_t o)
{
	const struct op *op = &run->job->ops[o];
	struct rank_state *rank = &run->ranks[r];
	uint64_t extra_ns = job_extra_ns(run->job, r, step, o);
	double factor =
		op->kind == OP_KERNEL && r != run->job->guilty ? run->job->others_factor : 1;
	uint64_t mean_ns = (uint64_t)(factor * (double)op->mean_ns);
	uint32_t parts = op->kind == OP_KERNEL ? run->job->kernel_parts : 1;

	switch (op->kind) {
	case OP_LOAD:
		rank->cpu_ns += varied(rank, op->mean_ns, 0.05) + extra_ns;
		break;
	case OP_COPY:
	case OP_KERNEL:
		for (uint32_t part = 0; part < parts; part++) {
			launch_op(run, r, step, o);
			finish(run, r,
			       after(rank->launch.start_ns,
				     kernel_ns(run, rank,
					       jittered(rank, (mean_ns + extra_ns) / parts))));
		}
		break;
	case OP_JOIN:
		rank->free_ns[COMPUTE] =
			later(rank->free_ns[COMPUTE], after(rank->free_ns[op->stream], EVENT_NS));
		break;
	case OP_SYNC:
		wait_for_gpu(run, r, op->place);
		break;
	default:
		break;
	}
}

/* The graph has all operations after the copy. */
static void launch_graph(struct run *run, uint32_t r)
{
	struct rank_state *rank = &run->ranks[r];

	rank->graph_ns = rank->cpu_ns += varied(rank, run->job->launch_ns, run->job->launch_jitter);
	rank->cpu_ns += varied(rank, run->job->graph_launches * run->job->launch_ns,
			       run->job->launch_jitter);
	rank->graph_correlation = ++rank->correlation;
	if (run->job->has_blocking_graphs)
		return;
	rank_log_call(&run->logs[r], RANK_GRAPH_LAUNCH, PLACE_LOSS, rank->graph_correlation,
		      rank->graph_ns, rank->cpu_ns);
	rank->graph_correlation = 0;
}

static void run_step(struct run *run, uint32_t step)
{
	const struct job *job = run->job;

	for (uint32_t o = INIT_OP + 1; o < job->op_count; o++) {
		if (job->ops[o].every_steps && step % job->ops[o].every_steps)
			continue;
		if (job->ops[o].kind == OP_COLLECTIVE) {
			run_collective(run, step, o);
			continue;
		}
		for (uint32_t r = 0; r < job->rank_count; r++) {
			if (!run->ranks[r].is_stopped)
				run_op(run, r, step, o);
			if (job->has_graphs && job->ops[o].kind == OP_COPY)
				launch_graph(run, r);
		}
	}
	for (uint32_t r = 0; r < job->rank_count; r++)
		end_graph_launch(run, r);
}

/* The launches that a stream capture sees: their work does not run. */
static void capture(struct run *run, uint32_t r)
{
	struct rank_state *rank = &run->ranks[r];

	for (uint32_t o = INIT_OP + 1; o < run->job->op_count; o++) {
		const struct op *op = &run->job->ops[o];
		struct launch captured = {.op = o, .enter_ns = rank->cpu_ns + 2000};

		if (op->kind != OP_KERNEL && op->kind != OP_COLLECTIVE)
			continue;
		captured.exit_ns = rank->cpu_ns = captured.enter_ns + varied(rank, 3000, 0.2);
		captured.correlation = ++rank->correlation;
		rank_log_capture(&run->logs[r], &captured);
	}
}

/* Ranks start nearly together, create communicators, and receive the weights of rank 0. */
static void start_ranks(struct run *run)
{
	struct job *job = run->job;
	enum group groups = job->layout == LAYOUT_TENSOR ? GROUP_COUNT : 1;

	for (uint32_t r = 0; r < job->rank_count; r++) {
		struct rank_state *rank = &run->ranks[r];

		rank->random = job->seed << 20 ^ r << 8 ^ job->random;
		rank->cpu_ns =
			1000000 + (uint64_t)uniform(&rank->random, 0, 0.02 * (double)job->step_ns);
		for (enum group g = WORLD; g < groups; g++) {
			rank_log_init(&run->logs[r], g, rank->cpu_ns, rank->cpu_ns + 2000000);
			rank->cpu_ns += 2100000;
		}
		if (job->has_graphs)
			capture(run, r);
		/* A call that waits, in a rank that may never have work. */
		if (job->fault == FAULT_HANG && job->fault_step == INIT_STEP)
			wait_for_gpu(run, r, PLACE_INIT);
	}
	run_collective(run, INIT_STEP, INIT_OP);
	for (uint32_t r = 0; r < job->rank_count; r++) {
		run->ranks[r].free_ns[COMPUTE] = run->ranks[r].free_ns[COMMUNICATION];
		wait_for_gpu(run, r, PLACE_INIT);
	}
}

uint64_t run_job(struct job *job, struct rank_log *logs, struct truth *truth)
{
	struct run run = {.job = job, .logs = logs, .truth = truth};
	uint64_t end_ns = 0;

	run.ranks = calloc(job->rank_count, sizeof(*run.ranks));
	run.arrivals = calloc(job->rank_count, sizeof(*run.arrivals));
	for (uint32_t c = 0; c < job->communicator_count; c++)
		job->communicators[c].next_index = 0;
	if (run.ranks && run.arrivals) {
		start_ranks(&run);
		for (uint32_t s = 0; s < job->step_count; s++)
			run_step(&run, s);
		for (uint32_t r = 0; r < job->rank_count; r++)
			end_ns = later(end_ns, run.ranks[r].cpu_ns);
	}
	free(run.arrivals);
	free(run.ranks);
	return end_ns;
}
