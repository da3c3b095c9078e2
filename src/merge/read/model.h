/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept in memory of one log: all its tables but the calls, the work of the GPU and the
 * memory operations.
 *
 * A log is read twice. The first reading fills the model and passes over those
 * without unpacking them; so what is said late (modules that went, symbols, the last counters) is
 * known when the second reading brings the events. The log is foreign: ids may be undefined,
 * undefined rows are all zeros, and the accessors answer for any id.
 */
#ifndef XT_MERGE_MODEL_H
#define XT_MERGE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/base/names.h"
#include "merge/read/nodes.h"
#include "merge/read/pauses.h"
#include "merge/read/range_names.h"
#include "merge/read/ranges.h"
#include "xtrace/reader.h"

struct module {
	uint64_t load_ns;
	uint64_t unload_ns; /* UINT64_MAX: never */
	uint64_t start;
	uint64_t end;
	uint64_t bias;
	uint32_t id;
	uint32_t path;	   /* name */
	uint32_t build_id; /* name: the raw bytes */
	uint64_t seen_ns;  /* a stack of then goes through it; UINT64_MAX: none says so */
};

/* A Python frame of a stack. */
struct python_place {
	uint32_t frame; /* XT_PYTHON_FRAME_ID */
	uint32_t place; /* of the native frame that runs it; frame_count: beyond all of them */
};

/* What a Python frame is. */
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
	bool has_modules; /* each frame says what it lies in; else the time does */
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
};

struct copy_shape {
	uint32_t kind;	      /* CUPTI's copy kind */
	uint32_t source;      /* CUPTI's memory kind */
	uint32_t destination; /* likewise */
	bool is_async;
	uint32_t from_device; /* device + 1 between devices, else 0 */
	uint32_t to_device;   /* likewise */
};

struct embedded_symbol {
	uint64_t start;
	uint64_t bytes;
	uint32_t module;
	uint32_t name;
};

/* Where code stands in the source, or a function that was inlined there. */
struct place {
	uint32_t function; /* name, mangled; NAME_EMPTY: not known */
	uint32_t file;	   /* name; NAME_EMPTY: not known */
	uint32_t line;	   /* 0: not known */
};

struct embedded_source {
	uint64_t address;
	uint32_t module;
	uint32_t order; /* in the log */
	struct place place;
};

/* When stacks were taken of some calls only. */
struct stack_rates {
	uint64_t total_ns;
	uint64_t since_ns;		 /* 0: not at the moment */
	uint64_t one_in_min, one_in_max; /* 0: never */
};

/* When the tracer left CUPTI to another tool. */
struct cupti_handoffs {
	uint64_t count;
	uint64_t total_ns;
	uint64_t since_ns; /* 0: not at the moment */
	uint32_t who;	   /* name: the first one */
};

struct pair {
	uint32_t key;
	uint32_t text;	/* META */
	uint64_t value; /* ACCOUNT */
};

#define MODEL_PAIRS_MAX	  1024 /* different keys; what is beyond is not one of ours */
#define MODEL_APIS_MAX	  4096
#define MODEL_API_UNKNOWN 0

/* A table whose rows are found by id; row 0 is the undefined one. */
#define MODEL_ROWS(type)                                                                           \
	struct {                                                                                   \
		type *rows;                                                                        \
		size_t capacity;                                                                   \
		size_t count;	/* rows [0, count) */                                              \
		size_t defined; /* how often a row was defined */                                  \
	}

struct model {
	uint32_t pid;
	uint64_t start_ns;	      /* of the log, on its clock */
	uint64_t start_realtime_ns;   /* the same moment */
	uint64_t last_clock_ns;	      /* when the process looked at its clocks last; 0: never */
	struct names names;	      /* all texts of the log, as they are */
	MODEL_ROWS(uint32_t) strings; /* by XT_STRING_ID: name */
	MODEL_ROWS(struct stack) stacks;
	MODEL_ROWS(struct python_frame) python_frames;
	MODEL_ROWS(struct thread) threads;
	MODEL_ROWS(struct stream) streams;
	MODEL_ROWS(struct shape) shapes;
	MODEL_ROWS(struct copy_shape) copy_shapes;
	MODEL_ROWS(struct module) modules; /* by start, once loaded; module 0 is none */
	MODEL_ROWS(struct api) apis;	   /* in the order of the log; api 0 is unknown */
	MODEL_ROWS(struct pair) meta;
	MODEL_ROWS(struct pair) account;
	struct cupti_handoffs cupti_handoffs;
	struct stack_rates rates;
	MODEL_ROWS(struct embedded_symbol) symbols; /* by module and start, once loaded */
	MODEL_ROWS(struct embedded_source) sources; /* by module, address and order, likewise */
	struct ranges ranges;			    /* of NVTX */
	struct range_names category_names;	    /* likewise */
	struct range_names thread_names;
	struct range_names device_names, context_names; /* by CUPTI's numbers */
	struct range_names stream_names;		/* in place of the domain: the context */
	struct nodes nodes;				/* of CUDA graphs */
	struct pauses pauses;				/* of recording */
	MODEL_ROWS(uint64_t) renumbered_ns; /* when correlation ids began anew, in order */
	uint64_t *frames;		    /* of all stacks */
	uint32_t *frame_modules;	    /* XT_MODULE_ID of each, if known; else 0 */
	size_t frame_count;
	size_t frame_capacity;
	size_t frame_module_capacity;
	struct python_place *python; /* of all stacks */
	size_t python_count;
	size_t python_capacity;
	uint64_t *module_reach;	 /* by place in modules: the largest end so far */
	uint32_t *module_places; /* by XT_MODULE_ID: place in modules, or 0 */
	size_t module_place_capacity;
	uint16_t api_slots[MODEL_APIS_MAX * 2]; /* api by hash of its id */
	struct xt_damage damage;		/* of the chunks read so far */
	uint64_t rows_read[XT_KIND_COUNT];	/* likewise; events add theirs */
};

/* Reads the model from a reader that was just opened. 0, -ENOMEM, or -EFBIG if the log
 * expands beyond its limits; then there is no model. */
int model_load(struct model **model_out, struct xt_reader *reader);
void model_free(struct model *model);

/* Correlation ids of before and after the tracer was away are of different calls: what was at that time has
 * this to be added to its id. */
static inline uint64_t model_numbering(const struct model *model, uint64_t time_ns)
{
	size_t low = 0, high = model->renumbered_ns.count; /* the first that is later */

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (model->renumbered_ns.rows[middle] <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return (uint64_t)low << 32;
}

/* The module that a frame of a stack lies in, as its place in modules, or 0. place: of the frame, in
 * frames; address: its own. */
uint32_t model_module_of(const struct model *model, const struct stack *stack, size_t place,
			 uint64_t address);

/* The name that the program gave to a device, context or stream (which has a context); "" if none.
 * titles: one of the model's. */
const char *model_title(const struct model *model, const struct range_names *titles,
			uint32_t context, uint64_t number);

/* Where the search for an API begins. Scatters neighbouring ids: if they filled neighbouring slots,
 * the search for an id that is not there would visit all of them. */
static inline size_t model_api_slot(uint64_t id)
{
	return (size_t)(id * 0x9e3779b97f4a7c15u >> 32) % (MODEL_APIS_MAX * 2);
}

/* Place in apis of an XT_API_ID, or MODEL_API_UNKNOWN. */
static inline uint16_t model_api(const struct model *model, uint64_t id)
{
	size_t s = model_api_slot(id);

	while (model->api_slots[s] && model->apis.rows[model->api_slots[s]].id != id)
		s = (s + 1) % (MODEL_APIS_MAX * 2);
	return model->api_slots[s];
}

/* The text of a META key (an empty one if it is not there), and an ACCOUNT value (0). */
const char *model_meta(const struct model *model, const char *key);
uint64_t model_account(const struct model *model, const char *name);
bool model_has_account(const struct model *model, const char *name);

/* The name of a category of an NVTX domain as XT_STRING_ID, 0: it has none. */
static inline uint32_t model_category(const struct model *model, uint32_t domain, uint32_t category)
{
	return range_names_find(&model->category_names, domain, category);
}

/* The last component of the process' executable, "" if unknown. */
const char *model_process_name(const struct model *model);

#define PROCESS_TITLE_BYTES 256

/* The script that the process runs, such as "train.py", or else the name of its executable. */
void model_process_title(const struct model *model, char out[PROCESS_TITLE_BYTES]);

/* Undefined ids are gaps in the table: only those that a chunk defined have a stack. */
static inline bool model_has_stack(const struct model *model, uint32_t id)
{
	const struct stack *stack = &model->stacks.rows[id];

	return id && id < model->stacks.count &&
	       (stack->seen_ns || stack->frame_count || stack->flags);
}

/* The text of an XT_STRING_ID, as name; any id will do. */
static inline uint32_t model_string(const struct model *model, uint32_t string)
{
	return string < model->strings.count ? model->strings.rows[string] : NAME_EMPTY;
}

/* The mangled name of the kernel of a shape, as name; any id will do. */
static inline uint32_t model_kernel_name(const struct model *model, uint32_t shape)
{
	return model_string(model,
			    shape < model->shapes.count ? model->shapes.rows[shape].string : 0);
}

#endif
