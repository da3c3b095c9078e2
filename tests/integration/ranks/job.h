/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made-up distributed training job: its hosts, ranks and communicators, the operations of one
 * step, and what is wrong with it. A seed determines everything. Times are ns of a virtual clock
 * that starts at 0 ("true time"), unless a name says otherwise.
 */
#ifndef XT_TESTS_RANKS_JOB_H
#define XT_TESTS_RANKS_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOSTS_MAX    256
#define OPS_MAX	     256
#define PAUSES_MAX   64
#define STREAM_COUNT 3
#define NO_RANK	     UINT32_MAX
#define INIT_OP	     0 /* runs once, before the first step */
#define INIT_STEP    UINT32_MAX

enum layout { LAYOUT_DDP, LAYOUT_FSDP, LAYOUT_TENSOR, LAYOUT_COUNT };

enum collective {
	ALL_REDUCE,
	ALL_GATHER,
	REDUCE_SCATTER,
	BROADCAST,
	REDUCE,
	COLLECTIVE_COUNT,
};

/* Streams of each rank. */
enum stream { COMPUTE, COMMUNICATION, TENSOR_COMMUNICATION };

/* Groups of communicators. Every rank is in one communicator of each group. */
enum group { WORLD, TENSOR, DATA, GROUP_COUNT };

enum op_kind {
	OP_LOAD,       /* the CPU waits for data */
	OP_COPY,       /* host to device, on the compute stream */
	OP_KERNEL,     /* on the compute stream */
	OP_COLLECTIVE, /* follows what is on the compute stream */
	OP_JOIN,       /* the compute stream waits for another stream */
	OP_SYNC,       /* the CPU waits for the compute stream */
};

enum place {
	PLACE_INIT,
	PLACE_LOAD,
	PLACE_NORM,
	PLACE_ATTENTION,
	PLACE_MLP,
	PLACE_TENSOR_REDUCE,
	PLACE_GATHER,
	PLACE_LOSS,
	PLACE_BACKWARD_MLP,
	PLACE_BACKWARD_ATTENTION,
	PLACE_GRADIENTS,
	PLACE_CLIP,
	PLACE_OPTIMIZER,
	PLACE_METRICS,
	PLACE_SYNC,
	PLACE_COUNT,
};

struct op {
	enum op_kind kind;
	enum place place;
	enum stream stream;
	enum collective collective;
	enum group group;
	uint64_t mean_ns;     /* of a load, copy or kernel */
	uint64_t bytes;	      /* NCCL's message size */
	uint32_t every_steps; /* 0: each step */
};

struct communicator {
	uint64_t id;
	enum group group;
	uint32_t first, stride, count; /* its ranks: first, first + stride, ... */
	double bytes_per_ns;
	uint32_t next_index; /* of its collectives */
};

/* Its monotonic and realtime clocks share one oscillator. */
struct host {
	int64_t offset_ns; /* realtime - true time at true time 0 */
	double drift_ppm;  /* gain of both clocks */
	uint64_t boot_ns;  /* monotonic clock at true time 0 */
};

enum fault {
	FAULT_NONE,
	FAULT_LOADER,
	FAULT_KERNEL,
	FAULT_PAUSE,
	FAULT_LINK,
	FAULT_MOVING,
	FAULT_CPU,	 /* one rank launches everything more slowly */
	FAULT_OPERATION, /* one rank calls another collective */
	FAULT_BYTES,	 /* one rank passes another size */
	FAULT_HANG,	 /* one rank never launches a collective */
	FAULT_LATE_LOG,	 /* one log starts later */
	FAULT_MISSING,	 /* one log is missing */
	FAULT_DUPLICATE, /* one log exists twice */
	FAULT_DAMAGED,	 /* one log is cut off */
};

struct pause {
	uint32_t step, op;
	uint64_t ns;
};

struct job {
	const char *scenario;
	uint64_t seed, random;
	enum layout layout;
	bool has_python;	  /* else native stacks only */
	bool has_payloads;	  /* NVTX ranges of NCCL */
	bool has_graphs;	  /* steps are graph replays */
	bool has_blocking_graphs; /* their launches return when they have run */
	uint32_t kernel_parts;	  /* launches of each kernel */
	uint32_t rank_count, host_count, first_host, first_rank, step_count, layer_count;
	uint64_t step_ns;	 /* compute of a step, without faults */
	uint64_t launch_ns;	 /* of the CPU, for half of an operation */
	double launch_jitter;	 /* each launch differs by up to this part */
	double others_factor;	 /* time of kernels of ranks other than the guilty one */
	uint32_t graph_launches; /* a graph takes as long to launch as so many operations */
	double wait_factor;	 /* time of kernels beside a collective that waits for a rank */
	struct host hosts[HOSTS_MAX];
	struct communicator *communicators;
	uint32_t communicator_count;
	uint32_t first_communicator[GROUP_COUNT];
	struct op ops[OPS_MAX]; /* INIT_OP, then those of a step */
	uint32_t op_count;

	enum fault fault;
	uint32_t guilty;      /* rank; NO_RANK: none, or several */
	uint32_t fault_op;    /* of kernels, mismatches and hangs */
	uint32_t fault_step;  /* the first with the fault */
	uint32_t fault_steps; /* how many steps have it; a moving fault: steps for each rank */
	uint64_t extra_ns;    /* for each time that the fault happens */
	uint32_t slow_link;   /* index of the communicator; UINT32_MAX: all */
	double slow_factor;   /* of its transfers, or of the launches of the guilty rank */
	bool moves_kernel;    /* a moving fault: a slow kernel, else a slow loader */
	struct pause pauses[PAUSES_MAX];
	uint32_t pause_count;
};

/* 0: as the seed says. */
struct job_limits {
	uint32_t ranks, steps;
	uint32_t parts; /* kernels for each operation; 0: one */
};

/*
 * Fills in the job of a scenario and seed. Returns -EINVAL if there is no such scenario, or
 * -ENOMEM. Call job_free() after success.
 */
int job_make(struct job *job, const char *scenario, uint64_t seed, const struct job_limits *limits);
void job_free(struct job *job);

/* The names of all scenarios, ended by NULL. */
const char *const *job_scenarios(void);

uint32_t job_host_of(const struct job *job, uint32_t rank);
uint32_t job_local_rank(const struct job *job, uint32_t rank);

/* The rank's communicator of a group. */
struct communicator *job_communicator(const struct job *job, enum group group, uint32_t rank);

/* The rank that is late in a step, or NO_RANK. */
uint32_t job_late_rank(const struct job *job, uint32_t step);

/* Extra time of an operation: on the CPU before it, or of the kernel or load itself. */
uint64_t job_pause_ns(const struct job *job, uint32_t rank, uint32_t step, uint32_t op);
uint64_t job_extra_ns(const struct job *job, uint32_t rank, uint32_t step, uint32_t op);

/* Time of the CPU for half of an operation, on average. */
uint64_t job_launch_ns(const struct job *job, uint32_t rank);

/* Whether the fault happens to the rank at this operation: a mismatch or a hang. */
bool job_is_fault(const struct job *job, uint32_t rank, uint32_t step, uint32_t op);

/* Time of a transfer without jitter, once all ranks are there. */
uint64_t job_transfer_ns(const struct job *job, const struct communicator *communicator,
			 const struct op *op, uint32_t step);

/* The next pseudo-random number of a sequence. */
uint64_t next_random(uint64_t *state);
/* Uniform in [low, high). */
double uniform(uint64_t *state, double low, double high);
/* About normal, mean 0 and deviation 1, within 3.5. */
double normal(uint64_t *state);

#endif
