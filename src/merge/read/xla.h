/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XLA, which runs the programs of JAX: its NVTX ranges, and the compilations to which the work of
 * its autotuner belongs (xla_tuning.h).
 *
 * XLA opens a range in domain TSL around each run of a program, and one around each operation:
 *
 *	XlaModule:#hlo_module=jit_step,program_id=7#
 *	Thunk:#name=jit(step)/jvp()/dot_general,hlo_op=gemm_fusion.1,unique_hlo_op_id=9#
 *
 * Others are around the compilation of a program, and around the passes of the compiler:
 *
 *	XlaCompile:#module=jit_step#
 *	XlaPass:#name=algsimp,module=jit_step,program_id=7#
 */
#ifndef XT_MERGE_XLA_H
#define XT_MERGE_XLA_H

#include <stdbool.h>
#include <stdint.h>

#include "xtrace/reader.h"

struct model;

enum xla_kind {
	XLA_NONE,    /* another range */
	XLA_PROGRAM, /* a run of a program */
	XLA_TRIAL,   /* a run of an operation, to measure it while a program is compiled */
	XLA_OPERATION,
	XLA_COMPILE, /* a compilation of a program */
	XLA_PASS,    /* a step of it */
	XLA_TUNING,  /* the pass that makes trials, in other threads, and waits for them */
	XLA_KINDS
};

/* The texts belong to the caller of xla_range_parse(). */
struct xla_range {
	enum xla_kind kind;
	struct xt_bytes name; /* of the module or pass, or scopes of the operation */
	struct xt_bytes operation;
};

/* The range of a node of the model's ranges. Its texts belong to the model. */
struct xla_range xla_range_of(const struct model *model, uint32_t range);

/* Returns the kind of a node of the model's ranges. */
enum xla_kind xla_range_kind(const struct model *model, uint32_t range);

/* Takes the first scope from a path such as "jit(f)/while/add". False if there is none. */
bool xla_next_scope(struct xt_bytes *path, struct xt_bytes *scope_out);

/* Returns whether XLA gives this name to the module of a scope: jit__lambda_ to jit(<lambda>). */
bool xla_is_module_of(struct xt_bytes module, struct xt_bytes scope);

/*
 * Fills the model's table of autotuning, and adds nodes to its ranges. Call it after
 * ranges_index(), once.
 */
void xla_join(struct model *model);

#endif
