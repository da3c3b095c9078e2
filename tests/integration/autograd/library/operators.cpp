/* SPDX-License-Identifier: Apache-2.0 */
#include "operators.h"

#include "truth.h"

using at::Tensor;

/* The nodes' backward functions. */
namespace torch::autograd
{
namespace generated
{
using namespace at::_ops;

#define NODE(type)                                                                                 \
	struct type : Node {                                                                       \
		std::string name() const override                                                  \
		{                                                                                  \
			return #type;                                                              \
		}                                                                                  \
		variable_list apply(variable_list &&grads) override;                               \
	};                                                                                         \
	variable_list type::apply(variable_list &&grads)

/* The derivative for one input, if it is needed. */
#define FOR(input, ...) (needs(input) ? __VA_ARGS__ : Tensor())

NODE(AddmmBackward0)
{
	return {FOR(0, sum::call(grads)), FOR(1, mm::call({grads[0], saved(2)})),
		FOR(2, mm::call({saved(1), grads[0]}))};
}

NODE(MmBackward0)
{
	return {FOR(0, mm::call({grads[0], saved(1)})), FOR(1, mm::call({saved(0), grads[0]}))};
}

NODE(MulBackward0)
{
	return {FOR(0, mul_Tensor::call({grads[0], saved(1)})),
		FOR(1, mul_Tensor::call({grads[0], saved(0)}))};
}

NODE(AddBackward0)
{
	return {grads[0], grads[0]};
}

NODE(ReluBackward0)
{
	return {threshold_backward::call({grads[0], saved(0)})};
}

NODE(SumBackward0)
{
	return {expand::call(grads)};
}

NODE(ThresholdBackwardBackward0)
{
	return {threshold_backward::call({grads[0], saved(1)}), Tensor()};
}

NODE(SliceBackwardBackward0)
{
	return {slice_Tensor::call(grads)};
}

NODE(SliceBackward0)
{
	return {slice_backward::call(grads)};
}

NODE(ViewBackward0)
{
	return {view::call(grads)};
}

NODE(ExpandBackward0)
{
	return {sum::call(grads)};
}

NODE(CopyBackwards)
{
	return {Tensor(), grads[0]};
}
}

/* Wraps the node of an operator that changed a view of a tensor. */
struct CopySlices : Node {
	explicit CopySlices(std::shared_ptr<Node> fn) : fn(std::move(fn))
	{
	}

	std::string name() const override
	{
		return "CopySlices";
	}

	variable_list apply(variable_list &&grads) override
	{
		Tensor base = at::_ops::mul_Tensor::call({grads[0], grads[0]});
		variable_list results = fn->apply({base});

		results[0] = base;
		return results;
	}

	std::shared_ptr<Node> fn;
};

namespace VariableType
{
template <class operation, class node_type> Tensor dispatch(const variable_list &inputs)
{
	std::shared_ptr<Node> node;
	Tensor result;

	if (any_requires_grad(inputs)) {
		node = std::shared_ptr<node_type>(new node_type);
		node->set_history(inputs);
	}
	{
		standin::forward_scope scope(node.get());

		result = operation::redispatch(inputs);
	}
	result.impl->grad_fn = node;
	result.impl->requires_grad = node != nullptr;
	return result;
}

static void copy_(const variable_list &inputs)
{
	std::shared_ptr<Node> node, slices;

	if (any_requires_grad(inputs)) {
		node = std::shared_ptr<Node>(new generated::CopyBackwards);
		node->set_history(inputs);
	}
	{
		standin::forward_scope scope(node.get());

		at::_ops::copy_::redispatch(inputs);
	}
	if (!node)
		return;
	slices = std::make_shared<CopySlices>(node);
	slices->set_history(inputs);
	inputs[0].impl->grad_fn = slices;
	inputs[0].impl->requires_grad = true;
}
}
}

namespace at::_ops
{
namespace generated = torch::autograd::generated;
namespace VariableType = torch::autograd::VariableType;

#define LAUNCHES(name)                                                                             \
	Tensor name::redispatch(const std::vector<Tensor> &inputs)                                 \
	{                                                                                          \
		standin::launch(#name "_kernel", inputs[0].impl->device);                          \
		return torch::autograd::make_tensor(inputs[0].impl->device);                       \
	}
#define LAUNCHES_NOTHING(name)                                                                     \
	Tensor name::redispatch(const std::vector<Tensor> &inputs)                                 \
	{                                                                                          \
		return torch::autograd::make_tensor(inputs[0].impl->device);                       \
	}
#define HAS_NODE(name, node)                                                                       \
	Tensor name::call(const std::vector<Tensor> &inputs)                                       \
	{                                                                                          \
		return VariableType::dispatch<name, generated::node>(inputs);                      \
	}
#define HAS_NO_NODE(name)                                                                          \
	Tensor name::call(const std::vector<Tensor> &inputs)                                       \
	{                                                                                          \
		return redispatch(inputs);                                                         \
	}

HAS_NODE(addmm, AddmmBackward0)
LAUNCHES(addmm)
HAS_NODE(mm, MmBackward0)
LAUNCHES(mm)
HAS_NODE(mul_Tensor, MulBackward0)
LAUNCHES(mul_Tensor)
HAS_NODE(add_Tensor, AddBackward0)
LAUNCHES(add_Tensor)
HAS_NODE(relu, ReluBackward0)
LAUNCHES(relu)
HAS_NODE(sum, SumBackward0)
LAUNCHES(sum)
HAS_NODE(threshold_backward, ThresholdBackwardBackward0)
LAUNCHES(threshold_backward)
HAS_NODE(slice_backward, SliceBackwardBackward0)
LAUNCHES(slice_backward)
HAS_NODE(slice_Tensor, SliceBackward0)
LAUNCHES_NOTHING(slice_Tensor)
HAS_NODE(view, ViewBackward0)
LAUNCHES_NOTHING(view)
HAS_NODE(expand, ExpandBackward0)
LAUNCHES_NOTHING(expand)
HAS_NO_NODE(gt_Scalar)
LAUNCHES(gt_Scalar)
HAS_NO_NODE(add__Tensor)
LAUNCHES(add__Tensor)
LAUNCHES(copy_)

Tensor copy_::call(const std::vector<Tensor> &inputs)
{
	VariableType::copy_(inputs);
	return inputs[0];
}
}
