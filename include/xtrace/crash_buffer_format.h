/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The format of the crash buffer: a file that the traced process maps MAP_SHARED, so that committed
 * data survive the process. It starts with struct xt_crash_buffer_header. Each area of its
 * directory is a thread's ring, a CUPTI activity buffer, or names. The tracer accesses fields
 * shared by two threads with C11 atomics; readers of the file see plain integers.
 *
 * docs/internals/LOG_FORMAT.md defines the format.
 */
#ifndef XTRACE_CRASH_BUFFER_FORMAT_H
#define XTRACE_CRASH_BUFFER_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include "xtrace/log_format.h"

#define XT_CRASH_BUFFER_MAGIC	   "\x89XTRSPL\n"
#define XT_CRASH_BUFFER_VERSION	   8 /* recovery rejects any other */
#define XT_CRASH_BUFFER_AREAS_MAX  4096
#define XT_CRASH_BUFFER_PAGE_BYTES 4096

struct xt_crash_buffer_area {
	uint64_t offset; /* from the start of the file */
	uint64_t bytes;
	uint32_t kind; /* enum xt_area_kind; stored last, with release */
	uint32_t reserved;
};

enum xt_area_kind {
	XT_AREA_NONE = 0,
	XT_AREA_RING = 1,
	XT_AREA_ACTIVITY = 2,
	XT_AREA_NAMES = 3,
};

/*
 * Requests of other processes to the tracer. The sender first writes delay_ms and duration_ms, then
 * the word.
 */
enum xt_crash_buffer_request {
	XT_REQUEST_NONE = 0,
	XT_REQUEST_START = 1,
	XT_REQUEST_STOP = 2,
	XT_REQUEST_SNAPSHOT = 3,
	XT_REQUEST_MASK = 3,
	/* set by the tracer, once recording runs, or the log or the snapshot is complete */
	XT_REQUEST_DONE = 4,
	XT_REQUEST_SEQUENCE =
		8, /* incremented by each request; the bits from here on are a counter */
};

/* State of the tracer. */
enum xt_tracer_state {
	XT_STATE_UNKNOWN = 0,
	XT_STATE_RECORDING = 1,
	XT_STATE_PAUSED = 2,   /* not recording; CUPTI is still enabled */
	XT_STATE_STOPPED = 3,  /* not recording, at almost no cost */
	XT_STATE_STOPPING = 4, /* waits for the GPU to finish recorded work */
	XT_STATE_YIELDED = 5,  /* another tool uses CUPTI */
	XT_STATE_FULL = 6,     /* the log has reached --max-size */
	XT_STATE_WAITING = 7,  /* starts after delay_ms */
	XT_STATE_ARMED = 8,    /* has not recorded yet */
};

#define XT_CRASH_BUFFER_PROBLEM_BYTES 512

#define XT_CRASH_BUFFER_RECORD_KINDS 64

/* How the tracer ended. */
enum xt_crash_buffer_ending {
	XT_CRASH_BUFFER_NO_ENDING = 0,	  /* it runs, or was killed */
	XT_CRASH_BUFFER_WRITE_FAILED = 1, /* the log could not be written completely */
	XT_CRASH_BUFFER_UNFINISHED = 2,	  /* CUPTI or a thread did not finish in time */
};

/* Losses outside of rings. Names of the accounts: xtrace/ring_accounts.h. */
enum xt_crash_buffer_counter {
	XT_CRASH_BUFFER_CALLS_NO_RING,
	XT_CRASH_BUFFER_CALLS_REENTERED,
	XT_CRASH_BUFFER_CALLS_WRITE_FAILED,
	XT_CRASH_BUFFER_KERNELS_INVALID,
	XT_CRASH_BUFFER_KERNELS_WRITE_FAILED,
	XT_CRASH_BUFFER_COPIES_INVALID,
	XT_CRASH_BUFFER_COPIES_WRITE_FAILED,
	XT_CRASH_BUFFER_SETS_INVALID,
	XT_CRASH_BUFFER_SETS_WRITE_FAILED,
	XT_CRASH_BUFFER_MEMORY_WRITE_FAILED,
	XT_CRASH_BUFFER_NODES_LOST,
	XT_CRASH_BUFFER_RANGES_SEEN,
	XT_CRASH_BUFFER_RANGES_LOST,
	XT_CRASH_BUFFER_STACKS_LOST,
	XT_CRASH_BUFFER_MODULES_LOST,
	XT_CRASH_BUFFER_NAMES_LOST,
	XT_CRASH_BUFFER_CUPTI_DROPPED,
	XT_CRASH_BUFFER_BUFFERS_DISCARDED,
	XT_CRASH_BUFFER_BUFFERS_LOST,
	XT_CRASH_BUFFER_BUFFERS_INVALID,
	XT_CRASH_BUFFER_CALLS_UNBACKED,	 /* seen by rings outside the crash buffer */
	XT_CRASH_BUFFER_CALLS_AFTER_END, /* launches, copies and memsets after recording ended */
	XT_CRASH_BUFFER_CALLS_SIZE,	 /* written and removed again for --max-size */
	XT_CRASH_BUFFER_KERNELS_SIZE,
	XT_CRASH_BUFFER_COPIES_SIZE,
	XT_CRASH_BUFFER_SETS_SIZE,
	XT_CRASH_BUFFER_MEMORY_SIZE,
	XT_CRASH_BUFFER_COUNTERS
};
#define XT_CRASH_BUFFER_COUNTERS_MAX 32

struct xt_crash_buffer_header {
	uint8_t magic[8];
	uint32_t version;
	uint32_t byte_order;
	uint64_t log_id;
	uint32_t pid;
	uint32_t area_count; /* areas [0, area_count) are valid */
	uint32_t cupti_version;
	uint32_t request; /* enum xt_crash_buffer_request; set by another process */
	struct xt_crash_buffer_area areas[XT_CRASH_BUFFER_AREAS_MAX];
	/* Size of an activity record, by CUPTI kind; 0: not known yet. */
	uint32_t record_bytes[XT_CRASH_BUFFER_RECORD_KINDS];
	uint64_t reserved[2];
	uint32_t ending; /* enum xt_crash_buffer_ending */
	int32_t error;	 /* errno of the last failed write; 0: none */
	uint64_t counters[XT_CRASH_BUFFER_COUNTERS_MAX]; /* enum xt_crash_buffer_counter */
	/* Valid bytes of the log; 0: unknown. */
	uint64_t log_bytes;
	uint32_t state;		/* enum xt_tracer_state */
	uint32_t delay_ms;	/* a requested start waits so long */
	uint32_t duration_ms;	/* a requested recording lasts so long; 0: no limit */
	uint32_t request_taken; /* the last request that the tracer has read */
	uint64_t gpus;		/* bit i: work of device i was recorded */
	uint64_t launch_count;	/* recorded launches of kernels and graphs */
	uint64_t lost_count;	/* events that were lost, of any kind */
	/* Why recording does not run though requested; ends with NUL. "": no problem. */
	char problem[XT_CRASH_BUFFER_PROBLEM_BYTES];
	/* The last snapshot: N in its name, or 0 and the errno of its failure. */
	uint32_t snapshot_number;
	int32_t snapshot_error;
};
_Static_assert(XT_CRASH_BUFFER_COUNTERS <= XT_CRASH_BUFFER_COUNTERS_MAX, "the counters fit");

/* Records of a ring. Their sizes are multiples of 8 bytes, and none wraps. */
enum xt_record_type {
	XT_RECORD_PAD = 1,    /* extends to the end of the ring */
	XT_RECORD_CALL = 2,   /* struct xt_record_call */
	XT_RECORD_STACK = 3,  /* struct xt_record_stack: defines a stack slot until redefined */
	XT_RECORD_NODE = 4,   /* struct xt_record_node: a graph node was created or changed */
	XT_RECORD_RANGE = 5,  /* struct xt_record_range: an NVTX event */
	XT_RECORD_SKIP = 6,   /* struct xt_record_skip: a call while recording was paused */
	XT_RECORD_SWITCH = 7, /* struct xt_record_switch: recording was paused or resumed */
	XT_RECORD_MODULE = 8, /* struct xt_record_module: defines a module slot until redefined */
	XT_RECORD_SHUTDOWN_DROP = 9, /* struct xt_record_skip: a call during process exit */
	XT_RECORD_AUTOGRAD = 10,     /* struct xt_record_autograd: defines an autograd slot */
	XT_RECORD_NODE_NAME = 11,    /* struct xt_record_node_name: the kernel of a graph node */
};

struct xt_record {
	uint16_t type;
	uint16_t bytes; /* of the whole record */
};

struct xt_record_call {
	struct xt_record head;
	uint32_t api;
	uint32_t correlation_id;
	uint32_t stack_slot; /* XT_STACK_SLOT_NONE: no stack */
	uint64_t enter_ns;
	uint64_t exit_ns;
	int32_t result;
	uint32_t one_in; /* XT_CALL_ONE_IN; 0 but in earlier versions */
};
_Static_assert(sizeof(struct xt_record_call) == 40, "a call record is 40 bytes");

/* A call record of this size is a graph launch. */
struct xt_record_graph_call {
	struct xt_record_call call;
	uint32_t graph_exec; /* XT_CALL_GRAPH_EXEC */
	uint32_t reserved;
};
_Static_assert(sizeof(struct xt_record_graph_call) == 48, "a graph call record is 48 bytes");

/* The state of PyTorch's autograd in the calling thread. */
struct xt_autograd_state {
	uint64_t sequence;	/* XT_CALL_SEQUENCE */
	uint64_t node_sequence; /* XT_CALL_NODE_SEQUENCE */
	uint32_t slot;		/* autograd slot */
	uint32_t graph_exec;	/* XT_CALL_GRAPH_EXEC */
};

/* A call record of this size was made inside PyTorch. It may be a graph launch. */
struct xt_record_autograd_call {
	struct xt_record_call call;
	struct xt_autograd_state autograd;
};
_Static_assert(sizeof(struct xt_record_autograd_call) == 64, "its size differs from the others");

/* NULL if the record has none. */
static inline const struct xt_autograd_state *
xt_record_call_autograd(const struct xt_record_call *call)
{
	return call->head.bytes < sizeof(struct xt_record_autograd_call)
		       ? NULL
		       : &((const struct xt_record_autograd_call *)(const void *)call)->autograd;
}

/* XT_CALL_GRAPH_EXEC of a call record of any size. */
static inline uint32_t xt_record_graph_exec(const struct xt_record_call *call)
{
	if (xt_record_call_autograd(call))
		return xt_record_call_autograd(call)->graph_exec;
	return call->head.bytes < sizeof(struct xt_record_graph_call)
		       ? 0
		       : ((const struct xt_record_graph_call *)(const void *)call)->graph_exec;
}

#define XT_AUTOGRAD_SLOT_COUNT 256
#define XT_AUTOGRAD_TEXT_MAX   1024

/*
 * Defines an autograd slot until redefined. The stack of the caller was defined just before.
 */
struct xt_record_autograd {
	struct xt_record head;
	uint32_t slot;
	uint64_t thread;      /* XT_AUTOGRAD_THREAD */
	uint64_t node_thread; /* XT_AUTOGRAD_NODE_THREAD */
	uint32_t caller;      /* XT_AUTOGRAD_CALLER */
	uint32_t stack_slot;  /* XT_STACK_SLOT_CALLER or XT_STACK_SLOT_NONE */
	uint32_t type_bytes;
	uint32_t class_bytes;
	uint8_t text[]; /* type of the node, then its class; padded to a multiple of 8 bytes */
};
_Static_assert(sizeof(struct xt_record_autograd) == 40,
	       "an autograd record has a head of 40 bytes");

#define XT_STACK_SLOT_COUNT	32768
#define XT_STACK_SLOT_TRANSIENT 0 /* a stack used once, by the next call record */
#define XT_STACK_SLOT_CALLER	1 /* of the next autograd record */
#define XT_STACK_SLOTS_RESERVED 2
#define XT_STACK_SLOT_NONE	UINT32_MAX
#define XT_STACK_SLOT_LOST	(UINT32_MAX - 1) /* the call was sampled, but its stack was lost */

struct xt_record_stack {
	struct xt_record head;
	uint32_t stack_slot;
	uint32_t frame_count;
	uint16_t flags; /* enum xt_stack_flag */
	uint16_t reserved;
	uint64_t seen_ns;
	uint64_t frames[]; /* followed by their module slots: xt_stack_modules() */
};
_Static_assert(sizeof(struct xt_record_stack) == 24, "a stack record has a head of 24 bytes");

/* The module slots behind the frames: one uint16_t each, padded to a multiple of 8 bytes. */
static inline uint16_t *xt_stack_modules(struct xt_record_stack *stack)
{
	return (uint16_t *)(void *)&stack->frames[stack->frame_count];
}
static inline size_t xt_stack_modules_bytes(uint32_t frame_count)
{
	return (frame_count * sizeof(uint16_t) + 7) & ~(size_t)7;
}

#define XT_MODULE_SLOT_COUNT   512
#define XT_MODULE_SLOT_NONE    0 /* the frame is in no module; no record defines it */
#define XT_MODULE_BUILD_ID_MAX 64
#define XT_MODULE_PATH_MAX     4096

struct xt_record_module {
	struct xt_record head;
	uint32_t module_slot;
	uint64_t start, end, bias; /* as in MODULE */
	uint32_t build_id_bytes;
	uint32_t path_bytes;
	uint8_t text[]; /* build id, then path; padded to a multiple of 8 bytes */
};
_Static_assert(sizeof(struct xt_record_module) == 40, "a module record has a head of 40 bytes");

/* The size of the whole record. */
static inline size_t xt_module_bytes(uint32_t build_id_bytes, uint32_t path_bytes)
{
	return (sizeof(struct xt_record_module) + build_id_bytes + path_bytes + 7) & ~(size_t)7;
}

/*
 * The last part of a stack record with Python frames: this head, the frames, then the code objects.
 */
#define XT_PYTHON_CODES_MAX 512

struct xt_python_frame {
	uint32_t line; /* 0: none */
	uint16_t code; /* index of its code object */
	uint16_t
		place; /* index of the native frame that executes it; frame_count: beyond all of them */
};

struct xt_python_part {
	uint32_t frame_count;
	uint32_t code_count;
	struct xt_python_frame frames[]; /* innermost first */
};

struct xt_python_code {
	uint32_t first_line;
	uint16_t name_bytes;
	uint16_t file_bytes;
	uint8_t text[]; /* name, then file; padded to a multiple of 8 bytes */
};
_Static_assert(sizeof(struct xt_python_code) == 8, "a code object has a head of 8 bytes");

struct xt_record_node {
	struct xt_record head;
	uint32_t stack_slot;
	uint64_t node_id;
	uint64_t
		origin_id; /* id of the node it was cloned from; with a graph_exec: of the graph it now matches */
	uint64_t time_ns;
	uint32_t node_type;
	uint32_t
		graph_exec; /* the changed executable graph, all of it if node_id is 0; 0: the node was created */
};
_Static_assert(sizeof(struct xt_record_node) == 40, "a node record is 40 bytes");

struct xt_record_node_name {
	struct xt_record head;
	uint32_t reserved;
	uint64_t node_id;
	uint64_t time_ns;
	uint64_t name; /* the name's address, as in the record of a kernel */
};
_Static_assert(sizeof(struct xt_record_node_name) == 32, "a record of a name is 32 bytes");

/* A node record of this size was made inside PyTorch. */
struct xt_record_autograd_node {
	struct xt_record_node node;
	struct xt_autograd_state autograd;
};

/* NULL if the record has none. */
static inline const struct xt_autograd_state *
xt_record_node_autograd(const struct xt_record_node *node)
{
	return node->head.bytes < sizeof(struct xt_record_autograd_node)
		       ? NULL
		       : &((const struct xt_record_autograd_node *)(const void *)node)->autograd;
}

struct xt_record_range {
	struct xt_record head;
	uint32_t stack_slot;
	uint64_t time_ns;
	uint64_t key;
	uint64_t domain; /* the tracer's number of the domain */
	uint64_t payload;
	uint32_t operation; /* enum xt_range_operation */
	uint32_t payload_type;
	uint32_t category;
	uint32_t color;
	uint32_t text_bytes;
	uint32_t payload_bytes; /* behind the text: payloads to decode */
	uint8_t text[];		/* padded to a multiple of 8 bytes */
};
_Static_assert(sizeof(struct xt_record_range) == 64, "a range record has a head of 64 bytes");

struct xt_record_skip {
	struct xt_record head;
	uint32_t correlation_id;
};
_Static_assert(sizeof(struct xt_record_skip) == 8, "a skip record is 8 bytes");

struct xt_record_switch {
	struct xt_record head;
	uint32_t is_on; /* 1: resumed, 0: paused */
	uint64_t time_ns;
};
_Static_assert(sizeof(struct xt_record_switch) == 16, "a switch record is 16 bytes");

/* A call that has not returned yet. */
#define XT_RING_OPEN_CALLS_MAX 8
struct xt_open_call {
	uint32_t api;
	uint32_t correlation_id;
	uint32_t stack_slot;
	uint32_t slot_epoch; /* changes when the slot may refer to another stack */
	uint64_t enter_ns;
};

enum xt_ring_counter {
	XT_RING_CALLS_SEEN,
	XT_RING_CALLS_COMMITTED,
	XT_RING_LOST_RING_FULL,
	XT_RING_LOST_NESTED, /* a return whose start was not recorded */
	XT_RING_STACK_HITS,  /* found in the stack cache */
	XT_RING_STACK_WALKS, /* walks that are not audits */
	XT_RING_STACK_AUDITS,
	XT_RING_STACK_MISMATCHES,
	XT_RING_STACKS_TRUNCATED,
	XT_RING_STACKS_TRANSIENT, /* not cacheable */
	XT_RING_STACKS_LOST,	  /* no room for the definition: the call has no stack */
	XT_RING_NODES_SEEN,	  /* graph nodes created or cloned */
	XT_RING_NODES_LOST,
	XT_RING_RANGES_SEEN, /* NVTX events */
	XT_RING_RANGES_LOST,
	XT_RING_WAITED_NS,	   /* time the thread waited for room */
	XT_RING_PYTHON_STACKS,	   /* walks with Python frames */
	XT_RING_PYTHON_FINALIZING, /* calls during interpreter shutdown */
	XT_RING_PYTHON_UNREADABLE, /* walks that met unexpected data */
	XT_RING_PYTHON_UNPLACED,   /* walks whose native frames are unknown */
	XT_RING_PYTHON_MISSING,	   /* walks that missed running Python code */
	XT_RING_SKIPS_LOST, /* calls while paused whose ids were lost: their work has no call */
	XT_RING_COUNTERS
};
#define XT_RING_COUNTERS_MAX 22

struct xt_ring_header {
	uint32_t thread_id; /* XT_THREAD_ID; 0 while the ring is free */
	uint32_t tid;
	uint64_t start_ns;
	uint64_t data_bytes; /* a power of two; the data begin at XT_RING_DATA_OFFSET */
	uint8_t pad0[40];
	uint64_t write_pos; /* by the thread, release: everything before is committed */
	uint32_t open_count;
	uint32_t reserved;
	struct xt_open_call open_calls[XT_RING_OPEN_CALLS_MAX];
	uint64_t counters[XT_RING_COUNTERS_MAX]; /* enum xt_ring_counter */
	uint64_t free_pos;	      /* by the writer, release: everything before is in the log */
	uint64_t shutdown_drop_count; /* calls during process exit */
	uint64_t size_drop_count;     /* calls beyond --max-size */
	uint8_t pad2[40];
	uint32_t slot_stack_id[XT_STACK_SLOT_COUNT]; /* XT_STACK_ID of each slot, as of free_pos */
	uint32_t slot_module_id[XT_MODULE_SLOT_COUNT];	   /* the same for XT_MODULE_ID */
	uint32_t slot_autograd_id[XT_AUTOGRAD_SLOT_COUNT]; /* the same for XT_AUTOGRAD_ID */
};
_Static_assert(XT_RING_COUNTERS <= XT_RING_COUNTERS_MAX, "the counters fit");
#define XT_RING_DATA_OFFSET (33 * XT_CRASH_BUFFER_PAGE_BYTES)
_Static_assert(sizeof(struct xt_ring_header) <= XT_RING_DATA_OFFSET, "the ring header fits");

enum xt_activity_state {
	XT_ACTIVITY_FREE = 0,
	XT_ACTIVITY_AT_CUPTI = 1,  /* CUPTI writes to it */
	XT_ACTIVITY_COMPLETED = 2, /* valid_bytes of records, not read yet */
	XT_ACTIVITY_IN_LOG = 3,	   /* its records are in the log; being zeroed */
};

struct xt_activity_header {
	uint32_t state; /* enum xt_activity_state */
	uint32_t reserved;
	uint64_t data_bytes; /* the data begin at XT_ACTIVITY_DATA_OFFSET */
	uint64_t valid_bytes;
	uint64_t sequence; /* order of completion */
};
#define XT_ACTIVITY_DATA_OFFSET XT_CRASH_BUFFER_PAGE_BYTES

/*
 * Names of numbers in rings and activity records, in the order they were found. A later name
 * replaces an earlier one with the same key.
 */
enum xt_name_of {
	XT_NAME_KERNEL = 1, /* key: the name pointer of a kernel record */
	XT_NAME_DOMAIN = 2, /* key: the number of an NVTX domain */
};

struct xt_crash_buffer_name {
	uint64_t key;
	uint32_t of; /* enum xt_name_of */
	uint32_t text_bytes;
	uint8_t text[]; /* padded to a multiple of 8 bytes */
};
_Static_assert(sizeof(struct xt_crash_buffer_name) == 16, "a name has a head of 16 bytes");

struct xt_names_header {
	uint64_t used_bytes; /* of names, from XT_NAMES_DATA_OFFSET on; by the writer, release */
};
#define XT_NAMES_DATA_OFFSET 64

#endif
