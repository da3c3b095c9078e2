/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XLA, which runs the programs of JAX: its NVTX ranges, and the compilations to which the work of
 * its autotuner belongs.
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
 *
 * While XLA compiles a program, a pass measures variants of operations in threads of a pool, and
 * waits for them. The pass and each trial have an NVTX range, but no number joins them. A pass
 * ends after its trials. So a trial belongs to a pass if it begins during the pass, and no other
 * thread compiles at any time of the pass.
 *
 * The tuner also works outside of the ranges of its trials, for example to fill buffers. Such a
 * call belongs to the pass if its stack shows that code that makes trials made it.
 */
#ifndef XT_MERGE_XLA_H
#define XT_MERGE_XLA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/read/ranges.h"
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

struct tuning_pass {
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t thread; /* XT_THREAD_ID */
	uint32_t range;	 /* node of the pass */
	bool is_alone;	 /* no other thread compiles at any time of it */
};

struct tuning_passes {
	LIST(struct tuning_pass);
};

/* All zeros is an empty table. */
struct xla_tuning {
	struct tuning_passes passes; /* by start */
	LIST(uint64_t) helpers;	     /* index of the pass and thread, ascending */
	uint8_t *in_trial;	     /* by node of the ranges */
	size_t node_count;
	uint8_t *in_tuner; /* by XT_STACK_ID: made by code that makes trials */
	size_t stack_count;
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
void xla_tuning_free(struct xla_tuning *tuning);

/*
 * Returns the node for a call whose own range is given: own nested in the range of a pass, or own
 * if it is not known to be the tuner's.
 */
uint32_t xla_tuning_range(const struct xla_tuning *tuning, const struct ranges *ranges,
			  const struct range_call *call, uint32_t own);

#endif
