/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface between the two halves of the simulated GPU. libcuda.so.1 exports one table. When
 * libcupti is loaded, it finds that table and registers its functions. The application may have
 * made any number of calls by then.
 *
 * The driver half reads the switches on every call, so disabled callbacks cost one load. The tracer
 * half sets `tracer` before the switches, and is never unloaded.
 */
#ifndef XTRACE_SIMGPU_SEAM_H
#define XTRACE_SIMGPU_SEAM_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

#include "cuda_abi/cupti_abi.h"

#define SIM_SEAM_SYMBOL		"xtrace_simgpu_seam"
#define SIM_SEAM_VERSION	8
#define SIM_DRIVER_CBIDS	1024
#define SIM_RESOURCE_CBIDS	32
#define SIM_DEVICE_GRAPHS_BYTES (8 << 20) /* default of the attribute with that name */
#define SIM_LEGACY_STREAM_ID	7 /* CUPTI's number of the default stream of the first context */

/* An entry point of the driver API. */
struct sim_api {
	const char *name;
	uint32_t cbid;
	bool is_early;	    /* may be called before cuInit() */
	bool is_per_thread; /* its NULL stream is the thread's own default stream */
};

/* A call in progress, on the stack of the calling thread. */
struct sim_call {
	const struct sim_api *api;
	const void *params; /* struct of the arguments in order */
	const char *symbol_name;
	CUcontext context;
	uint32_t context_id;
	uint32_t correlation_id;
	uint64_t correlation_data;
	uint64_t enter_ns; /* for the tracer half only */
	bool was_reported; /* its ENTER was, and what follows is valid */
	bool makes_work;   /* counted in work_count */
	CUresult result;
	struct sim_call *outer; /* cuInit(), whose injected library made this call; or NULL */
	/* For the ground truth, which includes only outermost calls. */
	uint32_t number; /* counts the thread's calls from 0 */
	uint64_t entered_ns;
	uint64_t began_ns; /* end of the ENTER callback */
	uint64_t ended_ns; /* start of the EXIT callback */
};

/* A stream, in the numbers of activity records. */
struct sim_place {
	uint32_t device_id;
	uint32_t context_id;
	uint32_t stream_id;
};

/* The times of work, on CLOCK_MONOTONIC. They may be in the future. */
struct sim_span {
	uint64_t start_ns;
	uint64_t end_ns;
};

struct sim_kernel_run {
	struct sim_place place;
	struct sim_span span;
	uint32_t correlation_id;
	const char *name; /* valid as long as the module */
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t static_shared_bytes;
	uint32_t dynamic_shared_bytes;
	uint32_t registers_per_thread;
	bool is_cooperative;
	uint64_t graph_node_id; /* 0 outside graphs */
	uint32_t graph_id;
	bool is_unrecorded; /* for the ground truth only */
};

/* A copy or a memset. */
struct sim_memory_run {
	struct sim_place place;
	struct sim_span span;
	uint32_t correlation_id;
	uint64_t bytes;
	uint64_t graph_node_id;
	uint32_t graph_id;
	bool is_async;
	uint8_t copy_kind;	  /* enum xt_cupti_copy_kind */
	uint8_t source_kind;	  /* enum xt_cupti_memory_kind */
	uint8_t destination_kind; /* enum xt_cupti_memory_kind; of a memset: its target */
	uint32_t value;		  /* of a memset */
	/* Only of copies between devices: */
	struct sim_place source, destination;
	bool is_staged;	    /* through the host: a copy on each device */
	bool is_unrecorded; /* for the ground truth only */
};

/* The launch of a graph as a whole. */
struct sim_graph_run {
	struct sim_place place;
	struct sim_span span;
	uint32_t correlation_id;
	uint32_t graph_exec_id;
	uint64_t kernel_count;
	bool is_recorded; /* instead of its nodes */
};

/* An allocation or a release of memory. */
struct sim_allocation {
	struct sim_place place; /* stream_id is UINT32_MAX outside streams */
	uint32_t correlation_id;
	uint64_t address;
	uint64_t bytes;
	uint64_t when_ns;
	uint8_t memory_kind; /* enum xt_cupti_memory_kind */
	bool is_release;
};

/* The functions of the tracer half. Called on the thread that makes the call. */
struct sim_tracer {
	void (*api)(enum xt_cupti_site site, struct sim_call *call);
	void (*resource)(uint32_t cbid, const struct cupti_resource_data *data);
	void (*kernel)(const struct sim_kernel_run *run);
	void (*copy)(const struct sim_memory_run *run);
	void (*set)(const struct sim_memory_run *run);
	void (*graph)(const struct sim_graph_run *run);
	void (*allocation)(const struct sim_allocation *allocation);
};

enum sim_switch {
	SIM_SWITCH_KERNEL,
	SIM_SWITCH_COPY,
	SIM_SWITCH_SET,
	SIM_SWITCH_GRAPH,
	SIM_SWITCH_ALLOCATION,
	SIM_SWITCHES
};

struct sim_device_facts {
	const char *name;
	int multiprocessor_count;
	int capability_major;
	int capability_minor;
	uint64_t memory_bytes;
};

/* Set by the tracer half, read by the driver half. */
struct sim_switches {
	const struct sim_tracer *_Atomic tracer;
	_Atomic bool driver_enabled[SIM_DRIVER_CBIDS];
	_Atomic bool resource_enabled[SIM_RESOURCE_CBIDS];
	_Atomic bool activity_enabled[SIM_SWITCHES];
	_Atomic bool was_used; /* a callback or an activity was enabled at any time */
	_Atomic uint64_t device_graphs_bytes; /* of new contexts, for device-side records */
	_Atomic bool has_host_records;	      /* of new contexts */
	_Atomic bool fails_to_grow;	      /* without them, see graph_exec.c */
	_Atomic bool deadlocks;		      /* see driver.c */
	_Atomic bool is_cupti13;	      /* with its faults, see README.md */
	_Atomic bool is_subscribed;
	_Atomic unsigned work_count;	     /* calls that make work, while is_cupti13 */
	_Atomic unsigned kinds_waiter_count; /* threads that hold what a disabling one needs */
	_Atomic bool has_launched_whole;     /* a graph, with GRAPH_TRACE */
	_Atomic bool crashes_launches;	     /* of graphs, see README.md */
	_Atomic unsigned set_up_count;	     /* of drivers and contexts, after was_used */
	pthread_mutex_t kinds_lock;	     /* if it deadlocks */
};

struct sim_seam {
	uint32_t version; /* SIM_SEAM_VERSION */
	struct sim_switches *switches;

	/* The functions of the driver half. Invalid handles give the id 0 or false. */
	bool (*usable)(void); /* false in a forked child */
	int (*device_count)(void);
	const struct sim_device_facts *(*device_facts)(int device);
	bool (*context_ids)(CUcontext context, uint32_t *context_id, uint32_t *device_id);
	uint32_t (*stream_id)(CUcontext context, CUstream stream, bool is_per_thread);
	uint64_t (*graph_node_id)(CUgraphNode node);
	uint32_t (*graph_id)(CUgraph graph);
	uint32_t (*graph_exec_id)(CUgraphExec graph_exec);
	const struct sim_api *(*api_by_cbid)(uint32_t cbid);
	void (*restart_correlation_ids)(void); /* the next id is 1 */
};

/* Starts a detached thread that takes no signals. Returns 0, or an error number. */
static inline int sim_start_thread(void *(*run)(void *))
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	error = pthread_create(&thread, &attributes, run, NULL);
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

#endif
