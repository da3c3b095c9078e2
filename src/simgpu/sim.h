/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver half of the simulated GPU: its objects and internal functions.
 *
 * There is no device thread. Enqueuing gives work its place on the stream's timeline at once: its
 * start depends on what it waits for, and its duration on the model. Data moves at that moment.
 * Synchronising waits until the clock has passed the end of the timeline. Only collectives across
 * processes, and work behind them, get their place later: see deferred.c.
 *
 * Handles point to these structs. Each struct begins with a magic number that identifies stray
 * handles. All times are nanoseconds of CLOCK_MONOTONIC.
 */
#ifndef XTRACE_SIMGPU_SIM_H
#define XTRACE_SIMGPU_SIM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "simgpu/seam.h"

#define SIM_DEVICES_MAX	      8
#define SIM_QUEUE_DEPTH	      1024 /* launches in flight on a stream; the next one waits */
#define SIM_LAUNCH_LATENCY_NS 1500 /* from the call to the earliest start */
#define SIM_COPY_LATENCY_NS   1000
#define SIM_MODULE_LOAD_NS    200000 /* as with a driver that has compiled the module before */
#define SIM_NODE_LATENCY_NS   500    /* between dependent nodes of a graph */

enum sim_magic {
	SIM_MAGIC_CONTEXT = 0x53494d01,
	SIM_MAGIC_STREAM = 0x53494d02,
	SIM_MAGIC_EVENT = 0x53494d03,
	SIM_MAGIC_MODULE = 0x53494d04,
	SIM_MAGIC_FUNCTION = 0x53494d05,
	SIM_MAGIC_GRAPH = 0x53494d06,
	SIM_MAGIC_NODE = 0x53494d07,
	SIM_MAGIC_EXEC = 0x53494d08,
	SIM_MAGIC_DEAD = 0x53494dff,
};

struct sim_branch;

struct CUstream_st {
	uint32_t magic;
	uint32_t id; /* CUPTI's number */
	CUcontext context;
	unsigned int flags;
	int priority;
	bool is_legacy;
	_Atomic uint64_t launch_count;
	_Atomic uint64_t tail_ns;	     /* the end of all enqueued work; grows under lock */
	_Atomic uint32_t host_pending_count; /* pending host functions */
	pthread_mutex_t lock;
	uint64_t *queue_end_ns; /* ends of the last SIM_QUEUE_DEPTH launches; under lock */
	uint32_t queue_next;
	struct sim_branch *_Atomic capture; /* set while the stream is being captured */
	struct CUstream_st *next;	    /* in the context's list; under its lock */
	struct CUstream_st *next_own;	    /* in the list of the owning thread */
	_Atomic int32_t deferred_count;	    /* see deferred.c */
	uint64_t blocked_pass;		    /* this and the next: under the lock of deferred.c */
};

struct CUctx_st {
	uint32_t magic;
	uint32_t id; /* CUPTI's number */
	int device;
	unsigned int flags;
	bool is_primary;
	pthread_mutex_t lock; /* protects the lists */
	struct CUstream_st legacy;
	struct CUstream_st *streams;
	struct CUmod_st *modules;
	_Atomic uint64_t tail_ns;	     /* of all streams */
	_Atomic uint64_t blocking_tail_ns;   /* of the streams that the legacy stream waits for */
	_Atomic uint32_t host_pending_count; /* pending host functions */
	_Atomic int32_t deferred_count;	     /* see deferred.c */
	_Atomic int32_t blocking_deferred_count;
	uint64_t blocking_blocked_pass;	 /* under the lock of deferred.c */
	_Atomic uint32_t peers;		 /* bit by device: its memory can be used */
	_Atomic uint32_t copy_stream_id; /* of the driver's copies between devices; 0: not used */
	uint64_t device_records_max;	 /* so many kernels in bodies of conditional nodes fail */
	_Atomic uint64_t device_record_count;
	_Atomic uint64_t graph_record_count; /* of kernels in graphs */
	struct sim_thread *_Atomic graph_launcher;
	_Atomic bool has_launchers; /* several threads launched graphs */
	bool has_host_records;	    /* for CUPTI's records */
	_Atomic uint64_t fault_ns;  /* when the context became unusable; 0: it did not */
	_Atomic int fault;	    /* the result of calls from then on */
	CUcontext next_dead;
};

struct CUevent_st {
	uint32_t magic;
	unsigned int flags;
	CUcontext context;
	_Atomic bool is_recorded;
	_Atomic uint64_t done_ns;
	uint64_t capture_id; /* the capture that recorded the event, or 0 */
	CUgraphNode *capture_nodes;
	size_t capture_node_count;
	struct sim_mark *mark; /* replaces done_ns; under the lock of deferred.c */
};

struct CUfunc_st {
	uint32_t magic;
	CUmodule module;
	struct CUfunc_st *next;
	char *name; /* never freed: unread records may outlive the module */
	uint64_t name_hash;
	uint32_t static_shared_bytes;
	uint32_t registers_per_thread;
	_Atomic int32_t dynamic_shared_max_bytes;
	bool name_is_reused; /* by a function of another module */
};

struct CUmod_st {
	uint32_t magic;
	uint32_t id;
	CUcontext context;
	struct CUfunc_st *functions;
	struct CUmod_st *next;
	char *image;
	size_t image_bytes;
};

/* The arguments of a launch. */
struct sim_shape {
	CUfunction function;
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t dynamic_shared_bytes;
	bool is_cooperative;
};

/* Driver state of each calling thread. */
struct sim_thread {
	struct sim_call *call; /* in progress */
	CUcontext *context_stack;
	uint32_t context_count;
	uint32_t context_capacity;
	int tid;
	bool is_in_callback;
	struct CUstream_st *own_streams; /* per-thread default streams, linked by next_own */
	void (*free_own_streams)(struct sim_thread *thread); /* set with the first one */
	CUstreamCaptureMode capture_mode;
	struct sim_truth_chunk *truth;
	uint32_t call_count;
	uint32_t frozen_id; /* correlation id of all later calls; 0: none. See README.md */
};

/* driver.c */
/* Zeroed memory. Ends the process with a message about `what` if there is none. */
void *sim_alloc(size_t bytes, const char *what);
/* Ends the process where a real CUPTI crashes, too. */
_Noreturn void sim_crash(const char *why);
struct sim_thread *sim_thread(void); /* never NULL: aborts if there is no memory */
extern struct sim_switches sim_switches;
/* Returns the correlation id of the call in progress, and assigns one if it has none. */
uint32_t sim_correlation_id(void);
/* The same without assigning: if the call has none, returns the last id assigned to any call. */
uint32_t sim_correlation_id_borrowed(void);
void sim_restart_correlation_ids(void);
void sim_resource_notify(uint32_t cbid, CUcontext context, CUstream stream, void *descriptor);
/* Can deadlock with a thread that disables kernel records, see README.md. */
void sim_hold_kinds(void);
bool sim_is_ready(void);
bool sim_is_usable(void); /* false in the child of an initialised process */
/* begin() takes the time of the configuration. Pass its result to end(). */
unsigned sim_set_up_begin(void);
void sim_set_up_end(unsigned begun);
int sim_device_total(void);
const struct sim_device_facts *sim_device_facts(int device); /* NULL: no such device */
/* The environment, read once. */
struct sim_config {
	uint64_t seed;
	uint64_t kernel_min_ns; /* both 0: use the model's range */
	uint64_t kernel_max_ns;
	uint64_t launch_ns;
	int device_count;
	const char *truth_path;	  /* NULL: write no ground truth */
	bool reuses_ids;	  /* of destroyed graphs and their nodes */
	size_t stack_bytes;	  /* minimum stack that each call uses */
	uint64_t set_up_ms;	  /* time that cuInit() and the creation of a context take */
	bool reuses_names;	  /* the memory of unloaded kernels' names */
	const char *ranks_folder; /* NULL: collectives do not wait for other processes */
	uint64_t ranks_timeout_ns;
	uint64_t link_bytes_per_us; /* of this rank */
};
const struct sim_config *sim_config(void);

/* timeline.c */
uint64_t sim_now_ns(void);
void sim_wait_until(uint64_t time_ns);
/* Raises *place to at least value. */
void sim_raise(_Atomic uint64_t *place, uint64_t value);
/* Enqueues work that takes duration_ns. Waits while the stream's queue is full. */
struct sim_span sim_stream_enqueue(CUstream stream, uint64_t latency_ns, uint64_t duration_ns);
/*
 * Places work that starts at earliest_ns, or when the work before it is done. Never waits for room
 * in the queue.
 */
struct sim_span sim_stream_place_at(CUstream stream, uint64_t earliest_ns, uint64_t duration_ns);
/* Makes later work of the stream start no earlier than that. */
void sim_stream_raise(CUstream stream, uint64_t time_ns);
/* The time at which all work on the stream, and on those it waits for, is done. */
uint64_t sim_stream_done_ns(CUstream stream);
uint64_t sim_kernel_duration_ns(const struct sim_shape *shape, uint64_t index);
uint64_t sim_copy_duration_ns(uint64_t bytes, uint8_t copy_kind, bool is_pageable);
uint64_t sim_set_duration_ns(uint64_t bytes);
uint64_t sim_hash(const void *data, size_t bytes, uint64_t seed);
/* Host functions. */
CUresult sim_host_enqueue(CUstream stream, CUhostFn function, void *user_data, uint64_t when_ns);
/* The same in two steps, when the time is known later. sim_host_forget() undoes the first one. */
void sim_host_expect(CUstream stream);
CUresult sim_host_queue(CUstream stream, CUhostFn function, void *user_data, uint64_t when_ns);
void sim_host_forget(CUstream stream);
/* Waits until the host functions of the stream, or of the whole context if NULL, have returned. */
void sim_host_drain(CUstream stream, CUcontext context);

/* stream.c */
CUresult sim_context_push(CUcontext context); /* makes it current */
CUcontext sim_context_current(void);	      /* NULL: none */
bool sim_context_is_valid(CUcontext context);
bool sim_context_ids(CUcontext context, uint32_t *context_id, uint32_t *device_id);
/* The error that all calls return from now on, or CUDA_SUCCESS. */
CUresult sim_context_failure(CUcontext context);

void sim_stream_init(CUstream stream, CUcontext context, unsigned int flags, int priority);
void sim_stream_fini(CUstream stream);
/* Returns an unused stream number. */
uint32_t sim_stream_take_id(void);
/*
 * Resolves a handle in the current context, including NULL and the two special handles. Returns
 * NULL and sets *error if there is no such stream.
 */
CUstream sim_stream_resolve(CUstream handle, CUresult *error);
/* The same for a call that a captured stream does not permit. */
CUstream sim_stream_resolve_uncaptured(CUstream handle, CUresult *error);
struct sim_place sim_stream_place(CUstream stream);
uint32_t sim_stream_id(CUcontext context, CUstream handle, bool is_per_thread);
/* Frees the calling thread's default stream of one context, or of all if NULL. */
void sim_stream_free_own(struct sim_thread *thread, CUcontext context);

/* module.c */
bool sim_function_is_valid(CUfunction function);
void sim_modules_free(CUcontext context);

/* The graph node that work belongs to. */
struct sim_part {
	uint64_t node_id;
	uint32_t graph_id;
	bool is_by_device; /* in the body of a conditional node: without a correlation id */
	bool is_unrecorded;
};

/* truth.c: work whose span is known, to the ground truth and the tracer */
void sim_kernel_deliver(const struct sim_kernel_run *run);
void sim_transfer_deliver(const struct sim_memory_run *run, bool is_set);
void sim_graph_deliver(const struct sim_graph_run *run);
bool sim_activity_is_on(enum sim_switch activity);

/* launch.c */
CUresult sim_shape_check(const struct sim_shape *shape);
/* Reports one kernel, whose span is already reserved, to the ground truth and the tracer. */
void sim_kernel_report(const struct sim_shape *shape, struct sim_place place, struct sim_span span,
		       const struct sim_part *part /* NULL outside graphs */);

/* memory.c: moves the data and reports it. */
struct sim_transfer {
	void *destination;
	const void *source; /* NULL: a memset */
	uint64_t bytes;
	uint32_t value; /* of a memset, repeated in elements of element_bytes */
	uint32_t element_bytes;
	uint8_t copy_kind; /* enum xt_cupti_copy_kind */
	bool is_async;
	CUcontext source_context; /* this and the next: only for copies between devices */
	CUcontext destination_context;
};
uint8_t sim_copy_kind(bool from_host, bool to_host); /* enum xt_cupti_copy_kind */
void sim_transfer_run(const struct sim_transfer *transfer);
uint64_t sim_transfer_duration_ns(const struct sim_transfer *transfer);
void sim_transfer_report(const struct sim_transfer *transfer, struct sim_place place,
			 struct sim_span span,
			 const struct sim_part *part /* NULL outside graphs */);

/*
 * context.c: whether a copy between the devices of two contexts needs no detour through the host.
 */
bool sim_peer_is_direct(CUcontext source, CUcontext destination);
/* Where a context takes part in a copy on a stream: the stream itself, or one of the driver's. */
struct sim_place sim_peer_place(CUcontext context, struct sim_place stream);

/* deferred.c */
/* Wait until all enqueued work is done, host functions included. */
void sim_stream_drain(CUstream stream);
void sim_context_drain(CUcontext context);

/* A collective across processes. */
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

bool sim_is_collective(CUfunction function);

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
void sim_deferred_wait_event(CUevent event);
/* CUDA_ERROR_LAUNCH_TIMEOUT from the moment at which a collective cannot end any more. */
CUresult sim_deferred_failure(void);

/* graph.c: events of a stream that is being captured, see also graph.h */
CUresult sim_capture_record(CUstream stream, CUevent event);
CUresult sim_capture_join(CUstream stream, CUevent event);

/* graph.c, graph_exec.c: see graph.h */
uint64_t sim_graph_node_id(CUgraphNode node);
uint32_t sim_graph_id(CUgraph graph);
uint32_t sim_graph_exec_id(CUgraphExec exec);

/* truth.c */
/* The call that made a node of a graph. The number counts that thread's calls. */
struct sim_maker {
	int tid;
	uint32_t call_number;
	bool is_of_child; /* set by an update of an enclosing graph: see truth.c */
};
bool sim_truth_is_on(void);
void sim_truth_launch(const struct sim_call *call);
void sim_truth_kernel(const struct sim_kernel_run *run);
/* absent: the missing ranks of a collective that never ends, which the truth keeps, or NULL */
void sim_truth_collective(const struct sim_kernel_run *run, const struct sim_collective *collective,
			  const char *absent);
void sim_truth_transfer(const struct sim_memory_run *run, bool is_set);
void sim_truth_allocation(const struct sim_allocation *allocation);
/* origin: the node it is a clone of, or 0. */
void sim_truth_node(uint64_t id, uint64_t origin, uint32_t type);
/* The call in progress changed a node of an executable graph, or of a graph if the id is 0. */
void sim_truth_node_set(uint64_t node_id, uint32_t graph_exec_id);
void sim_truth_update(uint32_t graph_exec_id, uint32_t graph_id);
/* The node that runs now was made by that call. */
void sim_truth_maker(uint64_t node_id, struct sim_maker maker);
void sim_truth_call(const struct sim_call *call);
/* The GPU launches the work of that node itself, in the replay of the call in progress. */
void sim_truth_by_device(uint64_t node_id, uint64_t start_ns);
void sim_truth_violation(const struct sim_call *call);

/* The implementations of all entry points. */
#define API(name, implementation, cbid, count, ...)                                                \
	CUresult implementation(XT_API_PARAMETERS(count, ##__VA_ARGS__));
#include "include/cuda_functions.def"

#endif
