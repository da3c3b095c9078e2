/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tracer half of the simulated GPU, a libcupti: what its files offer each other.
 *
 * Callbacks and records are made on the application's threads. A worker thread fills in the times
 * of what is over and gives back full buffers; a flush does so on the thread that flushes. No lock
 * is held while a function of the client runs.
 */
#ifndef XTRACE_SIMGPU_TRACER_H
#define XTRACE_SIMGPU_TRACER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_abi/cupti_abi.h"
#include "simgpu/seam.h"

#define SIM_EXPORT	  __attribute__((visibility("default")))
#define SIM_CUPTI_VERSION 130001

/* The entry points that cupti_abi.h does not need. */
int cuptiEnableDomain(uint32_t enable, void *subscriber, uint32_t domain);
int cuptiEnableAllDomains(uint32_t enable, void *subscriber);
int cuptiGetStreamId(void *context, void *stream, uint32_t *id_out);
int cuptiGetErrorMessage(uint32_t result, const char **text_out);
int cuptiFinalize(void);

#define DECLARE(need, name, arguments) int name arguments;
CUPTI_FUNCTIONS(DECLARE)
#undef DECLARE

/* tracer_seam.c */
struct sim_seam *tracer_seam(void); /* NULL: the simulated driver is not there */
/* A real libcuda has no seam: then tracer_seam() stays NULL. */
void tracer_seam_connect(const struct sim_tracer *tracer);
/*
 * Begins every entry point: an enum xt_cupti_result that forbids it (no driver, a forked child,
 * a fault that was asked for), or XT_CUPTI_SUCCESS.
 */
int tracer_enter(const char *function);

/* tracer_switches.c */
bool tracer_wants_callback(uint32_t domain, uint32_t cbid);
bool tracer_wants_api_records(void);
/* Callback ids from first to last, as far as the domain has them. False: no such domain or id. */
bool tracer_switch_callbacks(uint32_t domain, uint32_t first_cbid, uint32_t last_cbid, bool enable);
void tracer_switch_api_records(bool enable);
void tracer_switches_reset(void);

/* tracer_clock.c: the time of records and of cuptiGetTimestamp(). */
uint64_t tracer_clock_now_ns(void);
uint64_t tracer_clock_convert(uint64_t monotonic_ns);
uint64_t tracer_monotonic_ns(void);

/* tracer_callbacks.c */
void tracer_on_api(enum xt_cupti_site site, struct sim_call *call);
void tracer_on_resource(uint32_t cbid, const struct cupti_resource_data *data);
void tracer_callbacks_reset(void);

/* tracer_records.c */
void tracer_on_kernel(const struct sim_kernel_run *run);
void tracer_on_copy(const struct sim_memory_run *run);
void tracer_on_set(const struct sim_memory_run *run);
void tracer_on_allocation(const struct sim_allocation *allocation);
void tracer_record_api(const struct sim_call *call, uint64_t exit_ns);
size_t tracer_record_bytes(uint32_t kind); /* 0: unknown kind */
void tracer_records_reset(void);

/* tracer_buffers.c */
/* Writes a record whose times become known at span.end_ns; until then they stay 0. */
void tracer_append(const void *record, size_t record_bytes, struct sim_span span);
void tracer_buffers_reset(void);

/* tracer_attributes.c */
bool tracer_client_zeroes(void);
bool tracer_buffers_are_shared(void);

/* tracer_fault.c: what XTRACE_SIMGPU_FAULT asks for. */
enum tracer_fault {
	FAULT_ZERO_TIMES,
	FAULT_REVERSED_TIMES,
	FAULT_LATE_BUFFERS,
	FAULT_LOST_BUFFERS,
	FAULT_DROP_RECORDS,
	FAULT_LONG_BUFFERS,
	FAULT_TWICE_BUFFERS,
	FAULT_HANG_FLUSH,
	FAULT_SLOW_DISABLE,
	FAULT_VERSION,
	FAULT_SUBSCRIBER_TAKEN,
	FAULT_FAIL,
	FAULT_NTH_FAIL,
	FAULTS
};
bool tracer_fault_is_on(enum tracer_fault fault);
uint64_t tracer_fault_value(enum tracer_fault fault);
/* True for every n-th time it is asked, n being the fault's value; false if the fault is off. */
bool tracer_fault_strikes(enum tracer_fault fault);
bool tracer_fault_fails(const char *function);

#endif
