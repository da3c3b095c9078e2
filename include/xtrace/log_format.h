/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The on-disk format of an xtrace log (.xtr). The crash buffer's is in crash_buffer_format.h.
 *
 * docs/internals/LOG_FORMAT.md defines the format and the meaning of every field. Change this
 * header, that document, the version below and the golden log of the tests in one commit.
 *
 * All integers are little endian. Times are nanoseconds of the log's clock (XT_CLOCK_MONOTONIC).
 */
#ifndef XTRACE_LOG_FORMAT_H
#define XTRACE_LOG_FORMAT_H

#include <stddef.h>
#include <stdint.h>

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
	uint8_t column; /* column number from the kind's enum below */
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

enum xt_kind {
	XT_KIND_META = 1,	   /* key and value texts about the run */
	XT_KIND_ACCOUNT = 2,	   /* named cumulative counters: the last value counts */
	XT_KIND_CLOCK = 3,	   /* (monotonic, realtime) pairs */
	XT_KIND_THREAD = 4,	   /* host threads */
	XT_KIND_MODULE = 5,	   /* modules and their addresses */
	XT_KIND_MODULE_UNLOAD = 6, /* end of a module's mapping */
	XT_KIND_STRING = 7,	   /* interned texts */
	XT_KIND_STACK = 8,	   /* interned call stacks */
	XT_KIND_API = 9,	   /* names of the API functions that CALL rows refer to */
	XT_KIND_CALL = 10,	   /* spans of API calls on host threads */
	XT_KIND_STREAM = 11,	   /* interned (device, context, stream) */
	XT_KIND_SHAPE = 12,	   /* interned kernel launch shapes: name, grid, block, … */
	XT_KIND_KERNEL = 13,	   /* kernel executions on the GPU */
	XT_KIND_SYMBOL = 14,	   /* symbols of seen addresses, embedded after the run */
	XT_KIND_END = 15,	   /* no rows: the writer closed the log */
	XT_KIND_COPY_SHAPE = 16,   /* interned: kind of copy, and its memories */
	XT_KIND_COPY = 17,	   /* memory copies on the GPU */
	XT_KIND_SET = 18,	   /* memsets on the GPU */
	XT_KIND_GRAPH_NODE = 19,   /* nodes of CUDA graphs, and the calls that created them */
	XT_KIND_MEMORY = 20,	   /* allocations and frees */
	XT_KIND_RANGE = 21,	   /* NVTX ranges and marks */
	XT_KIND_GRAPH_UPDATE = 22, /* changes of nodes of executable graphs */
	XT_KIND_SWITCH = 23,	   /* recording was paused or resumed */
	XT_KIND_PYTHON_FRAME = 24, /* interned: a line of a Python function */
	XT_KIND_SOURCE =
		25, /* inlined functions and lines of seen addresses, embedded after the run */
	XT_KIND_STACK_RATE = 26, /* sampling rate of stacks from then on */
	XT_KIND_AUTOGRAD = 27,	 /* interned: states of PyTorch's autograd in a thread */
	XT_KIND_COMPILED = 28,	 /* source lines of generated Python code, embedded after the run */
	XT_KIND_CPU_SAMPLE = 29, /* what a host thread did at moments of sampling */
	XT_KIND_GRAPH_NODE_NAME = 30, /* names of the kernels of graph nodes */
	XT_KIND_COUNT
};

enum xt_meta_column { XT_META_KEY = 1 /* bytes */, XT_META_VALUE = 2 /* bytes */ };

enum xt_account_column { XT_ACCOUNT_NAME = 1 /* bytes */, XT_ACCOUNT_VALUE = 2 };

enum xt_clock_column { XT_CLOCK_MONOTONIC_NS = 1, XT_CLOCK_REALTIME_NS = 2 };

enum xt_thread_column {
	XT_THREAD_ID = 1,  /* from 1; a later row with the same id replaces it */
	XT_THREAD_TID = 2, /* the kernel's id; may recur with another XT_THREAD_ID */
	XT_THREAD_NAME = 3 /* bytes */,
	XT_THREAD_START_NS = 4, /* when the tracer first saw it */
};

enum xt_module_column {
	XT_MODULE_ID = 1, /* from 1 */
	XT_MODULE_LOAD_NS = 2,
	XT_MODULE_START = 3, /* [start, end): the mapped address range */
	XT_MODULE_END = 4,
	XT_MODULE_BIAS = 5,	/* address - bias = ELF virtual address */
	XT_MODULE_PATH = 6,	/* bytes */
	XT_MODULE_BUILD_ID = 7, /* bytes, raw; empty if the module has none */
};

enum xt_module_unload_column { XT_MODULE_UNLOAD_ID = 1, XT_MODULE_UNLOAD_NS = 2 };

enum xt_string_column { XT_STRING_ID = 1 /* from 1; 0 is the empty text */, XT_STRING_TEXT = 2 };

enum xt_stack_column {
	XT_STACK_ID = 1, /* from 1; 0 means no stack */
	XT_STACK_FLAGS = 2,
	XT_STACK_SEEN_NS = 3, /* first seen, or a time near it with the same modules */
	XT_STACK_FRAMES = 4,  /* list, innermost first; see XT_FRAME_* */
	XT_STACK_PYTHON = 5,  /* list of XT_PYTHON_FRAME_ID, innermost first */
	XT_STACK_PLACES =
		6, /* list of equal length: index of the native frame that executes each */
	XT_STACK_MODULES = 7, /* list of XT_MODULE_ID, one for each frame; 0: in no module */
};

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

enum xt_api_column {
	XT_API_ID = 1,	  /* CUPTI callback domain << 16 | callback id */
	XT_API_NAME = 2,  /* bytes, CUPTI's name */
	XT_API_CLASS = 3, /* enum xt_api_class */
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

enum xt_call_column {
	XT_CALL_THREAD = 1, /* XT_THREAD_ID */
	XT_CALL_API = 2,    /* XT_API_ID */
	XT_CALL_CORRELATION = 3,
	XT_CALL_STACK = 4, /* XT_STACK_ID, 0: none, or XT_STACK_LOST */
	XT_CALL_ENTER_NS = 5,
	XT_CALL_DURATION_NS = 6,
	XT_CALL_RESULT = 7, /* CUresult or cudaError_t, 0 is success */
	XT_CALL_ONE_IN = 8, /* one of so many such calls has a stack; 0: all */
	XT_CALL_GRAPH_EXEC =
		9, /* of a graph launch: CUPTI's id of the executable graph; 0: unknown */
	XT_CALL_SEQUENCE =
		10, /* inside PyTorch: sequence number of the thread's next autograd node; 0: none */
	XT_CALL_AUTOGRAD = 11,	    /* XT_AUTOGRAD_ID; 0: not inside PyTorch */
	XT_CALL_NODE_SEQUENCE = 12, /* sequence number + 1 of the node that runs; 0: none */
};

/*
 * PyTorch numbers the autograd nodes of each thread. The call that creates node N sees N + 1 as its
 * thread's next number. docs/internals/AUTOGRAD.md explains how the merge uses this.
 */
enum xt_autograd_column {
	XT_AUTOGRAD_ID = 1,	      /* from 1 */
	XT_AUTOGRAD_THREAD = 2,	      /* PyTorch's number of the calling thread */
	XT_AUTOGRAD_NODE_TYPE = 3,    /* XT_STRING_ID: mangled type of the node; 0: none runs */
	XT_AUTOGRAD_NODE_CLASS = 4,   /* XT_STRING_ID: Python class of the node; 0: none */
	XT_AUTOGRAD_NODE_THREAD = 5,  /* PyTorch's number of the node's thread; 0: no sequence */
	XT_AUTOGRAD_CALLER = 6,	      /* XT_THREAD_ID of the thread in backward(); 0: uncertain */
	XT_AUTOGRAD_CALLER_STACK = 7, /* XT_STACK_ID: its Python frames; 0: unknown */
};

enum xt_stream_column {
	XT_STREAM_ID = 1, /* from 1 */
	XT_STREAM_DEVICE = 2,
	XT_STREAM_CONTEXT = 3, /* CUPTI's context id */
	XT_STREAM_STREAM = 4,  /* CUPTI's stream id */
};

enum xt_shape_column {
	XT_SHAPE_ID = 1,   /* from 1 */
	XT_SHAPE_NAME = 2, /* XT_STRING_ID, the mangled kernel name */
	XT_SHAPE_GRID_X = 3,
	XT_SHAPE_GRID_Y = 4,
	XT_SHAPE_GRID_Z = 5,
	XT_SHAPE_BLOCK_X = 6,
	XT_SHAPE_BLOCK_Y = 7,
	XT_SHAPE_BLOCK_Z = 8,
	XT_SHAPE_STATIC_SHARED_BYTES = 9,
	XT_SHAPE_DYNAMIC_SHARED_BYTES = 10,
	XT_SHAPE_REGISTERS = 11, /* per thread */
};

enum xt_kernel_column {
	XT_KERNEL_CORRELATION = 1,
	XT_KERNEL_STREAM = 2, /* XT_STREAM_ID */
	XT_KERNEL_SHAPE = 3,  /* XT_SHAPE_ID */
	XT_KERNEL_START_NS = 4,
	XT_KERNEL_DURATION_NS = 5,
	XT_KERNEL_GRAPH_NODE = 6, /* CUPTI's graph node id, 0 outside graphs */
};

enum xt_copy_shape_column {
	XT_COPY_SHAPE_ID = 1,	  /* from 1 */
	XT_COPY_SHAPE_KIND = 2,	  /* CUPTI's copy kind: 1 HtoD, 2 DtoH, 8 DtoD, 10 PtoP, … */
	XT_COPY_SHAPE_SOURCE = 3, /* CUPTI's memory kind: 1 pageable, 2 pinned, 3 device, … */
	XT_COPY_SHAPE_DESTINATION = 4, /* the same */
	XT_COPY_SHAPE_ASYNC = 5,       /* 1: the call did not wait for it */
	XT_COPY_SHAPE_FROM_DEVICE = 6, /* between devices: device + 1; else 0 */
	XT_COPY_SHAPE_TO_DEVICE = 7,
};

/* Columns 1, 2, 4, 5 and 6 are those of KERNEL. */
enum xt_copy_column {
	XT_COPY_CORRELATION = 1,
	XT_COPY_STREAM = 2, /* XT_STREAM_ID */
	XT_COPY_SHAPE = 3,  /* XT_COPY_SHAPE_ID */
	XT_COPY_START_NS = 4,
	XT_COPY_DURATION_NS = 5,
	XT_COPY_GRAPH_NODE = 6,
	XT_COPY_BYTES = 7,
};

enum xt_set_column {
	XT_SET_CORRELATION = 1,
	XT_SET_STREAM = 2,
	XT_SET_MEMORY = 3, /* CUPTI's memory kind */
	XT_SET_START_NS = 4,
	XT_SET_DURATION_NS = 5,
	XT_SET_GRAPH_NODE = 6,
	XT_SET_BYTES = 7,
};

enum xt_graph_node_column {
	XT_GRAPH_NODE_ID = 1,	  /* CUPTI's id; may be reused by a later node */
	XT_GRAPH_NODE_ORIGIN = 2, /* the node it was cloned from; 0: none */
	XT_GRAPH_NODE_STACK = 3,  /* XT_STACK_ID of the call that created it; 0 for clones */
	XT_GRAPH_NODE_TIME_NS = 4,
	XT_GRAPH_NODE_TYPE = 5, /* CUgraphNodeType: 0 kernel, 1 copy, 2 memset, 4 child graph, … */
	XT_GRAPH_NODE_THREAD = 6,
	/* The same as in CALL: */
	XT_GRAPH_NODE_SEQUENCE = 7,
	XT_GRAPH_NODE_AUTOGRAD = 8,
	XT_GRAPH_NODE_NODE_SEQUENCE = 9,
};

enum xt_graph_update_column {
	XT_GRAPH_UPDATE_NODE = 1, /* node of the graph that the executable graph was created from */
	XT_GRAPH_UPDATE_EXEC = 2, /* CUPTI's id of the executable graph */
	XT_GRAPH_UPDATE_STACK = 3, /* XT_STACK_ID of the call that changed it */
	XT_GRAPH_UPDATE_TIME_NS = 4,
	XT_GRAPH_UPDATE_THREAD = 5,
	XT_GRAPH_UPDATE_GRAPH =
		6, /* CUPTI's id of the graph that it now matches; 0: one node changed */
};

enum xt_graph_node_name_column {
	XT_GRAPH_NODE_NAME_NODE = 1,	/* XT_GRAPH_NODE_ID */
	XT_GRAPH_NODE_NAME_TIME_NS = 2, /* after the creation of the node */
	XT_GRAPH_NODE_NAME_STRING = 3,
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

enum xt_switch_column {
	XT_SWITCH_TIME_NS = 1,
	XT_SWITCH_IS_ON = 2, /* 1: resumed, 0: paused */
	XT_SWITCH_WHY = 3,   /* enum xt_switch_why */
	XT_SWITCH_WHO = 4,   /* the tool that took CUPTI */
};

enum xt_switch_why {
	XT_SWITCH_ASKED = 0,   /* by the user or the program */
	XT_SWITCH_YIELDED = 1, /* another tool took or released CUPTI */
	XT_SWITCH_SIZE = 2,    /* the log reached --max-size */
	XT_SWITCH_STOPPED =
		3,	    /* by the user; allocations and NVTX events are not recorded either */
	XT_SWITCH_DUTY = 4, /* the same, in logs of earlier versions with a duty cycle */
};

enum xt_stack_rate_column {
	XT_STACK_RATE_TIME_NS = 1,
	XT_STACK_RATE_ONE_IN = 2, /* 1: all */
};

enum xt_memory_operation { XT_MEMORY_ALLOC = 1, XT_MEMORY_FREE = 2 };

enum xt_memory_column {
	XT_MEMORY_CORRELATION = 1, /* of the call */
	XT_MEMORY_OPERATION = 2,   /* enum xt_memory_operation */
	XT_MEMORY_ADDRESS = 3,
	XT_MEMORY_BYTES = 4,
	XT_MEMORY_TIME_NS = 5,
	XT_MEMORY_DEVICE = 6,
	XT_MEMORY_KIND = 7, /* CUPTI's memory kind */
};

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

enum xt_range_column {
	XT_RANGE_OPERATION = 1, /* enum xt_range_operation */
	XT_RANGE_THREAD = 2,	/* XT_THREAD_ID */
	XT_RANGE_TIME_NS = 3,
	XT_RANGE_DOMAIN = 4, /* XT_STRING_ID; 0: the default domain */
	XT_RANGE_TEXT = 5,   /* XT_STRING_ID of the message */
	XT_RANGE_KEY = 6,    /* matches START and END */
	XT_RANGE_STACK = 7,  /* XT_STACK_ID of the call */
	XT_RANGE_CATEGORY = 8,
	XT_RANGE_PAYLOAD = 9,	    /* 64 bits, of the type in column 10 */
	XT_RANGE_PAYLOAD_TYPE = 10, /* NVTX's type: 0 none, 1 u64, 2 s64, 3 double, 4 u32, … */
	XT_RANGE_COLOR = 11,	    /* ARGB; 0: none */
	XT_RANGE_VALUES = 12,	    /* XT_STRING_ID: lines "name=value" of payloads; 0: none */
};

enum xt_symbol_column {
	XT_SYMBOL_MODULE = 1, /* XT_MODULE_ID; 0: JIT code, in no module */
	XT_SYMBOL_START = 2,  /* ELF virtual address; without a module, the address */
	XT_SYMBOL_BYTES = 3,
	XT_SYMBOL_NAME = 4, /* bytes, mangled */
};

enum xt_python_frame_column {
	XT_PYTHON_FRAME_ID = 1,	  /* from 1 */
	XT_PYTHON_FRAME_NAME = 2, /* XT_STRING_ID: the function's qualified name */
	XT_PYTHON_FRAME_FILE = 3, /* XT_STRING_ID: as in the code object */
	XT_PYTHON_FRAME_LINE = 4, /* 0: none */
	XT_PYTHON_FRAME_FIRST_LINE = 5,
};

/* The rows of one address are adjacent, innermost first. The last is the SYMBOL's own. */
enum xt_source_column {
	XT_SOURCE_MODULE = 1,	/* XT_MODULE_ID */
	XT_SOURCE_ADDRESS = 2,	/* ELF virtual address; of a return address, the one before */
	XT_SOURCE_FUNCTION = 3, /* bytes, mangled */
	XT_SOURCE_FILE = 4,	/* bytes */
	XT_SOURCE_LINE = 5,	/* 0: unknown */
};

/*
 * The rows of one Python frame are adjacent. Each source trace lists its lines outermost first. A
 * row without a trace names the source nodes instead, if the lines are unknown.
 */
enum xt_compiled_column {
	XT_COMPILED_FRAME = 1,	  /* XT_PYTHON_FRAME_ID: a line of generated code */
	XT_COMPILED_TRACE = 2,	  /* number of the source trace, from 1; 0: none */
	XT_COMPILED_FUNCTION = 3, /* bytes; without a trace, the names of the source nodes */
	XT_COMPILED_FILE = 4,	  /* bytes */
	XT_COMPILED_LINE = 5,	  /* 0: unknown */
};

/* One row represents consecutive observations of a thread in the same state and stack. */
enum xt_cpu_sample_column {
	XT_CPU_SAMPLE_TIME_NS = 1,   /* the first observation */
	XT_CPU_SAMPLE_SPAN_NS = 2,   /* from the first to the last; 0: only one */
	XT_CPU_SAMPLE_THREAD = 3,    /* XT_THREAD_ID */
	XT_CPU_SAMPLE_STATE = 4,     /* enum xt_cpu_state */
	XT_CPU_SAMPLE_STACK = 5,     /* XT_STACK_ID; 0: unknown */
	XT_CPU_SAMPLE_WEIGHT_NS = 6, /* time of the thread that the row represents */
	XT_CPU_SAMPLE_COUNT = 7,     /* observations */
	XT_CPU_SAMPLE_WAIT_PID = 8,  /* process of the thread that it waits for; 0: unknown */
	XT_CPU_SAMPLE_WAIT_TID = 9,
	XT_CPU_SAMPLE_FLAGS = 10, /* enum xt_cpu_flag */
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
