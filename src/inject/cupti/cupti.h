/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access to CUPTI: candidates for the library, the library, a table of its functions. And what the
 * driver says about the GPUs.
 */
#ifndef XT_INJECT_CUPTI_H
#define XT_INJECT_CUPTI_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_abi/cupti_abi.h"

#define CUPTI_MEMBER(need, name, arguments) uint32_t(*name) arguments;
struct cupti_table {
	CUPTI_FUNCTIONS(CUPTI_MEMBER)
	/* The driver's: stores the name of a CUfunction. NULL before CUDA 12.3. */
	int (*cuFuncGetName)(const char **name_out, void *function);
	/* The driver's: fail until cuInit() has returned. */
	int (*cuDeviceGetCount)(int *count_out);
	int (*cuDevicePrimaryCtxGetState)(int device, unsigned *flags_out, int *is_active_out);
	int (*cuPointerGetAttribute)(void *value_out, int attribute, uint64_t address);
	int (*cuMemPoolGetAttribute)(void *pool, int attribute, void *value_out);
	uint32_t version;      /* CUPTI_API_VERSION of the library */
	uint32_t cuda_version; /* of the driver: 13000 is 13.0 */
	char path[PATH_MAX];
	void *library;
	const char *found_by; /* search rule, for the log */
};
#undef CUPTI_MEMBER

extern struct cupti_table cupti;

/*
 * Finds a libcupti that suits the driver and fills the table. asked_path: the only candidate, or
 * empty to search in the order of docs/internals/ARCHITECTURE.md. 0, or -errno with one line in
 * `why`. Once, at start-up.
 */
int cupti_open(const char *asked_path, char *why, size_t why_bytes);

/*
 * Whether cuInit() has returned, which calls InitializeInjection(). CUPTI crashes if kernel records
 * are disabled before. Any thread.
 */
bool cupti_driver_is_ready(void);

/* Whether the result is an error other than "this CUPTI lacks the function, kind or record". */
bool cupti_has_failed(uint32_t result);

/* Functions and kinds of GPU work that CUPTI failed to enable; kinds given up as unsafe. */
extern atomic_uint_fast64_t cupti_lost_apis, cupti_lost_kinds, cupti_unsafe_kinds;
extern atomic_uint_fast64_t cupti_unsafe_memory; /* 1: records of memory were given up */

/* GPU modules unloaded so far. A kernel name pointer read before an unload may be stale. */
extern atomic_uint_fast64_t cupti_module_unloads;

/* The text of a CUPTI result; static. */
const char *cupti_result_text(uint32_t result);

struct cupti_candidate {
	char path[PATH_MAX]; /* for dlopen(): absolute, or a bare name */
	const char *rule;    /* static: the rule that found it */
};

struct cupti_search;

/* asked_path: if not empty, the only candidate. NULL if out of memory. */
struct cupti_search *cupti_search_begin(const char *asked_path);

/* The next candidate that exists; false when there are no more. */
bool cupti_search_next(struct cupti_search *search, struct cupti_candidate *candidate);

/* The searched places, for a message; valid until cupti_search_end(). */
const char *cupti_search_places(const struct cupti_search *search);

void cupti_search_end(struct cupti_search *search);

#define GPUS_MAX       64
#define GPU_NAME_BYTES 128
#define GPU_UUID_BYTES 16

/* Attributes of a device, as "gpu.<n>.<name>" in the log (gpu_limit_names). */
enum gpu_limit {
	GPU_MULTIPROCESSORS,
	GPU_CAPABILITY_MAJOR,
	GPU_CAPABILITY_MINOR,
	GPU_THREADS,
	GPU_BLOCKS,
	GPU_REGISTERS,
	GPU_SHARED_BYTES,
	GPU_RESERVED_SHARED_BYTES,
	GPU_LIMITS
};

extern const char *const gpu_limit_names[GPU_LIMITS];

struct gpu_names {
	uint32_t count;
	char names[GPUS_MAX][GPU_NAME_BYTES];
	int limits[GPUS_MAX][GPU_LIMITS]; /* -1: unknown */
	uint8_t uuids[GPUS_MAX]
		     [GPU_UUID_BYTES]; /* of a MIG instance, if it is one; zeros: unknown */
};

/*
 * Asks the driver. The flusher thread calls it until gpu_names() returns a result. May hang in the
 * driver.
 */
void gpu_names_read(void);

/* NULL until the driver has answered. Any thread. */
const struct gpu_names *gpu_names(void);

#endif
