/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU time by line of own code, and what each line's work is made of. docs/SUMMARY.md states which
 * line is charged, and what a wrapper is.
 */
#ifndef XT_MERGE_LINES_H
#define XT_MERGE_LINES_H

#include "merge/lines/own_lines.h"
#include "merge/steps/steps.h"
#include "merge/tables/table.h"

/* Parts of a training with PyTorch. Work of other programs is forward. */
enum line_pass { PASS_FORWARD, PASS_BACKWARD, PASS_RECOMPUTE, PASS_OPTIMIZER, PASSES };

enum part_kind { PART_LINE, PART_MODULE, PART_OPERATOR, PART_NODE, PART_WORK, PART_OWN, PART_NONE };

/* A line and its neighbours. */
struct line_source {
	struct cell_list texts;
	uint32_t from;	 /* number of the first one */
	bool is_changed; /* the file is newer than the recording, and was not read */
};

/* A line of own code (PART_OWN), or a part of its work. */
struct line_part {
	uint32_t id;	  /* from 1, in the order of the tables; 0: too small for them */
	uint32_t line_id; /* of the PART_OWN */
	uint32_t parent;  /* id */
	enum part_kind kind;
	uint32_t first_child, next, child_count; /* in lines.tree, largest first */
	uint64_t gpu_ns, pass_ns[PASSES], idle_ns, count, step_backward_ns;
	uint64_t alloc_bytes, peak_bytes, pool_bytes;
	struct step_weights steps; /* of the steps after the warm-up */
	/* Only of PART_OWN: */
	uint32_t place;	 /* of the line, in lines.places; PATH_ROOT: no own code */
	uint32_t inner;	 /* the place below its wrappers, on the largest path */
	uint32_t caller; /* key of the only line that calls it; 0: none; LINE_SEVERAL */
	struct line_source source;
};

/* Work with the same path and the same lines of own code. */
struct line_sum {
	uint32_t place;	       /* of its innermost line */
	uint32_t node;	       /* in run->paths */
	struct frame_list own; /* the frames of the place: later logs may mark more as own code */
	uint32_t key;	       /* of the line that is charged; 0: no own code */
	uint32_t next;	       /* number of another sum of the node; 0: none */
	enum line_pass pass;
	struct step_weights steps;
	uint64_t weights[WEIGHTS];
};

/* A path has either: work, or idle time. */
static inline uint64_t line_sum_ns(const struct line_sum *sum)
{
	return sum->weights[WEIGHT_GPU_TIME] + sum->weights[WEIGHT_GPU_IDLE];
}

struct lines {
	struct names texts;
	struct interner keys; /* each a struct line_key */
	struct paths places;  /* calls between lines. The name of a node is a key */
	uint32_t *known;      /* by node in run->paths: its place + 1; 0: look it up */
	size_t known_capacity;
	/* By node in run->paths: the line charged with most work of wrappers below it; 0: none. */
	uint32_t *charged;
	size_t charged_capacity;
	uint8_t *kinds; /* by name in run->paths: enum part_kind + 1; 0: look it up */
	size_t kind_capacity;
	uint32_t *modules; /* by name in run->paths of a module: its folded name in texts */
	struct interner sum_keys;
	struct line_sum *sums;
	size_t sum_capacity;
	uint32_t *sums_of; /* by node in run->paths: number of its first sum, from 1; 0: none */
	size_t sums_of_capacity;
	struct interner row_keys;
	struct paths tree;	 /* of the parts. Names are those of run->paths, or of rows */
	struct line_part *parts; /* by node in the tree */
	size_t part_capacity;
	uint32_t *order; /* nodes with an id */
	size_t order_count, order_capacity;
};

/* "matmul (llm.c:159)". The caller frees it. */
char *lines_key_text(const struct lines *lines, uint32_t key);

/*
 * The line charged with most work below a node of run->paths, if wrappers launched the work. NULL:
 * none, or an output without lines. Valid after the end of analysis_lines. The caller frees it.
 */
char *lines_charged_text(const struct run *run, uint32_t node);

/*
 * Returns the number, from 1, of a slow step that has nearly all time of the line of a node.
 * Returns 0 if there is none, or if there are several GPUs. Valid after the end of analysis_lines.
 */
uint32_t lines_only_step(const struct run *run, uint32_t node);

/* The state of analysis_lines. Outputs list it after analysis_steps. */
extern const struct exporter analysis_lines;

#endif
