/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of NVTX 3 that xtrace uses: the interface through which an injected tool receives
 * ranges and marks. The layouts are those of nvtx3/nvToolsExt.h and nvtx3/nvtxDetail/nvtxTypes.h.
 * tests/conformance compares them with those headers, if they are installed. No name clashes with
 * theirs.
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

/* Indexes in the table of XT_NVTX_CORE. A: char text, W: wchar_t text, Ex: attributes. */
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

/* Indexes in the table of XT_NVTX_CORE2: the same for domains other than the default one. */
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

/* Indexes in the table of XT_NVTX_CUDA: functions that take a handle and a text. */
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

/* Indexes in the table of XT_NVTX_CUDART. */
enum xt_nvtx_cudart {
	XT_NVTX_NAME_CUDA_DEVICE_A = 1,
	XT_NVTX_NAME_CUDA_DEVICE_W = 2,
	XT_NVTX_NAME_CUDA_STREAM_A = 3,
	XT_NVTX_NAME_CUDA_STREAM_W = 4,
	XT_NVTX_NAME_CUDA_EVENT_A = 5,
	XT_NVTX_NAME_CUDA_EVENT_W = 6,
};

/* A table is an array of pointers to NVTX's function pointers. Index 0 is unused. */
typedef void (*xt_nvtx_function)(void);
typedef xt_nvtx_function **xt_nvtx_function_table;

#define XT_NVTX_EXPORT_CALLBACKS 1
struct xt_nvtx_export_callbacks {
	size_t struct_bytes;
	/* Returns 1 for success. The table has *size_out entries. Entry [0] is unused. */
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
	int32_t payload_type; /* 0: none, 1 u64, 2 s64, 3 double, 4 u32, 5 s32, 6 float, or below */
	int32_t reserved0;    /* number of payloads, with XT_NVTX_PAYLOAD_EXTENDED */
	uint64_t payload;     /* pointer to the first struct xt_nvtx_payload, with the same */
	int32_t message_type; /* enum xt_nvtx_message */
	int32_t padding0;
	const void *message; /* char or wchar_t text, or the handle from a register function */
};

#define XT_NVTX_NO_PUSH_POP_TRACKING (-2)

/*
 * Extensions (nvtx3/nvtxDetail/nvtxExtTypes.h). At the first use of each extension, NVTX passes a
 * record of it to InitializeInjectionNvtxExtension(). The tool stores functions in the slots. NVTX
 * disables slots that stay 0.
 */
struct xt_nvtx_segment {
	size_t segment_id;
	size_t slot_count;
	intptr_t *slots;
};

struct xt_nvtx_extension {
	uint16_t nvtx_version;
	uint16_t struct_bytes;
	uint16_t module_id;
	uint16_t compat_id; /* the major version is the upper byte */
	size_t segment_count;
	struct xt_nvtx_segment *segments;
	intptr_t (*get_export_function)(uint32_t function_id);
	const void *info;
};

/* The payload extension (nvtx3/nvToolsExtPayload.h). */
#define XT_NVTX_PAYLOAD_MODULE	 2
#define XT_NVTX_PAYLOAD_MAJOR	 1
#define XT_NVTX_PAYLOAD_EXTENDED ((int32_t)0xdfbd0009) /* payload_type of attributes */

enum xt_nvtx_payload_slot {
	XT_NVTX_SCHEMA_REGISTER = 0,
	XT_NVTX_ENUM_REGISTER = 1,
	XT_NVTX_MARK_PAYLOAD = 2,
	XT_NVTX_RANGE_PUSH_PAYLOAD = 3,
	XT_NVTX_RANGE_POP_PAYLOAD = 4,
	XT_NVTX_RANGE_START_PAYLOAD = 5,
	XT_NVTX_RANGE_END_PAYLOAD = 6,
	/* Slot 7 queries whether a domain is enabled, slot 12 registers a scope. */
};

/* One of the payloads of an event. */
struct xt_nvtx_payload {
	uint64_t schema_id; /* registered, or an enum xt_nvtx_type */
	size_t bytes;	    /* SIZE_MAX: not stated */
	const void *data;
};

/*
 * Types of values: X(name, id, bytes, class). class says how to show a value: SIGNED, UNSIGNED,
 * REAL, CHARACTER, TEXT, REGISTERED (a handle of a text) or HEX.
 */
#define XT_NVTX_TYPE_LIST(X)                                                                       \
	X(CHAR, 1, 1, CHARACTER)                                                                   \
	X(UCHAR, 2, 1, UNSIGNED)                                                                   \
	X(SHORT, 3, sizeof(short), SIGNED)                                                         \
	X(USHORT, 4, sizeof(short), UNSIGNED)                                                      \
	X(INT, 5, sizeof(int), SIGNED)                                                             \
	X(UINT, 6, sizeof(int), UNSIGNED)                                                          \
	X(LONG, 7, sizeof(long), SIGNED)                                                           \
	X(ULONG, 8, sizeof(long), UNSIGNED)                                                        \
	X(LONGLONG, 9, sizeof(long long), SIGNED)                                                  \
	X(ULONGLONG, 10, sizeof(long long), UNSIGNED)                                              \
	X(INT8, 11, 1, SIGNED)                                                                     \
	X(UINT8, 12, 1, UNSIGNED)                                                                  \
	X(INT16, 13, 2, SIGNED)                                                                    \
	X(UINT16, 14, 2, UNSIGNED)                                                                 \
	X(INT32, 15, 4, SIGNED)                                                                    \
	X(UINT32, 16, 4, UNSIGNED)                                                                 \
	X(INT64, 17, 8, SIGNED)                                                                    \
	X(UINT64, 18, 8, UNSIGNED)                                                                 \
	X(FLOAT, 19, 4, REAL)                                                                      \
	X(DOUBLE, 20, 8, REAL)                                                                     \
	X(LONGDOUBLE, 21, sizeof(long double), HEX)                                                \
	X(SIZE, 22, sizeof(size_t), UNSIGNED)                                                      \
	X(ADDRESS, 23, sizeof(void *), HEX)                                                        \
	X(WCHAR, 24, sizeof(wchar_t), UNSIGNED)                                                    \
	X(CHAR8, 25, 1, CHARACTER)                                                                 \
	X(CHAR16, 26, 2, UNSIGNED)                                                                 \
	X(CHAR32, 27, 4, UNSIGNED)                                                                 \
	X(BYTE, 32, 1, HEX)                                                                        \
	X(INT128, 33, 16, HEX)                                                                     \
	X(UINT128, 34, 16, HEX)                                                                    \
	X(FLOAT16, 42, 2, HEX)                                                                     \
	X(FLOAT32, 43, 4, REAL)                                                                    \
	X(FLOAT64, 44, 8, REAL)                                                                    \
	X(FLOAT128, 45, 16, HEX)                                                                   \
	X(BF16, 50, 2, HEX)                                                                        \
	X(TF32, 52, 4, HEX)                                                                        \
	X(CATEGORY, 68, 4, UNSIGNED)                                                               \
	X(COLOR_ARGB, 69, 4, HEX)                                                                  \
	X(SCOPE_ID, 70, 8, UNSIGNED)                                                               \
	X(TID_UINT32, 73, 4, UNSIGNED)                                                             \
	X(TID_UINT64, 74, 8, UNSIGNED)                                                             \
	X(CSTRING, 75, 1, TEXT)                                                                    \
	X(CSTRING_UTF8, 76, 1, TEXT)                                                               \
	X(CSTRING_UTF16, 77, 2, TEXT)                                                              \
	X(CSTRING_UTF32, 78, 4, TEXT)                                                              \
	X(REGISTERED_STRING, 80, sizeof(void *), REGISTERED)

#define XT_NVTX_TYPE_ID(name, id, bytes, class) XT_NVTX_TYPE_##name = (id),
enum xt_nvtx_type {
	XT_NVTX_TYPE_NONE = 0,
	XT_NVTX_TYPE_LIST(XT_NVTX_TYPE_ID) XT_NVTX_TYPE_UNION_SELECTOR = 100,
	XT_NVTX_TYPES,
	XT_NVTX_SCHEMA_REFERENCED = 1022, /* other payloads point into it */
	XT_NVTX_SCHEMA_RAW = 1023,
};
#undef XT_NVTX_TYPE_ID
/* Ids of schemas: static ones of the program, and dynamic ones that the tool assigns. */
#define XT_NVTX_SCHEMA_STATIC_FIRST  (UINT64_C(1) << 24)
#define XT_NVTX_SCHEMA_DYNAMIC_FIRST (UINT64_C(1) << 32)

enum xt_nvtx_entry_flag {
	XT_NVTX_ENTRY_POINTER = 1u << 1,
	XT_NVTX_ENTRY_OFFSET_FROM_BASE = 1u << 2,
	XT_NVTX_ENTRY_OFFSET_FROM_HERE = 1u << 3,
	XT_NVTX_ENTRY_ARRAY = 7u << 4, /* enum xt_nvtx_array << XT_NVTX_ENTRY_ARRAY_BIT */
	XT_NVTX_ENTRY_HIDE = 1u << 9,
	XT_NVTX_ENTRY_EVENT_MESSAGE = 1u << 10,
};
#define XT_NVTX_ENTRY_ARRAY_BIT 4
enum xt_nvtx_array {
	XT_NVTX_ARRAY_NONE,
	XT_NVTX_ARRAY_FIXED, /* `detail` elements */
	XT_NVTX_ARRAY_ZERO_TERMINATED,
	XT_NVTX_ARRAY_LENGTH_INDEX,   /* the length is the value of entry `detail` */
	XT_NVTX_ARRAY_LENGTH_PAYLOAD, /* the length is another payload of the event */
};

struct xt_nvtx_schema_entry {
	uint64_t flags; /* enum xt_nvtx_entry_flag */
	uint64_t type;	/* enum xt_nvtx_type, or the id of a schema or enum */
	const char *name;
	const char *description;
	uint64_t detail; /* length of a text or an array */
	uint64_t offset; /* 0: after the previous entry, aligned */
	const void *semantics;
	const void *reserved;
};

enum xt_nvtx_schema_kind {
	XT_NVTX_SCHEMA_STATIC = 1,
	XT_NVTX_SCHEMA_DYNAMIC = 2,
	XT_NVTX_SCHEMA_UNION = 3,
	XT_NVTX_SCHEMA_UNION_SELECTED = 4,
};

/* Which fields of the attributes are set. */
enum xt_nvtx_schema_field {
	XT_NVTX_SCHEMA_HAS_NAME = 1u << 1,
	XT_NVTX_SCHEMA_HAS_KIND = 1u << 2,
	XT_NVTX_SCHEMA_HAS_ENTRIES = 1u << 4,
	XT_NVTX_SCHEMA_HAS_COUNT = 1u << 5,
	XT_NVTX_SCHEMA_HAS_BYTES = 1u << 6,
	XT_NVTX_SCHEMA_HAS_ALIGN = 1u << 7,
	XT_NVTX_SCHEMA_HAS_ID = 1u << 8,
};

struct xt_nvtx_schema {
	uint64_t fields; /* enum xt_nvtx_schema_field */
	const char *name;
	uint64_t kind; /* enum xt_nvtx_schema_kind */
	uint64_t flags;
	const struct xt_nvtx_schema_entry *entries;
	size_t entry_count;
	size_t static_bytes;
	size_t pack_align; /* 0: natural alignment */
	uint64_t schema_id;
	void *extension;
};

struct xt_nvtx_enum_value {
	const char *name;
	uint64_t value;
	int8_t is_flag;
};

enum xt_nvtx_enum_field {
	XT_NVTX_ENUM_HAS_NAME = 1u << 1,
	XT_NVTX_ENUM_HAS_ENTRIES = 1u << 2,
	XT_NVTX_ENUM_HAS_COUNT = 1u << 3,
	XT_NVTX_ENUM_HAS_BYTES = 1u << 4,
	XT_NVTX_ENUM_HAS_ID = 1u << 5,
};

struct xt_nvtx_enum {
	uint64_t fields; /* enum xt_nvtx_enum_field */
	const char *name;
	const struct xt_nvtx_enum_value *values;
	size_t value_count;
	size_t bytes; /* of the type */
	uint64_t schema_id;
	void *extension;
};

#endif
