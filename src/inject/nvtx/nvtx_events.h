/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defines functions that NVTX calls, and commits their events.
 */
#ifndef XT_INJECT_NVTX_EVENTS_H
#define XT_INJECT_NVTX_EVENTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#include "cuda_abi/nvtx_abi.h"
#include "inject/nvtx/nvtx_schema.h"
#include "inject/runtime/machine.h"

/*
 * Defines the function nvtx_##name for a table of NVTX. The arguments are NVTX's, as integers; regs
 * are the caller's registers. Without them, a siglongjmp() out of the tracer would go undetected.
 */
#define NVTX_FUNCTION(name)                                                                        \
	TRAMPOLINE(".text", nvtx_##name, nvtx_body_##name);                                        \
	void nvtx_##name(void);                                                                    \
	__attribute__((visibility("hidden"), used))                                                \
	uint64_t nvtx_body_##name(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d,              \
				  const struct caller_regs *regs);                                 \
	uint64_t nvtx_body_##name(                                                                 \
		__attribute__((unused)) uintptr_t a, __attribute__((unused)) uintptr_t b,          \
		__attribute__((unused)) uintptr_t c, __attribute__((unused)) uintptr_t d,          \
		__attribute__((unused)) const struct caller_regs *regs)

/* Events lost because no ring could take them. */
extern atomic_uint_fast64_t nvtx_events_without_thread_buffer;

struct nvtx_entry {
	unsigned place;
	xt_nvtx_function function;
};

/* Returns value of push and pop: nesting levels are not counted. */
#define NVTX_NO_TRACKING ((uint64_t)(uint32_t)XT_NVTX_NO_PUSH_POP_TRACKING)

/* An NVTX event, independent of the function that reported it. */
struct nvtx_event {
	uint32_t operation; /* enum xt_range_operation */
	uint32_t domain;
	uint64_t key;
	const char *text;
	size_t text_bytes;	  /* of a text without terminator; 0: terminated */
	const wchar_t *wide_text; /* instead of text */
	uint64_t payload;	  /* used without attributes */
	uint32_t category, color; /* used without attributes */
	const struct xt_nvtx_attributes *attributes;
	const struct xt_nvtx_payload *payloads; /* of the payload extension */
	size_t payload_count;
};

/* Commits the event to the ring of the calling thread. */
void nvtx_commit(const struct nvtx_event *event, const struct caller_regs *regs);

/* Commits an enum xt_range_operation that names something. One of the texts is NULL. */
void nvtx_note_name(uint32_t operation, uint64_t key, uint64_t payload, const char *text,
		    const wchar_t *wide_text, const struct caller_regs *regs);

/* Creates a domain and returns its handle, or that of the default domain if there are too many. */
uintptr_t nvtx_create_domain(const char *name);

/* The number of the domain with that handle; 0 is the default domain. */
uint32_t nvtx_domain_number(uintptr_t handle);

/* The name of a domain by its number in ring records. "" for the default domain. Never freed. */
const char *nvtx_domain_name(uint64_t domain);

/* A unique number for a started range. */
uint64_t nvtx_next_key(void);
uint64_t nvtx_last_key(void); /* that nvtx_next_key() returned */

/* Stops recording NVTX events: if tracing does not start, in a forked child, or at process exit. */
void nvtx_abandon(void);
bool nvtx_is_abandoned(void);

/*
 * A payload in a ring record. Its data follow, then a struct taken_text for each text that the
 * schema points to; each padded to a multiple of 8 bytes.
 */
struct taken_payload {
	uint32_t schema; /* number; 0: not registered */
	uint32_t data_bytes;
	uint64_t schema_id;    /* NVTX's id; XT_NVTX_TYPE_NONE: payloads that did not fit */
	uint64_t stated_bytes; /* stated by the program; or how many payloads did not fit */
};

struct taken_text {
	uint32_t text_bytes; /* or TEXT_NULL */
	uint32_t is_cut;     /* the text may be longer */
};
#define TEXT_NULL UINT32_MAX

#endif
