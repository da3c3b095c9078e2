/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Composes the call paths of joined stacks (read/autograd.h). A path has the frames of the forward
 * pass, a label such as "[backward] AddmmBackward0", and the node's own Python frames.
 *
 * A path is exact if the forward launch was made by the operator or function that created the node.
 * docs/internals/AUTOGRAD.md states the rules. The names of PyTorch's autograd nodes tell which
 * functions create them.
 */
#ifndef XT_MERGE_JOINED_PATHS_H
#define XT_MERGE_JOINED_PATHS_H

#include <stdbool.h>
#include <stddef.h>

#include "merge/naming/frames.h"

#define LABEL_ANY_BACKWARD "[backward"
#define LABEL_RECOMPUTE	   "[recompute]"

/*
 * Writes the short name of a node: "AddmmBackward0". type: the mangled C++ type; class_name: the
 * Python class of a Python function's node, or "".
 */
void torch_node_label(const char *type, const char *class_name, char *out, size_t out_bytes);

/*
 * Returns whether a function, by its mangled name, is the operator that creates nodes of this type.
 * It is at::_ops::addmm::call for AddmmBackward0, or a function of the class T for CppNode<T>.
 */
bool torch_node_is_made_by(const char *type, const char *function);

/*
 * Whether a Python function, by its qualified or plain name, is the forward() of the class whose
 * node has this name: "MyFunction.forward" for "MyFunctionBackward".
 */
bool torch_class_is_made_by(const char *class_name, const char *function);

enum join_result {
	JOIN_NO_BACKWARD, /* the stack is not a joined one */
	JOIN_NONE,	  /* the forward path is unknown */
	JOIN_INFERRED,	  /* the place is near the forward line */
	JOIN_EXACT,
	JOIN_RESULTS
};

/*
 * The functions below accept stacks of the log for which frames_has_stack() is true, and joined
 * ones. They build paths at the first use, in the thread that builds the tree.
 */

/* The path node of the innermost frame. */
uint32_t joined_paths_node(const struct frames *frames, uint32_t stack);

/* Appends the frames of the path. */
void joined_paths_list(const struct frames *frames, uint32_t stack, struct path_items *list);

enum join_result joined_paths_result(const struct frames *frames, uint32_t stack);

#endif
