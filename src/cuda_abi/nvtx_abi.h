/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What xtrace relies on in NVTX 3: how an injected tool is told of ranges and marks. The layouts
 * are those of nvtx3/nvToolsExt.h and nvtx3/nvtxDetail/nvtxTypes.h, which tests/conformance holds
 * them against where they are installed. None of the names here clashes with theirs.
 */
#ifndef XTRACE_CUDA_ABI_NVTX_ABI_H
#define XTRACE_CUDA_ABI_NVTX_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Modules whose function tables a tool may fill. */
enum xt_nvtx_module {
	XT_NVTX_CORE = 1,
	XT_NVTX_CUDA = 2,
	XT_NVTX_CUDART = 4,
	XT_NVTX_CORE2 = 5,
};

/* Places in the table of XT_NVTX_CORE. A: char text, W: wchar_t text, Ex: attributes. */
enum xt_nvtx_core {
	XT_NVTX_MARK_EX = 1,
	XT_NVTX_MARK_A = 2,
	XT_NVTX_MARK_W = 3,
	XT_NVTX_RANGE_START_EX = 4,
	XT_NVTX_RANGE_START_A = 5,
	XT_NVTX_RANGE_START_W = 6,
	XT_NVTX_RANGE_END = 7,
	XT_NVTX_RANGE_PUSH_EX = 8,
	XT_NVTX_RANGE_PUSH_A = 9,
	XT_NVTX_RANGE_PUSH_W = 10,
	XT_NVTX_RANGE_POP = 11,
	XT_NVTX_NAME_CATEGORY_A = 12,
	XT_NVTX_NAME_CATEGORY_W = 13,
	XT_NVTX_NAME_OS_THREAD_A = 14,
	XT_NVTX_NAME_OS_THREAD_W = 15,
};

/* Places in the table of XT_NVTX_CORE2: the same for domains other than the default one. */
enum xt_nvtx_core2 {
	XT_NVTX_DOMAIN_MARK_EX = 1,
	XT_NVTX_DOMAIN_RANGE_START_EX = 2,
	XT_NVTX_DOMAIN_RANGE_END = 3,
	XT_NVTX_DOMAIN_RANGE_PUSH_EX = 4,
	XT_NVTX_DOMAIN_RANGE_POP = 5,
	XT_NVTX_DOMAIN_NAME_CATEGORY_A = 8,
	XT_NVTX_DOMAIN_NAME_CATEGORY_W = 9,
	XT_NVTX_DOMAIN_REGISTER_STRING_A = 10,
	XT_NVTX_DOMAIN_REGISTER_STRING_W = 11,
	XT_NVTX_DOMAIN_CREATE_A = 12,
	XT_NVTX_DOMAIN_CREATE_W = 13,
	XT_NVTX_DOMAIN_DESTROY = 14,
};

/* Places in the table of XT_NVTX_CUDA: a handle and a text. */
enum xt_nvtx_cuda {
	XT_NVTX_NAME_CU_DEVICE_A = 1,
	XT_NVTX_NAME_CU_DEVICE_W = 2,
	XT_NVTX_NAME_CU_CONTEXT_A = 3,
	XT_NVTX_NAME_CU_CONTEXT_W = 4,
	XT_NVTX_NAME_CU_STREAM_A = 5,
	XT_NVTX_NAME_CU_STREAM_W = 6,
	XT_NVTX_NAME_CU_EVENT_A = 7,
	XT_NVTX_NAME_CU_EVENT_W = 8,
};

/* Places in the table of XT_NVTX_CUDART. */
enum xt_nvtx_cudart {
	XT_NVTX_NAME_CUDA_DEVICE_A = 1,
	XT_NVTX_NAME_CUDA_DEVICE_W = 2,
	XT_NVTX_NAME_CUDA_STREAM_A = 3,
	XT_NVTX_NAME_CUDA_STREAM_W = 4,
	XT_NVTX_NAME_CUDA_EVENT_A = 5,
	XT_NVTX_NAME_CUDA_EVENT_W = 6,
};

/* A table is an array of pointers to where NVTX keeps its function pointers; 0 is not used. */
typedef void (*xt_nvtx_function)(void);
typedef xt_nvtx_function **xt_nvtx_function_table;

#define XT_NVTX_EXPORT_CALLBACKS 1
struct xt_nvtx_export_callbacks {
	size_t struct_bytes;
	/* 1 for success; *size_out entries, of which [0] is none. */
	int (*get_module_function_table)(uint32_t module, xt_nvtx_function_table *table_out,
					 unsigned *size_out);
};
typedef const void *(*xt_nvtx_get_export_table)(uint32_t export_table_id);

enum xt_nvtx_message {
	XT_NVTX_MESSAGE_ASCII = 1,
	XT_NVTX_MESSAGE_UNICODE = 2,
	XT_NVTX_MESSAGE_REGISTERED = 3
};

/* nvtxEventAttributes_t, versions 1 to 3. */
struct xt_nvtx_attributes {
	uint16_t version;
	uint16_t bytes;
	uint32_t category;
	int32_t color_type; /* 0: none, 1: ARGB */
	uint32_t color;
	int32_t payload_type; /* 0: none, 1 u64, 2 s64, 3 double, 4 u32, 5 s32, 6 float */
	int32_t reserved0;
	uint64_t payload;
	int32_t message_type; /* enum xt_nvtx_message */
	int32_t padding0;
	const void *message; /* char or wchar_t text, or what a register function returned */
};

#define XT_NVTX_NO_PUSH_POP_TRACKING (-2)

#endif
