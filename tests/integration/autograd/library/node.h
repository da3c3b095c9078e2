/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors without data, and autograd nodes with the memory layout of PyTorch 2.11 where the tracer
 * reads them: torch/csrc/autograd/function.h, class Node.
 */
#ifndef STANDIN_NODE_H
#define STANDIN_NODE_H

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <cuda.h>

namespace torch::autograd
{
struct Node;
}

namespace at
{
struct TensorImpl;

/* An undefined tensor has no impl. */
struct Tensor {
	std::shared_ptr<TensorImpl> impl;
};

struct TensorImpl {
	int device = 0;
	bool requires_grad = false;
	std::shared_ptr<torch::autograd::Node> grad_fn;
	std::weak_ptr<torch::autograd::Node> grad_accumulator;
	Tensor grad;
	std::function<void()> post_accumulate_grad_hook;
};

namespace sequence_number
{
uint64_t peek();
uint64_t get_and_increment();
} // namespace sequence_number

struct RecordFunction {
	static uint64_t currentThreadId();
};
} // namespace at

namespace torch::autograd
{
using variable_list = std::vector<at::Tensor>;

struct Edge {
	std::shared_ptr<Node> function;
	uint32_t input_nr = 0;
};
static_assert(sizeof(Edge) == 24, "as in PyTorch");

/* Facts that the stand-in needs about a node. */
struct node_facts {
	/* Has the node's address, as memory of tensors has that PyTorch's nodes point to. */
	std::vector<Node *> owners;
	std::string place; /* tokens of the forward line: see truth.h */
	variable_list saved;
	std::function<void()> unpack_hook; /* recomputes the saved tensors */
	CUstream stream;
	int device;
	bool launched; /* its forward function launched a kernel */
};

struct Node : std::enable_shared_from_this<Node> {
	explicit Node(uint64_t sequence_nr = at::sequence_number::get_and_increment());
	virtual ~Node() = default;
	virtual variable_list apply(variable_list &&grads) = 0;
	virtual std::string name() const = 0;

	/* Connects the node to the nodes of its function's inputs. */
	void set_history(const variable_list &inputs);

	bool needs(size_t input) const
	{
		return next_edges_[input].function != nullptr;
	}

	const at::Tensor &saved(size_t input) const
	{
		return facts_.saved[input];
	}

#ifdef STANDIN_MOVED
	uint64_t moved_ = 0;
#endif
#ifdef STANDIN_SWAPPED
	uint64_t thread_id_;
#else
	uint64_t sequence_nr_;
#endif
	uint64_t topological_nr_ = 0;
	mutable bool has_parent_ = false;
#ifdef STANDIN_SWAPPED
	uint64_t sequence_nr_;
#else
	uint64_t thread_id_;
#endif
	std::mutex mutex_;
	std::vector<Edge> next_edges_;
	void *pyobj_ = nullptr;
	node_facts facts_;
	char rest_[472 - 128 - sizeof(node_facts)];
};

struct AccumulateGrad : Node {
	explicit AccumulateGrad(const at::Tensor &variable);
	variable_list apply(variable_list &&grads) override;
	std::string name() const override
	{
		return "AccumulateGrad";
	}

	at::Tensor variable;
};

struct GraphRoot : Node {
	GraphRoot(const std::vector<Edge> &roots, const variable_list &grads);
	variable_list apply(variable_list &&grads) override;
	std::string name() const override
	{
		return "GraphRoot";
	}

	variable_list grads;
};

/* The node of a function that is written in Python. */
struct PyNode : Node {
	variable_list apply(variable_list &&grads) override;
	std::string name() const override
	{
		return class_name;
	}

	void *obj = nullptr; /* PyObject; belongs to Python */
	std::string class_name;
	void *(*backward)(void *) = nullptr;
};

/* Modes of the calling thread. */
struct AutogradState {
	bool grad_mode = true;
	bool multithreading = true;
	std::function<void()> unpack_hook; /* for nodes created from now on */
	CUstream stream = nullptr;
};
AutogradState &autograd_state();

Edge gradient_edge(const at::Tensor &tensor);

/* Whether a function of these inputs has a node. */
bool any_requires_grad(const variable_list &inputs);
at::Tensor make_tensor(int device);

std::shared_ptr<Node> get_current_node();
int get_current_graph_task_id();
} // namespace torch::autograd

#endif
