/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames for the NVTX ranges of XLA, which runs the programs of JAX.
 *
 * XLA opens a range in domain TSL around each run of a program, and one around each operation:
 *
 *	XlaModule:#hlo_module=jit_step,program_id=7#
 *	Thunk:#name=jit(step)/jvp()/dot_general,hlo_op=gemm_fusion.1,unique_hlo_op_id=9#
 *
 * They become the frames jit(step), jvp(), dot_general and [hlo gemm_fusion.1].
 */
#ifndef XT_MERGE_XLA_RANGES_H
#define XT_MERGE_XLA_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "merge/naming/paths.h"
#include "merge/read/model.h"

enum xla_kind {
	XLA_NONE,    /* another range */
	XLA_PROGRAM, /* a run of a program */
	XLA_TRIAL,   /* a run of an operation, to measure it while a program is compiled */
	XLA_OPERATION,
};

/* The texts belong to the caller of xla_range_parse(). */
struct xla_range {
	enum xla_kind kind;
	struct xt_bytes name; /* of the module, or scopes of the operation; may be empty */
	struct xt_bytes operation;
};

/* Parses the texts of a range. */
struct xla_range xla_range_parse(struct xt_bytes domain, struct xt_bytes text);

/* Returns the kind of a node of the model's ranges. */
enum xla_kind xla_range_kind(const struct model *model, uint32_t range);

/* Takes the first scope from a path such as "jit(f)/while/add". False if there is none. */
bool xla_next_scope(struct xt_bytes *path, struct xt_bytes *scope_out);

/* Returns whether XLA gives this name to the module of a scope: jit__lambda_ to jit(<lambda>). */
bool xla_is_module_of(struct xt_bytes module, struct xt_bytes scope);

/*
 * Adds the frames of a range of XLA below a node. Scopes of the ranges around it are left out.
 * is_root: no Python frame precedes it, so the program becomes "[jit step]". Returns the last node;
 * PATH_FAILED if out of memory.
 */
uint32_t xla_add_frames(struct paths *paths, const struct model *model, uint32_t base,
			uint32_t range, bool is_root);

#endif
