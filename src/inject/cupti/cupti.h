/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access to CUPTI: the library and a table of its functions.
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

#endif
