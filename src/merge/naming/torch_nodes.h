/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of PyTorch's autograd nodes, and the functions that create them.
 */
#ifndef XT_MERGE_TORCH_NODES_H
#define XT_MERGE_TORCH_NODES_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
