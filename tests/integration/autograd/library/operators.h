/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators, with the names that PyTorch gives their functions. call() creates the autograd node,
 * then redispatch() launches.
 */
#ifndef STANDIN_OPERATORS_H
#define STANDIN_OPERATORS_H

#include "node.h"

namespace at::_ops
{
#define OPERATOR(name)                                                                             \
	struct name {                                                                              \
		static Tensor call(const std::vector<Tensor> &inputs);                             \
		static Tensor redispatch(const std::vector<Tensor> &inputs);                       \
	}

/* These have a node, and launch. */
OPERATOR(addmm);
OPERATOR(mm);
OPERATOR(mul_Tensor);
OPERATOR(add_Tensor);
OPERATOR(relu);
OPERATOR(sum);
OPERATOR(threshold_backward);
OPERATOR(slice_backward);
/* These have a node, and launch nothing. */
OPERATOR(slice_Tensor);
OPERATOR(view);
OPERATOR(expand);
/* These have no node, and launch. */
OPERATOR(gt_Scalar);
OPERATOR(add__Tensor);
/* Copies the second tensor to a view of the first one. Its node is inside a CopySlices node. */
OPERATOR(copy_);
#undef OPERATOR
} // namespace at::_ops

#endif
