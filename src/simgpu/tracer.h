/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tracer half of the simulated GPU, a libcupti: its internal functions.
 *
 * Callbacks and records are made on the application's threads. A worker thread fills in the times
 * of finished work and returns full buffers. A flush does the same on its own thread. No lock is
 * held while a function of the client runs.
 */
#ifndef XTRACE_SIMGPU_TRACER_H
#define XTRACE_SIMGPU_TRACER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_abi/cupti_abi.h"
#include "simgpu/seam.h"

#define SIM_EXPORT	  __attribute__((visibility("default")))
#define SIM_CUPTI_VERSION 130001

/* Entry points that cupti_abi.h does not declare. */
int cuptiEnableDomain(uint32_t enable, void *subscriber, uint32_t domain);
int cuptiEnableAllDomains(uint32_t enable, void *subscriber);
int cuptiGetStreamId(void *context, void *stream, uint32_t *id_out);
int cuptiGetErrorMessage(uint32_t result, const char **text_out);
int cuptiFinalize(void);

#define DECLARE(need, name, arguments) int name arguments;
CUPTI_FUNCTIONS(DECLARE)
#undef DECLARE

/* tracer_seam.c */
struct sim_seam *tracer_seam(void); /* NULL: there is no simulated driver */
/* A real libcuda has no seam. Then tracer_seam() returns NULL. */
void tracer_seam_connect(const struct sim_tracer *tracer);
/*
 * Called first by every entry point. Returns XT_CUPTI_SUCCESS, or the error that forbids the call:
 * no driver, a forked child, an injected fault, or arguments that are not valid.
 */
int tracer_enter(const char *function, bool is_valid);
bool tracer_wants_callback(uint32_t domain, uint32_t cbid);
bool tracer_wants_api_records(void);
/*
 * Enables or disables the callback ids from first to last that the domain has. False if there is no
 * such domain or id.
 */
bool tracer_switch_callbacks(uint32_t domain, uint32_t first_cbid, uint32_t last_cbid, bool enable);
void tracer_switch_api_records(bool enable);
void tracer_switches_reset(void);
/* The clock of records and of cuptiGetTimestamp(). */
uint64_t tracer_clock_convert(uint64_t monotonic_ns);
uint64_t tracer_monotonic_ns(void);

/*
 * The faults of XTRACE_SIMGPU_FAULT: X(id, name, default of the value that may follow the name).
 *
 * - zero_times, reversed_times, drop_records: every N-th record
 * - lost_buffers: every N-th buffer is never returned
 * - long_buffers: every N-th buffer claims more data than fits in it
 * - twice_buffers: every N-th buffer is returned twice
 * - late_buffers: buffers are returned so many ms late
 * - hang_flush: flushing never returns
 * - slow_disable: the first disabling of a kind takes so many ms, during which it stays enabled
 * - version: what cuptiGetVersion() reports
 * - subscriber_taken: another tool has subscribed
 * - not_permitted: the driver allows profiling for administrators only
 * - fail: every call of the named function fails; with a second `:N`, only its N-th call
 * - nth_fail: the N-th call of any function fails, once
 */
#define TRACER_FAULTS(X)                                                                           \
	X(ZERO_TIMES, "zero_times", 1)                                                             \
	X(REVERSED_TIMES, "reversed_times", 1)                                                     \
	X(LATE_BUFFERS, "late_buffers", 500)                                                       \
	X(LOST_BUFFERS, "lost_buffers", 1)                                                         \
	X(DROP_RECORDS, "drop_records", 1)                                                         \
	X(LONG_BUFFERS, "long_buffers", 1)                                                         \
	X(TWICE_BUFFERS, "twice_buffers", 1)                                                       \
	X(HANG_FLUSH, "hang_flush", 0)                                                             \
	X(SLOW_DISABLE, "slow_disable", 1500)                                                      \
	X(VERSION, "version", 10)                                                                  \
	X(SUBSCRIBER_TAKEN, "subscriber_taken", 0)                                                 \
	X(NOT_PERMITTED, "not_permitted", 0)                                                       \
	X(FAIL, "fail", 0)                                                                         \
	X(NTH_FAIL, "nth_fail", 1)
#define TRACER_FAULT_ID(id, name, value) FAULT_##id,
enum tracer_fault { TRACER_FAULTS(TRACER_FAULT_ID) FAULTS };
bool tracer_fault_is_on(enum tracer_fault fault);
uint64_t tracer_fault_value(enum tracer_fault fault);
/* True on every n-th call, where n is the fault's value. False if the fault is off. */
bool tracer_fault_strikes(enum tracer_fault fault);

/* tracer_buffers.c */
/* Writes a record. Its times stay 0 until span.end_ns has passed. */
void tracer_append(const void *record, size_t record_bytes, struct sim_span span);
void tracer_buffers_reset(void);

#endif
