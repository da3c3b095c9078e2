/* SPDX-License-Identifier: Apache-2.0 */
#include "node.h"

#include <atomic>
#include <cstddef>

#include "operators.h"
#include "truth.h"

namespace at
{
namespace sequence_number
{
static thread_local uint64_t sequence_nr_;

uint64_t peek()
{
	return sequence_nr_;
}

uint64_t get_and_increment()
{
	return sequence_nr_++;
}
}

uint64_t RecordFunction::currentThreadId()
{
	static std::atomic<uint64_t> next_thread_id;
	static thread_local uint64_t current_thread_id;

	if (!current_thread_id)
		current_thread_id = ++next_thread_id;
	return current_thread_id;
}
}

namespace torch::autograd
{
#if !defined(STANDIN_MOVED) && !defined(STANDIN_SWAPPED)
#if defined(__x86_64__)
static_assert(sizeof(Node) == 472, "as in PyTorch 2.11");
#endif
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
static_assert(offsetof(Node, sequence_nr_) == 24 && offsetof(Node, topological_nr_) == 32 &&
		      offsetof(Node, has_parent_) == 40 && offsetof(Node, thread_id_) == 48 &&
		      offsetof(Node, next_edges_) == 56 + sizeof(std::mutex) &&
		      offsetof(Node, pyobj_) == 80 + sizeof(std::mutex) &&
		      offsetof(PyNode, obj) == sizeof(Node),
	      "as in PyTorch 2.11");
#endif

AutogradState &autograd_state()
{
	static thread_local AutogradState state;

	return state;
}

Node::Node(uint64_t sequence_nr)
{
	sequence_nr_ = sequence_nr;
	thread_id_ = at::RecordFunction::currentThreadId();
	facts_.owners = {nullptr, nullptr, nullptr, this};
	facts_.place = standin::here();
	facts_.unpack_hook = autograd_state().unpack_hook;
	facts_.stream = autograd_state().stream;
	facts_.device = 0;
	facts_.launched = false;
}

void Node::set_history(const variable_list &inputs)
{
	for (const at::Tensor &input : inputs) {
		Edge edge = gradient_edge(input);

		if (edge.function && topological_nr_ <= edge.function->topological_nr_)
			topological_nr_ = edge.function->topological_nr_ + 1;
		if (edge.function)
			edge.function->has_parent_ = true;
		next_edges_.push_back(edge);
		facts_.device = input.impl->device;
	}
	facts_.saved = inputs;
}

Edge gradient_edge(const at::Tensor &tensor)
{
	std::shared_ptr<Node> node = tensor.impl->grad_fn;

	if (node || !tensor.impl->requires_grad)
		return {node, 0};
	node = tensor.impl->grad_accumulator.lock();
	if (!node) {
		node = std::make_shared<AccumulateGrad>(tensor);
		tensor.impl->grad_accumulator = node;
	}
	return {node, 0};
}

bool any_requires_grad(const variable_list &inputs)
{
	if (!autograd_state().grad_mode)
		return false;
	for (const at::Tensor &input : inputs)
		if (input.impl->requires_grad)
			return true;
	return false;
}

at::Tensor make_tensor(int device)
{
	at::Tensor tensor{std::make_shared<at::TensorImpl>()};

	tensor.impl->device = device;
	return tensor;
}

AccumulateGrad::AccumulateGrad(const at::Tensor &variable) : Node(UINT64_MAX), variable(variable)
{
	facts_.device = variable.impl->device;
}

variable_list AccumulateGrad::apply(variable_list &&grads)
{
	at::TensorImpl &impl = *variable.impl;

	if (!impl.grad.impl)
		impl.grad = grads[0];
	else if (autograd_state().grad_mode)
		impl.grad = at::_ops::add_Tensor::call({impl.grad, grads[0]});
	else
		at::_ops::add__Tensor::call({impl.grad, grads[0]});
	if (impl.post_accumulate_grad_hook)
		impl.post_accumulate_grad_hook();
	return {};
}

GraphRoot::GraphRoot(const std::vector<Edge> &roots, const variable_list &grads) : grads(grads)
{
	next_edges_ = roots;
	facts_.device = -1;
}

variable_list GraphRoot::apply(variable_list &&)
{
	return grads;
}

variable_list PyNode::apply(variable_list &&grads)
{
	at::Tensor *result = static_cast<at::Tensor *>(backward(new at::Tensor(grads[0])));
	variable_list results;

	if (result)
		results.push_back(*result);
	delete result;
	results.resize(next_edges_.size());
	return results;
}
}
