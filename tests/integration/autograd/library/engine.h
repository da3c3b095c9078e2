/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the nodes of a graph: on one thread per device, or on the calling thread. The functions have
 * PyTorch's names, and their threads wait for each other as PyTorch's do:
 * torch/csrc/autograd/engine.cpp.
 */
#ifndef STANDIN_ENGINE_H
#define STANDIN_ENGINE_H

#include <atomic>
#include <condition_variable>
#include <unordered_map>

#include "node.h"

namespace torch::autograd
{
/* The gradients of a node's outputs, added up as they arrive. */
struct InputBuffer {
	variable_list buffer;

	void add(size_t place, const at::Tensor &grad);
};

struct GraphTask;

struct NodeTask {
	std::weak_ptr<GraphTask> base_;
	std::shared_ptr<Node> fn_; /* NULL: wakes the thread up */
	InputBuffer inputs_;
	int reentrant_depth_;
};

struct ReadyQueue {
	void push(NodeTask task);
	NodeTask pop();

	std::mutex mutex_;
	std::condition_variable not_empty_;
	std::vector<NodeTask> heap_;
};

/* One call of backward(). */
struct GraphTask {
	int id_;
	bool grad_mode_;
	bool multithreading_;
	int owner_; /* number of the device whose thread called; NO_DEVICE: another thread */
	int reentrant_depth_;
	std::atomic<uint64_t> outstanding_tasks_;
	std::atomic<bool> is_completed_;
	std::mutex mutex_; /* of the next two */
	std::unordered_map<Node *, InputBuffer> not_ready_;
	std::unordered_map<Node *, int> dependencies_;
	std::shared_ptr<ReadyQueue> cpu_ready_queue_;
	std::string place; /* tokens of the call: see truth.h */
};

struct Engine {
	static Engine &get_default_engine();

	variable_list execute(const std::vector<Edge> &roots, const variable_list &inputs,
			      bool keep_graph, bool create_graph, bool accumulate_grad,
			      const std::vector<Edge> &outputs);
	void execute_with_graph_task(const std::shared_ptr<GraphTask> &graph_task,
				     std::shared_ptr<Node> graph_root, InputBuffer &&input_buffer);
	void evaluate_function(std::shared_ptr<GraphTask> &graph_task, Node *func,
			       InputBuffer &inputs,
			       const std::shared_ptr<ReadyQueue> &cpu_ready_queue);
	void compute_dependencies(Node *root, GraphTask &task);
	void start_device_threads();
	void thread_init(int device, const std::shared_ptr<ReadyQueue> &ready_queue);
	void thread_main(const std::shared_ptr<GraphTask> &graph_task);
	const std::shared_ptr<ReadyQueue> &ready_queue(const GraphTask &graph_task, int device);

	std::once_flag start_device_threads_flag_;
	std::vector<std::shared_ptr<ReadyQueue>> device_ready_queues_;
};
} // namespace torch::autograd

#endif
