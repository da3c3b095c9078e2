/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of one log in memory: everything except calls, GPU work and memory operations.
 *
 * A log is read twice. The first pass fills the model and does not decompress the rows of events.
 * Facts that come late in the log (unloaded modules, symbols, final counters) are therefore known
 * when the second pass reads the events.
 *
 * The log is untrusted: ids may be undefined. Undefined rows are all zeros, and the accessors
 * accept any id.
 */
#ifndef XT_MERGE_MODEL_H
#define XT_MERGE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/base/hash_table.h"
#include "merge/base/names.h"
#include "merge/read/autograd.h"
#include "merge/read/collectives.h"
#include "merge/read/cpu_samples.h"
#include "merge/read/nodes.h"
#include "merge/read/pauses.h"
#include "merge/read/ranges.h"
#include "merge/read/xla.h"
#include "xtrace/reader.h"

struct input;
struct report;

struct module {
	uint64_t load_ns;
	uint64_t unload_ns; /* UINT64_MAX: never */
	uint64_t start;
	uint64_t end;
	uint64_t bias;
	uint32_t id;
	uint32_t path;	   /* name */
	uint32_t build_id; /* name: the raw bytes */
	uint64_t seen_ns;  /* time of a stack that uses it; UINT64_MAX: none */
};

/* A Python frame of a stack. */
struct python_place {
	uint32_t frame; /* XT_PYTHON_FRAME_ID */
	uint32_t place; /* index of the native frame that runs it; frame_count: after all of them */
};

/* Function, file and line of a Python frame. */
struct python_frame {
	uint32_t name; /* XT_STRING_ID */
	uint32_t file; /* XT_STRING_ID */
	uint32_t line; /* 0: none */
	uint32_t first_line;
};

struct stack {
	size_t first_frame;
	size_t first_python;
	uint32_t python_count;
	uint32_t frame_count;
	uint32_t flags;
	bool has_modules; /* each frame names its module; otherwise find it by address and time */
	uint64_t seen_ns;
};

struct thread {
	uint32_t tid;
	uint32_t name;
};

struct api {
	uint32_t id;
	uint32_t name;
	uint32_t class; /* enum xt_api_class */
};

struct stream {
	bool defined;
	uint32_t device;
	uint32_t context;
	uint32_t stream;
};

struct shape {
	uint32_t string; /* XT_STRING_ID */
	uint32_t grid[3];
	uint32_t block[3];
	uint64_t static_shared_bytes;
	uint64_t dynamic_shared_bytes;
	uint32_t registers;
	bool is_collective; /* collectives.h */
	uint8_t operation;  /* enum collective_operation of a collective */
};

struct copy_shape {
	uint32_t kind;	      /* CUPTI's copy kind */
	uint32_t source;      /* CUPTI's memory kind */
	uint32_t destination; /* the same */
	bool is_async;
	uint32_t from_device; /* device + 1 for copies between devices, else 0 */
	uint32_t to_device;   /* the same */
};

struct embedded_symbol {
	uint64_t start;
	uint64_t bytes;
	uint32_t module;
	uint32_t name;
};

/* A place in the source, or a function inlined there. */
struct place {
	uint32_t function; /* name, mangled; NAME_EMPTY: unknown */
	uint32_t file;	   /* name; NAME_EMPTY: unknown */
	uint32_t line;	   /* 0: unknown */
};

struct embedded_source {
	uint64_t address;
	uint32_t module;
	uint32_t order; /* position in the log */
	struct place place;
};

/* A source line of generated Python code, as in the log. */
struct compiled_place {
	uint32_t frame; /* XT_PYTHON_FRAME_ID */
	uint32_t trace; /* as XT_COMPILED_TRACE */
	struct place place;
};

/* Periods in which another tool used CUPTI. */
struct cupti_handoffs {
	uint64_t count;
	uint64_t total_ns;
	uint64_t since_ns; /* start of the period in progress; 0: none */
	uint32_t who;	   /* name of the first tool */
};

struct pair {
	uint32_t key;
	uint32_t text;	/* META */
	uint64_t value; /* ACCOUNT */
};

#define MODEL_PAIRS_MAX	  1024 /* distinct keys; more are ignored */
#define MODEL_APIS_MAX	  4096
#define MODEL_API_UNKNOWN 0
#define MODEL_TITLES	  XT_RANGE_NAME_EVENT /* names of events are not shown */

/* A table indexed by id; row 0 is the undefined one. */
#define MODEL_ROWS(type)                                                                           \
	struct {                                                                                   \
		type *rows;                                                                        \
		size_t capacity;                                                                   \
		size_t count;	/* rows [0, count) */                                              \
		size_t defined; /* number of definitions */                                        \
	}

/* Moments of a log, on its clock. */
struct log_times {
	uint64_t start_ns;
	uint64_t start_realtime_ns; /* the start on the realtime clock */
	uint64_t from_ns; /* events before it were dropped, except calls of later work; 0: none */
	uint64_t last_clock_ns; /* time of the last CLOCK row; 0: none */
	uint64_t full_ns;	/* when the log reached --max-size; 0: never */
};

struct model {
	uint32_t pid;
	struct log_times times;
	struct names names;	      /* all texts of the log, unchanged */
	MODEL_ROWS(uint32_t) strings; /* by XT_STRING_ID: name */
	MODEL_ROWS(struct stack) stacks;
	MODEL_ROWS(struct python_frame) python_frames;
	MODEL_ROWS(struct thread) threads;
	MODEL_ROWS(struct stream) streams;
	MODEL_ROWS(struct shape) shapes;
	MODEL_ROWS(struct copy_shape) copy_shapes;
	MODEL_ROWS(struct module) modules; /* sorted by start once loaded; module 0 is none */
	MODEL_ROWS(struct api) apis;	   /* in log order; api 0 is unknown */
	MODEL_ROWS(struct pair) meta;
	MODEL_ROWS(struct pair) account;
	struct cupti_handoffs cupti_handoffs;
	MODEL_ROWS(struct embedded_symbol) symbols; /* sorted by module and start once loaded */
	/* sorted by module, address and order once loaded */
	MODEL_ROWS(struct embedded_source) sources;
	MODEL_ROWS(struct compiled_place) compiled; /* in log order, from 1 */
	struct ranges ranges;			    /* NVTX ranges */
	struct xla_tuning tuning;		    /* of programs of JAX */
	struct collective_calls collective_calls;   /* of NCCL */
	bool has_collectives;			    /* among the shapes */
	/*
	 * By enum xt_range_operation: names that the program gave through NVTX. Devices and
	 * contexts have CUPTI's numbers, streams have their context instead of a domain.
	 */
	struct range_names titles[MODEL_TITLES];
	struct nodes nodes; /* of CUDA graphs */
	struct autograd autograd;
	struct pauses pauses; /* of recording */
	struct pauses stops;  /* the pauses without records of allocations */
	struct cpu_samples cpu_samples;
	/* times at which correlation ids restarted, ascending */
	LIST(uint64_t) renumbered_ns;
	LIST(uint64_t) frames;		  /* of all stacks */
	LIST(uint32_t) frame_modules;	  /* XT_MODULE_ID of each if known, else 0 */
	LIST(struct python_place) python; /* of all stacks */
	uint64_t *module_reach; /* by index in modules: largest end of all modules up to it */
	MODEL_ROWS(uint32_t) module_places; /* by XT_MODULE_ID: index in modules, or 0 */
	struct xt_hash_table apis_by_id;    /* items: indexes in apis */
	struct xt_damage damage;	    /* of the chunks read so far */
	uint64_t rows_read[XT_KIND_COUNT];  /* rows read so far; the second pass adds the events */
};

/* The kinds of chunks that a model needs, for xt_reader_next(). */
uint32_t model_row_kinds(void);

/*
 * Reads the model with a newly opened reader. Returns 0, or -EFBIG if the log exceeds its limits
 * when decompressed. On errors there is no model.
 */
int model_load(struct model **model_out, struct xt_reader *reader);

/*
 * Loads the model of a log, and opens the log again for its events. If the log is still being
 * written, both are limited to the same part. The caller frees both. If the log cannot be opened,
 * both are NULL, and the reason is reported unless report is NULL. Returns 0 or an error of
 * model_load().
 */
int model_open(const struct input *log, struct report *report, struct model **model_out,
	       struct xt_reader **reader_out);
void model_free(struct model *model);

/*
 * Correlation ids restart after another tool used CUPTI. Returns what to add to an id of that time
 * to make it unique in the log.
 */
static inline uint64_t model_numbering(const struct model *model, uint64_t time_ns)
{
	size_t low = 0, high = model->renumbered_ns.count; /* high: the first later one */

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (model->renumbered_ns.list[middle] <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return (uint64_t)low << 32;
}

/*
 * Returns the module of a frame as index in modules, or 0. place: the index of the frame in frames.
 * address: the frame's address.
 */
uint32_t model_module_of(const struct model *model, const struct stack *stack, size_t place,
			 uint64_t address);

/*
 * Returns the name that the program gave to a device, context or stream, or "". context is 0 except
 * for streams.
 */
const char *model_title(const struct model *model, enum xt_range_operation kind, uint32_t context,
			uint64_t number);

/* Returns the slot of an XT_API_ID, or the empty slot for it. */
static inline struct xt_hash_slot *model_api_slot(const struct model *model, uint64_t id)
{
	struct xt_hash_slot *slot = xt_hash_first(&model->apis_by_id, xt_hash_u64(id));

	while (slot->item && model->apis.rows[slot->item].id != id)
		slot = xt_hash_next(&model->apis_by_id, slot);
	return slot;
}

/* Returns the index in apis of an XT_API_ID, or MODEL_API_UNKNOWN. */
static inline uint16_t model_api(const struct model *model, uint64_t id)
{
	return (uint16_t)model_api_slot(model, id)->item;
}

/*
 * Returns the innermost NVTX range around a call. Threads of PyTorch's engine work for a thread in
 * backward(), so they are in its ranges if they have none. Ranges of XLA's autotuner in its threads
 * are nested in those of the compilation. autograd: XT_AUTOGRAD_ID, 0: none.
 */
uint32_t model_range_at(const struct model *model, const struct range_call *call,
			uint32_t autograd);

/* Returns the text of a META key ("" if absent) and the value of an ACCOUNT key (0 if absent). */
const char *model_meta(const struct model *model, const char *key);

/* Returns the text of a property of a device, such as "name" or "uuid"; "" if it is unknown. */
const char *model_gpu(const struct model *model, uint32_t device, const char *property);

/* Whether the log lacks its beginning, to keep a limit of size or time. */
static inline bool model_is_cut(const struct model *model)
{
	return model->times.from_ns > model->times.start_ns;
}

/* Whether the log has all events since META `log.from`, as the user asked. */
bool model_is_flight_recording(const struct model *model);

/* When the process started, on the clock of its log. The start of the log if that is unknown. */
uint64_t model_process_start_ns(const struct model *model, const struct xt_log_header *header);
uint64_t model_account(const struct model *model, const char *name);
bool model_has_account(const struct model *model, const char *name);

/* Returns the name of a category of an NVTX domain as XT_STRING_ID; 0: none. */
static inline uint32_t model_category(const struct model *model, uint32_t domain, uint32_t category)
{
	return range_names_find(&model->titles[XT_RANGE_NAME_CATEGORY], domain, category);
}

/* Returns the last component of the path of the executable, "" if unknown. */
const char *model_process_name(const struct model *model);

/* Returns the mean time between two observations of a thread in a CPU log. */
uint64_t cpu_period_ns(const struct model *model);

#define PROCESS_TITLE_BYTES 256

/*
 * Writes the script that the process runs, such as "train.py", or else the name of its executable.
 */
void model_process_title(const struct model *model, char out[PROCESS_TITLE_BYTES]);

/* Returns whether the log defines the stack. Undefined ids are gaps in the table. */
static inline bool model_has_stack(const struct model *model, uint32_t id)
{
	const struct stack *stack = &model->stacks.rows[id];

	return id && id < model->stacks.count &&
	       (stack->seen_ns || stack->frame_count || stack->flags);
}

/* Returns a limit for the ids of stacks, those of joined ones included. */
static inline size_t model_stack_limit(const struct model *model)
{
	return model->stacks.count + (model->autograd.states.count ? JOINED_STACKS_MAX : 0);
}

/* Returns the log's stack of the launch itself. */
static inline uint32_t model_own_stack(const struct model *model, uint32_t stack)
{
	const struct autograd *autograd = &model->autograd;

	return autograd_is_joined(autograd, stack)
		       ? autograd->joined.list[stack - autograd->first_joined].own
		       : stack;
}

/* The row of an XT_STREAM_ID, or of an XT_COPY_SHAPE_ID. Unknown ids share row 0. */
static inline const struct stream *model_stream(const struct model *model, uint32_t id)
{
	return &model->streams.rows[id < model->streams.count ? id : 0];
}

static inline const struct copy_shape *model_copy_shape(const struct model *model, uint32_t id)
{
	return &model->copy_shapes.rows[id < model->copy_shapes.count ? id : 0];
}

/* The device of an XT_STREAM_ID; UINT32_MAX: unknown. */
static inline uint32_t model_device(const struct model *model, uint32_t stream)
{
	const struct stream *row = model_stream(model, stream);

	return row->defined ? row->device : UINT32_MAX;
}

/* Returns the text of an XT_STRING_ID as name. Accepts any id. */
static inline uint32_t model_string(const struct model *model, uint32_t string)
{
	return string < model->strings.count ? model->strings.rows[string] : NAME_EMPTY;
}

/* Returns the mangled kernel name of a shape as name. Accepts any id. */
static inline uint32_t model_kernel_name(const struct model *model, uint32_t shape)
{
	return model_string(model,
			    shape < model->shapes.count ? model->shapes.rows[shape].string : 0);
}

#endif
