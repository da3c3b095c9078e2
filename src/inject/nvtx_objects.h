/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the nvtx*.c files share: how to write a function that NVTX calls, and the functions by which
 * programs name CUDA's objects.
 */
#ifndef XT_INJECT_NVTX_OBJECTS_H
#define XT_INJECT_NVTX_OBJECTS_H

#include <stdint.h>
#include <wchar.h>

#include "cuda_abi/nvtx_abi.h"
#include "inject/entry_stub.h"

/*
 * Defines the function nvtx_##name for one of NVTX's tables. The arguments are NVTX's, as integers;
 * regs are the caller's registers. A lane entered without them cannot be left by siglongjmp().
 */
#define NVTX_FUNCTION(name)                                                                        \
	ENTRY_STUB(".text", nvtx_##name, nvtx_body_##name);                                        \
	void nvtx_##name(void);                                                                    \
	__attribute__((visibility("hidden"), used))                                                \
	uint64_t nvtx_body_##name(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d,              \
				  const struct caller_regs *regs);                                 \
	uint64_t nvtx_body_##name(                                                                 \
		__attribute__((unused)) uintptr_t a, __attribute__((unused)) uintptr_t b,          \
		__attribute__((unused)) uintptr_t c, __attribute__((unused)) uintptr_t d,          \
		__attribute__((unused)) const struct caller_regs *regs)

struct nvtx_entry {
	unsigned place;
	xt_nvtx_function function;
};

/* For the tables of XT_NVTX_CUDA and XT_NVTX_CUDART; each ends with a place of 0. */
extern const struct nvtx_entry nvtx_cuda_entries[];
extern const struct nvtx_entry nvtx_cudart_entries[];

/* nvtx.c: commits an enum xt_range_operation that names something. One of the texts is NULL. */
void nvtx_note_name(uint32_t operation, uint64_t key, uint64_t payload, const char *text,
		    const wchar_t *wide_text, const struct caller_regs *regs);

#endif
