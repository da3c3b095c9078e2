/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The on-disk format of an xtrace log (.xtr). The crash buffer's is in crash_buffer_format.h.
 *
 * docs/internals/LOG_FORMAT.md defines the format and the meaning of every field. Change this
 * header or log_schema.h, that document, the version below and the golden log of the tests in one
 * commit.
 *
 * All integers are little endian. Times are nanoseconds of the log's clock (XT_CLOCK_MONOTONIC).
 */
#ifndef XTRACE_LOG_FORMAT_H
#define XTRACE_LOG_FORMAT_H

#include <stdint.h>

#include "xtrace/log_schema.h"

#define XT_LOG_MAGIC	     "\x89XTRLOG\n" /* 8 bytes, no terminator */
#define XT_LOG_VERSION_MAJOR 2		    /* a reader rejects a larger one */
#define XT_LOG_VERSION_MINOR 10		    /* additions that a reader may skip */
#define XT_LOG_BYTE_ORDER    0x01020304u
#define XT_CHUNK_MAGIC	     0x48435458u /* "XTCH" */

#define XT_CHUNK_RAW_BYTES_MAX (16u << 20)
#define XT_CHUNK_ROWS_MAX      (1u << 20)

enum { XT_CLOCK_MONOTONIC = 1 };

/* Processors of recorded programs: e_machine of ELF. A reader rejects others. */
enum xt_machine {
	XT_MACHINE_UNSTATED = 0, /* before 2.9: x86-64 */
	XT_MACHINE_X86_64 = 62,
	XT_MACHINE_AARCH64 = 183,
};
#if defined(__aarch64__)
#define XT_MACHINE_OWN XT_MACHINE_AARCH64
#else
#define XT_MACHINE_OWN XT_MACHINE_X86_64
#endif

struct xt_log_header {
	uint8_t magic[8];
	uint16_t version_major;
	uint16_t version_minor;
	uint32_t byte_order;
	uint32_t header_bytes; /* sizeof(struct xt_log_header); chunks start here */
	uint32_t pid;
	uint64_t start_monotonic_ns;
	uint64_t start_realtime_ns;
	uint32_t clock;	  /* XT_CLOCK_MONOTONIC */
	uint32_t machine; /* enum xt_machine */
	uint64_t log_id;  /* random; the log's crash buffer has the same */
	uint32_t reserved;
	uint32_t check; /* xt_check32() of the preceding bytes */
};
_Static_assert(sizeof(struct xt_log_header) == 64, "the log header is 64 bytes");

struct xt_chunk_header {
	uint32_t magic;
	uint16_t kind;	       /* enum xt_kind; a reader skips unknown ones */
	uint16_t flags;	       /* 0 */
	uint32_t stored_bytes; /* of the zstd frame that follows */
	uint32_t raw_bytes;    /* of its content */
	uint32_t row_count;
	uint32_t sequence; /* 0, 1, 2 … through the file; a gap is a lost chunk */
	uint32_t reserved;
	uint32_t check; /* xt_check32() of the preceding bytes */
};
_Static_assert(sizeof(struct xt_chunk_header) == 32, "the chunk header is 32 bytes");

/* Precedes each column of the payload. */
struct xt_column_header {
	uint8_t column; /* enum xt_column */
	uint8_t encoding;
	uint16_t reserved;
	uint32_t data_bytes;
};
_Static_assert(sizeof(struct xt_column_header) == 8, "the column header is 8 bytes");

enum xt_encoding {
	XT_ENC_UVAR = 1,  /* row_count unsigned LEB128 */
	XT_ENC_DELTA = 2, /* row_count zigzag LEB128: differences from the previous row */
	XT_ENC_CONST = 3, /* one unsigned LEB128: the value of all rows */
	XT_ENC_BYTES = 4, /* row_count LEB128 lengths, then the bytes of all rows */
	XT_ENC_LIST = 5,  /* row_count LEB128 lengths, then all elements as one DELTA sequence */
	/* Since version 2: the lowest byte of each row, then the next byte of each row, … */
	XT_ENC_SHUFFLE = 6,	  /* u8 width, then width * row_count bytes */
	XT_ENC_DELTA_SHUFFLE = 7, /* u64 start, then zigzag differences as SHUFFLE */
};

/* XT_KIND_META and so on. A reader skips kinds and columns that it does not know. */
#define XT_KIND_CONSTANT(K, kind, number) XT_KIND_##K = number,
enum xt_kind {
	XT_KIND_END = 15, /* no rows: the writer closed the log */
	XT_KINDS(XT_KIND_CONSTANT) XT_KIND_COUNT
};
#define XT_COLUMN_CONSTANT(K, C, column, number, encoding) XT_##K##_##C = number,
#define XT_COLUMN_CONSTANTS(K, kind, number)		   XT_##K##_COLUMNS(XT_COLUMN_CONSTANT, K)
enum xt_column { XT_KINDS(XT_COLUMN_CONSTANTS) };
#undef XT_KIND_CONSTANT
#undef XT_COLUMN_CONSTANT
#undef XT_COLUMN_CONSTANTS

#define XT_STACK_FRAMES_MAX 1000
#define XT_STACK_LOST                                                                              \
	UINT32_MAX /* in CALL: the call was sampled (XT_CALL_ONE_IN), but its stack was lost */
#define XT_PYTHON_FRAMES_MAX 1000 /* per stack */

enum xt_stack_flag {
	XT_STACK_TRUNCATED = 1u << 0,	     /* the walk ended before the thread's start */
	XT_STACK_PYTHON_TRUNCATED = 1u << 1, /* Python frames are missing at the outer end */
	XT_STACK_PYTHON_CHANGED = 1u << 2,   /* in CPU logs: they are missing at the inner end */
};

/* A frame: the top byte is its kind. */
#define XT_FRAME_KIND_SHIFT 56
#define XT_FRAME_VALUE_MASK ((UINT64_C(1) << XT_FRAME_KIND_SHIFT) - 1)
enum xt_frame_kind {
	XT_FRAME_RETURN = 0, /* a return address: the call is just before it */
	XT_FRAME_EXACT = 1,  /* the address of an instruction interrupted by a signal */
};

enum xt_api_class {
	XT_API_OTHER = 0,
	XT_API_LAUNCH = 1,
	XT_API_GRAPH_LAUNCH = 2,
	XT_API_COPY = 3,
	XT_API_SET = 4,
	XT_API_ALLOC = 5,
	XT_API_FREE = 6,
	XT_API_SYNC = 7,   /* the CPU waits for the GPU */
	XT_API_EVENT = 8,  /* records an event, or a stream waits for one */
	XT_API_MODULE = 9, /* loads or unloads code */
	XT_API_GRAPH = 10, /* creates, changes, instantiates or destroys graphs */
	XT_API_LIFE = 11,  /* creates or destroys contexts, streams, events */
	XT_API_CLASSES
};

/* The type of a node whose work was changed. */
#define XT_NODE_CHANGED UINT32_MAX

/*
 * The lower half of the graph node of a KERNEL row that is one execution of a whole graph: CUPTI
 * did not record its nodes. The name of its shape is XT_WHOLE_GRAPH_NAME.
 */
#define XT_NODE_WHOLE_GRAPH UINT32_MAX
#define XT_WHOLE_GRAPH_NAME "[whole CUDA graph]"

/* Id of an unknown graph. */
#define XT_GRAPH_ANY UINT32_MAX

enum xt_switch_why {
	XT_SWITCH_ASKED = 0,   /* by the user or the program */
	XT_SWITCH_YIELDED = 1, /* another tool took or released CUPTI */
	XT_SWITCH_SIZE = 2,    /* the log reached --max-size */
	XT_SWITCH_STOPPED =
		3,	    /* by the user; allocations and NVTX events are not recorded either */
	XT_SWITCH_DUTY = 4, /* the same, in logs of earlier versions with a duty cycle */
};

enum xt_memory_operation { XT_MEMORY_ALLOC = 1, XT_MEMORY_FREE = 2 };

enum xt_range_operation {
	XT_RANGE_PUSH = 1,
	XT_RANGE_POP = 2,
	XT_RANGE_START = 3,
	XT_RANGE_END = 4,
	XT_RANGE_MARK = 5,
	XT_RANGE_NAME_THREAD = 6,   /* key is a tid, text its name */
	XT_RANGE_NAME_CATEGORY = 7, /* key is a category of the domain, text its name */
	/* Names of CUDA objects, by CUPTI's ids: */
	XT_RANGE_NAME_DEVICE = 8,
	XT_RANGE_NAME_CONTEXT = 9,
	XT_RANGE_NAME_STREAM = 10, /* payload: its context */
	XT_RANGE_NAME_EVENT = 11,  /* key: the handle */
};

enum xt_cpu_state {
	XT_CPU_UNKNOWN = 0,
	XT_CPU_RUNNING = 1,    /* ran its own code */
	XT_CPU_IN_KERNEL = 2,  /* ran in the kernel */
	XT_CPU_IO = 3,	       /* waits for a file, a device or a network connection */
	XT_CPU_LOCK = 4,       /* waits for a lock, a condition or another thread */
	XT_CPU_SLEEP = 5,      /* waits for a time to pass */
	XT_CPU_PAGE_FAULT = 6, /* the kernel provides memory that it touched first */
	XT_CPU_GIL = 7,	       /* waits for Python's interpreter lock */
	XT_CPU_PROCESS = 8,    /* waits for another process */
	XT_CPU_BLOCKED = 9,    /* waits for something else */
	XT_CPU_READY = 10,     /* waits for a CPU */
	XT_CPU_STATES
};

enum xt_cpu_flag {
	XT_CPU_NO_NATIVE = 1u << 0,	 /* the native frames are unknown */
	XT_CPU_NO_PYTHON = 1u << 1,	 /* it has Python frames, but they changed while read */
	XT_CPU_NATIVE_DROPPED = 1u << 2, /* native frames did not fit the Python frames */
};

/* 32-bit FNV-1a, the checksum of the fixed headers. Payloads have zstd's content checksum. */
static inline uint32_t xt_check32(const void *data, uint32_t data_bytes)
{
	const uint8_t *p = data;
	uint32_t h = 2166136261u;

	for (uint32_t i = 0; i < data_bytes; i++)
		h = (h ^ p[i]) * 16777619u;
	return h;
}

#endif
