/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives across processes (ranks.c), and work whose place on the timeline is not known when it
 * is enqueued (deferred.c).
 */
#ifndef XTRACE_SIMGPU_RANKS_H
#define XTRACE_SIMGPU_RANKS_H

#include "simgpu/sim.h"

struct sim_collective {
	struct sim_communicator *communicator;
	const struct sim_operation *operation;
	uint64_t communicator_id;
	uint64_t index; /* counts the communicator's launches from 0 */
	uint64_t bytes;
	uint64_t transfer_ns; /* by this rank's link alone */
	uint64_t start_ns;    /* 0: not known yet */
	uint64_t give_up_ns;
	uint64_t awaited_ns; /* start of the last of the ranks that this one needs, or of itself */
	uint32_t awaited_rank;
	uint32_t rank; /* in the communicator, like the others */
	uint32_t rank_count;
	uint32_t root;
};

enum sim_outcome { SIM_OUTCOME_WAITING, SIM_OUTCOME_END, SIM_OUTCOME_NEVER };

/* ranks.c */
bool sim_ranks_is_on(void);
bool sim_is_collective(CUfunction function);
/* Reads the kernel's arguments, and numbers this launch. */
CUresult sim_collective_begin(const char *kernel, void **params, struct sim_collective *out);
/* Publishes the start. */
void sim_collective_arrive(struct sim_collective *collective, uint64_t start_ns);
/* With SIM_OUTCOME_END, sets the end and awaited_*. */
enum sim_outcome sim_collective_outcome(struct sim_collective *collective, uint64_t *end_out_ns);
/* The ranks that have not arrived, such as "1,3", or "-". The caller frees it. NULL: no memory. */
char *sim_collective_absent(const struct sim_collective *collective);
/* A number that changes with each arrival in any process, and a wait for that. */
uint32_t sim_ranks_changes(void);
void sim_ranks_wait(uint32_t seen, uint64_t timeout_ns);

/* deferred.c */
/* Must work on this stream be deferred, because work before it is? */
bool sim_is_deferred(CUstream stream);
/* Each defers one thing on the stream. earliest_ns: its start if nothing precedes it. */
void sim_defer_kernel(CUstream stream, uint64_t earliest_ns, uint64_t duration_ns,
		      const struct sim_kernel_run *run);
void sim_defer_transfer(CUstream stream, uint64_t earliest_ns, uint64_t duration_ns,
			const struct sim_memory_run *run, bool is_set);
void sim_defer_host(CUstream stream, uint64_t earliest_ns, CUhostFn function, void *user_data);
CUresult sim_defer_collective(CUstream stream, uint64_t earliest_ns,
			      const struct sim_kernel_run *run, void **params);
void sim_defer_event(CUstream stream, CUevent event);
/* Returns false, and defers nothing, if the time of the event and the stream's tail are known. */
bool sim_defer_wait(CUstream stream, CUevent event);

/* Is the event recorded behind deferred work? If not, event->done_ns is valid. */
bool sim_event_is_deferred(CUevent event);
void sim_event_forget(CUevent event);

/* Wait until nothing is deferred. */
void sim_deferred_wait(CUstream stream);
void sim_deferred_wait_context(CUcontext context);
void sim_deferred_wait_event(CUevent event);
/* CUDA_ERROR_LAUNCH_TIMEOUT from the moment at which a collective cannot end any more. */
CUresult sim_deferred_failure(void);

#endif
