/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000.0

static const struct scenario {
	const char *name;
	enum fault fault;
	bool has_no_payloads, has_graphs;
	enum layout last_layout; /* of those that seeds choose from */
	bool is_launch_bound;	 /* the CPU needs longer than the GPU */
	bool is_at_start;	 /* the fault comes before the first step */
	bool is_contended;	 /* kernels are slower beside a collective that waits */
	bool has_blocking_graphs;
	bool is_unequal; /* the other ranks have more work than the late one */
} scenarios[] = {
	{"none", FAULT_NONE, .last_layout = LAYOUT_TENSOR},
	{"slow_loader", FAULT_LOADER, .last_layout = LAYOUT_TENSOR},
	{"slow_kernel", FAULT_KERNEL, .last_layout = LAYOUT_TENSOR},
	{"gc_pause", FAULT_PAUSE, .last_layout = LAYOUT_TENSOR},
	{"slow_link", FAULT_LINK, .last_layout = LAYOUT_TENSOR},
	{"moving", FAULT_MOVING, .last_layout = LAYOUT_TENSOR},
	{"mismatch_operation", FAULT_OPERATION, .last_layout = LAYOUT_TENSOR},
	{"mismatch_bytes", FAULT_BYTES, .last_layout = LAYOUT_TENSOR},
	{"hang", FAULT_HANG, .last_layout = LAYOUT_TENSOR},
	{"missing", FAULT_MISSING, .last_layout = LAYOUT_TENSOR},
	{"duplicated", FAULT_DUPLICATE, .last_layout = LAYOUT_TENSOR},
	{"damaged", FAULT_DAMAGED, .last_layout = LAYOUT_TENSOR},
	{"two_jobs", FAULT_NONE, .last_layout = LAYOUT_TENSOR},
	{"late_start", FAULT_LATE_LOG, .last_layout = LAYOUT_TENSOR},
	/* Without communicators only collectives of all ranks can be matched. */
	{"no_payload", FAULT_LOADER, .has_no_payloads = true, .last_layout = LAYOUT_FSDP},
	{"graphs", FAULT_LOADER, .has_graphs = true, .last_layout = LAYOUT_FSDP},
	{"slow_cpu", FAULT_CPU, .last_layout = LAYOUT_TENSOR, .is_launch_bound = true},
	{"hang_at_start", FAULT_HANG, .last_layout = LAYOUT_TENSOR, .is_at_start = true},
	{"launch_bound", FAULT_NONE, .last_layout = LAYOUT_TENSOR, .is_launch_bound = true},
	{"contended", FAULT_NONE, .last_layout = LAYOUT_TENSOR, .is_contended = true},
	{"contended_loader", FAULT_LOADER, .last_layout = LAYOUT_TENSOR, .is_contended = true},
	{"contended_kernel", FAULT_KERNEL, .last_layout = LAYOUT_TENSOR, .is_contended = true},
	{"unequal", FAULT_LOADER, .last_layout = LAYOUT_TENSOR, .is_unequal = true},
	{"launch_bound_graphs", FAULT_NONE, .has_graphs = true, .last_layout = LAYOUT_FSDP,
	 .is_launch_bound = true},
	{"blocking_graphs", FAULT_LOADER, .has_graphs = true, .has_blocking_graphs = true,
	 .last_layout = LAYOUT_FSDP},
};
#define SCENARIO_COUNT (sizeof(scenarios) / sizeof(scenarios[0]))

const char *const *job_scenarios(void)
{
	static const char *names[SCENARIO_COUNT + 1];

	for (size_t s = 0; s < SCENARIO_COUNT; s++)
		names[s] = scenarios[s].name;
	return names;
}

uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

double uniform(uint64_t *state, double low, double high)
{
	return low + (high - low) * (double)(next_random(state) >> 11) / (double)(1ull << 53);
}

/* The sum of four uniform numbers. */
double normal(uint64_t *state)
{
	uint64_t r = next_random(state);
	double sum = (double)((r & 65535) + (r >> 16 & 65535) + (r >> 32 & 65535) + (r >> 48));

	return (sum / 65535 - 2) * 1.7320508;
}

static uint32_t choose(struct job *job, uint32_t low, uint32_t high)
{
	return low + (uint32_t)(next_random(&job->random) % (high - low + 1));
}

uint32_t job_host_of(const struct job *job, uint32_t rank)
{
	return (uint32_t)((uint64_t)rank * job->host_count / job->rank_count);
}

uint32_t job_local_rank(const struct job *job, uint32_t rank)
{
	uint32_t first = rank;

	while (first && job_host_of(job, first - 1) == job_host_of(job, rank))
		first--;
	return rank - first;
}

struct communicator *job_communicator(const struct job *job, enum group group, uint32_t rank)
{
	struct communicator *first = &job->communicators[job->first_communicator[group]];

	if (group == TENSOR)
		return first + rank / first->count;
	return first + rank % first->stride;
}

/* All links of a group are equally fast. They are slow if any of them crosses hosts. */
static void add_communicators(struct job *job, enum group group, uint32_t number, uint32_t next,
			      uint32_t stride)
{
	uint32_t count = job->rank_count / number;
	bool is_remote = false;
	double bytes_per_ns;

	for (uint32_t c = 0; c < number; c++)
		is_remote |= job_host_of(job, c * next) !=
			     job_host_of(job, c * next + (count - 1) * stride);
	bytes_per_ns = is_remote ? uniform(&job->random, 20, 40) : uniform(&job->random, 150, 300);
	job->first_communicator[group] = job->communicator_count;
	for (uint32_t c = 0; c < number; c++)
		job->communicators[job->communicator_count++] = (struct communicator){
			.id = next_random(&job->random),
			.group = group,
			.first = c * next,
			.stride = stride,
			.count = count,
			.bytes_per_ns = bytes_per_ns,
		};
}

/* Tensor parallel ranks are neighbours; their number divides that of all ranks. */
static int make_communicators(struct job *job)
{
	uint32_t tensor = job->rank_count % 8 == 0 && job->rank_count > 8 ? 8 : 2;

	job->communicators = calloc(1 + 2 * job->rank_count, sizeof(*job->communicators));
	if (!job->communicators)
		return -ENOMEM;
	add_communicators(job, WORLD, 1, 1, 1);
	if (job->layout != LAYOUT_TENSOR)
		return 0;
	add_communicators(job, TENSOR, job->rank_count / tensor, tensor, 1);
	add_communicators(job, DATA, tensor, 1, tensor);
	return 0;
}

static void make_hosts(struct job *job)
{
	for (uint32_t h = 0; h < job->host_count; h++)
		job->hosts[h] = (struct host){
			.offset_ns = (int64_t)uniform(&job->random, -1000 * MS, 1000 * MS),
			.drift_ppm = uniform(&job->random, -50, 50),
			.boot_ns = (uint64_t)uniform(&job->random, 1e12, 1e15),
		};
}

static struct op *add_op(struct job *job, enum op_kind kind, enum place place)
{
	struct op *op = &job->ops[job->op_count++];

	*op = (struct op){.kind = kind, .place = place};
	return op;
}

/* share: of the compute of a step. */
static void add_kernel(struct job *job, enum place place, double share)
{
	add_op(job, OP_KERNEL, place)->mean_ns = (uint64_t)(share * (double)job->step_ns);
}

static double bytes_moved(enum collective collective, uint32_t count)
{
	switch (collective) {
	case ALL_REDUCE:
		return 2.0 * (count - 1) / count;
	case ALL_GATHER:
	case REDUCE_SCATTER:
		return count - 1; /* the message size is that of one rank */
	default:
		return 1;
	}
}

/* share: time of the transfer as a share of the compute of a step; 0: a few bytes. */
static struct op *add_collective(struct job *job, enum place place, enum collective collective,
				 enum group group, enum stream stream, double share)
{
	struct op *op = add_op(job, OP_COLLECTIVE, place);
	const struct communicator *c = job_communicator(job, group, 0);
	double bytes =
		share * (double)job->step_ns * c->bytes_per_ns / bytes_moved(collective, c->count);

	op->collective = collective;
	op->group = group;
	op->stream = stream;
	op->bytes = share > 0 ? ((uint64_t)bytes / 1024 + 1) * 1024 : 64;
	return op;
}

static void add_join(struct job *job, enum stream stream)
{
	add_op(job, OP_JOIN, PLACE_SYNC)->stream = stream;
}

static void add_tensor_reduce(struct job *job)
{
	if (job->layout != LAYOUT_TENSOR)
		return;
	add_collective(job, PLACE_TENSOR_REDUCE, ALL_REDUCE, TENSOR, TENSOR_COMMUNICATION,
		       0.02 / job->layer_count);
	add_join(job, TENSOR_COMMUNICATION);
}

/* The weights of the next layer are gathered while this layer computes. */
static void add_gather(struct job *job, uint32_t layers_left, double share)
{
	if (job->layout != LAYOUT_FSDP)
		return;
	add_join(job, COMMUNICATION);
	if (layers_left)
		add_collective(job, PLACE_GATHER, ALL_GATHER, WORLD, COMMUNICATION, share);
}

static void add_forward(struct job *job)
{
	double share = 1.0 / job->layer_count;

	if (job->layout == LAYOUT_FSDP)
		add_collective(job, PLACE_GATHER, ALL_GATHER, WORLD, COMMUNICATION, 0.2 * share);
	for (uint32_t l = 0; l < job->layer_count; l++) {
		add_gather(job, job->layer_count - 1 - l, 0.2 * share);
		add_kernel(job, PLACE_NORM, 0.02 * share);
		add_kernel(job, PLACE_ATTENTION, 0.12 * share);
		add_tensor_reduce(job);
		add_kernel(job, PLACE_MLP, 0.17 * share);
	}
	add_kernel(job, PLACE_LOSS, 0.02);
}

static void add_backward(struct job *job)
{
	double share = 1.0 / job->layer_count;
	bool has_shards = job->layout == LAYOUT_FSDP;
	enum group group = job->layout == LAYOUT_TENSOR ? DATA : WORLD;

	if (has_shards)
		add_collective(job, PLACE_GATHER, ALL_GATHER, WORLD, COMMUNICATION, 0.1 * share);
	for (uint32_t l = 0; l < job->layer_count; l++) {
		add_gather(job, job->layer_count - 1 - l, 0.15 * share);
		add_kernel(job, PLACE_BACKWARD_MLP, 0.33 * share);
		add_tensor_reduce(job);
		add_kernel(job, PLACE_BACKWARD_ATTENTION, 0.22 * share);
		add_collective(job, PLACE_GRADIENTS, has_shards ? REDUCE_SCATTER : ALL_REDUCE,
			       group, COMMUNICATION, uniform(&job->random, 0.1, 0.35) * share);
	}
	add_join(job, COMMUNICATION);
}

static void make_ops(struct job *job)
{
	add_collective(job, PLACE_INIT, BROADCAST, WORLD, COMMUNICATION, 0.3);
	add_op(job, OP_LOAD, PLACE_LOAD)->mean_ns = job->step_ns / 20;
	add_op(job, OP_COPY, PLACE_LOAD)->mean_ns = job->step_ns / 200;
	add_forward(job);
	add_backward(job);
	add_collective(job, PLACE_CLIP, ALL_REDUCE, WORLD, COMMUNICATION, 0);
	add_join(job, COMMUNICATION);
	add_kernel(job, PLACE_OPTIMIZER, 0.06);
	add_kernel(job, PLACE_OPTIMIZER, 0.04);
	if (choose(job, 0, 1) && !job->has_graphs)
		add_collective(job, PLACE_METRICS, REDUCE, WORLD, COMMUNICATION, 0)->every_steps =
			3;
	add_op(job, OP_SYNC, PLACE_SYNC);
}

/* A random operation of that kind: a collective in which all wait for all, or any kernel. */
static uint32_t choose_op(struct job *job, enum op_kind kind)
{
	uint32_t o;

	do
		o = choose(job, INIT_OP + 1, job->op_count - 1);
	while (job->ops[o].kind != kind || job->ops[o].every_steps);
	return o;
}

/* Longer than the GPU has work, at random launches of about half of the steps. */
static void make_pauses(struct job *job)
{
	for (uint32_t s = 0; s < job->step_count && job->pause_count < PAUSES_MAX; s++) {
		if (s && choose(job, 0, 1))
			continue;
		job->pauses[job->pause_count++] = (struct pause){
			.step = s,
			.op = choose_op(job, OP_KERNEL),
			.ns = (uint64_t)(uniform(&job->random, 1.2, 2.0) * (double)job->step_ns),
		};
	}
}

static uint32_t count_ops(const struct job *job, enum place place)
{
	uint32_t count = 0;

	for (uint32_t o = 0; o < job->op_count; o++)
		count += job->ops[o].kind == OP_KERNEL && job->ops[o].place == place;
	return count;
}

/* One communicator is slow all the time if others can be compared with it; else all, for a time. */
static void make_slow_link(struct job *job)
{
	enum group group = choose(job, 0, 1) ? DATA : TENSOR;
	uint32_t first = job->first_communicator[group];

	job->guilty = NO_RANK;
	job->slow_link = UINT32_MAX;
	job->slow_factor = uniform(&job->random, 6, 12);
	job->fault_step = job->step_count / 3;
	job->fault_steps = job->step_count / 3 + 1;
	if (job->layout != LAYOUT_TENSOR || !choose(job, 0, 2))
		return;
	job->slow_link = choose(job, first,
				group == TENSOR ? job->first_communicator[DATA] - 1
						: job->communicator_count - 1);
	job->slow_factor *= group == TENSOR ? 3 : 1;
	job->fault_step = 0;
	job->fault_steps = job->step_count;
}

static void make_fault(struct job *job)
{
	job->guilty = choose(job, 0, job->rank_count - 1);
	job->fault_steps = job->step_count;
	job->extra_ns = (uint64_t)(uniform(&job->random, 0.2, 0.6) * (double)job->step_ns);
	job->fault_op = choose_op(job, OP_KERNEL);
	switch (job->fault) {
	case FAULT_NONE:
		job->guilty = NO_RANK;
		job->extra_ns = 0;
		break;
	case FAULT_MOVING:
		job->guilty = NO_RANK;
		job->fault_steps = choose(job, 1, 2);
		job->moves_kernel = choose(job, 0, 1);
		break;
	case FAULT_PAUSE:
		make_pauses(job);
		break;
	case FAULT_LINK:
		make_slow_link(job);
		break;
	case FAULT_CPU:
		job->slow_factor = uniform(&job->random, 1.1, 1.8);
		break;
	case FAULT_OPERATION:
	case FAULT_BYTES:
	case FAULT_HANG:
		job->fault_op = choose_op(job, OP_COLLECTIVE);
		job->fault_step = choose(job, 1, job->step_count - 2);
		job->fault_steps = 1;
		break;
	case FAULT_LATE_LOG:
		job->fault_step = choose(job, 1, job->step_count / 2);
		break;
	default:
		break;
	}
}

/* A step has about 30 operations. */
static void make_launch_bound(struct job *job)
{
	job->launch_ns = choose(job, 10000, 40000);
	/* Where the launches decide, ranks that differ by chance wait for each other. */
	job->launch_jitter = 0.02;
	job->graph_launches = 60;
	job->step_ns = (uint64_t)(60 * uniform(&job->random, 0.2, 0.6) * (double)job->launch_ns);
}

int job_make(struct job *job, const char *name, uint64_t seed, const struct job_limits *limits)
{
	size_t s = 0;
	int error;

	while (s < SCENARIO_COUNT && strcmp(scenarios[s].name, name) != 0)
		s++;
	if (s == SCENARIO_COUNT)
		return -EINVAL;
	*job = (struct job){.scenario = scenarios[s].name, .seed = seed};
	job->random = seed * 1000003 + s;
	job->fault = scenarios[s].fault;
	job->has_payloads = !scenarios[s].has_no_payloads;
	job->has_graphs = scenarios[s].has_graphs;
	job->has_blocking_graphs = scenarios[s].has_blocking_graphs;
	job->has_python = choose(job, 0, 2) > 0;
	job->rank_count = limits->ranks ? limits->ranks : choose(job, 2, 8);
	job->layout = (enum layout)choose(job, 0, scenarios[s].last_layout);
	if (job->layout == LAYOUT_TENSOR && (job->rank_count < 4 || job->rank_count % 2))
		job->layout = LAYOUT_DDP;
	job->host_count = job->rank_count > 8 ? (job->rank_count + 7) / 8
					      : choose(job, 1, job->rank_count < 4 ? 2 : 4);
	if (job->host_count > HOSTS_MAX)
		job->host_count = HOSTS_MAX;
	job->kernel_parts = limits->parts ? limits->parts : 1;
	job->step_count = limits->steps ? limits->steps : choose(job, 12, 18);
	job->layer_count = choose(job, 2, 4);
	job->step_ns = (uint64_t)(exp(uniform(&job->random, log(3), log(300))) * MS);
	job->launch_ns = 4000;
	job->launch_jitter = 0.3;
	job->graph_launches = 5;
	if (scenarios[s].is_launch_bound)
		make_launch_bound(job);
	make_hosts(job);
	error = make_communicators(job);
	if (error)
		return error;
	make_ops(job);
	make_fault(job);
	job->others_factor = scenarios[s].is_unequal ? uniform(&job->random, 1.02, 1.15) : 1;
	job->wait_factor = scenarios[s].is_contended ? uniform(&job->random, 1.2, 1.8) : 1;
	if (scenarios[s].is_at_start) {
		job->fault_op = INIT_OP;
		job->fault_step = INIT_STEP;
	}
	return 0;
}

void job_free(struct job *job)
{
	free(job->communicators);
}

uint32_t job_late_rank(const struct job *job, uint32_t step)
{
	if (job->fault == FAULT_MOVING)
		return (step / job->fault_steps + (uint32_t)job->seed) % job->rank_count;
	return job->fault == FAULT_LOADER || job->fault == FAULT_KERNEL ? job->guilty : NO_RANK;
}

uint64_t job_extra_ns(const struct job *job, uint32_t rank, uint32_t step, uint32_t op)
{
	const struct op *o = &job->ops[op];
	bool is_kernel = job->fault == FAULT_KERNEL || job->moves_kernel;

	if (rank != job_late_rank(job, step))
		return 0;
	if (!is_kernel)
		return o->kind == OP_LOAD ? job->extra_ns : 0;
	/* All kernels of a line are slow. */
	if (o->kind != OP_KERNEL || o->place != job->ops[job->fault_op].place)
		return 0;
	return job->extra_ns / count_ops(job, o->place);
}

uint64_t job_pause_ns(const struct job *job, uint32_t rank, uint32_t step, uint32_t op)
{
	uint64_t ns = 0;

	for (uint32_t p = 0; rank == job->guilty && p < job->pause_count; p++)
		if (job->pauses[p].step == step && job->pauses[p].op == op)
			ns += job->pauses[p].ns;
	return ns;
}

uint64_t job_launch_ns(const struct job *job, uint32_t rank)
{
	bool is_slow = job->fault == FAULT_CPU && rank == job->guilty;

	return (uint64_t)((is_slow ? job->slow_factor : 1) * (double)job->launch_ns);
}

bool job_is_fault(const struct job *job, uint32_t rank, uint32_t step, uint32_t op)
{
	return job->fault >= FAULT_OPERATION && job->fault <= FAULT_HANG && rank == job->guilty &&
	       step == job->fault_step && op == job->fault_op;
}

uint64_t job_transfer_ns(const struct job *job, const struct communicator *communicator,
			 const struct op *op, uint32_t step)
{
	double ns = (double)op->bytes * bytes_moved(op->collective, communicator->count) /
		    communicator->bytes_per_ns;
	bool is_slow = job->fault == FAULT_LINK && step - job->fault_step < job->fault_steps &&
		       (job->slow_link == UINT32_MAX ||
			communicator == &job->communicators[job->slow_link]);

	return (uint64_t)((is_slow ? job->slow_factor : 1) *
			  (ns + 8000 + 1500 * communicator->count));
}
