/* SPDX-License-Identifier: Apache-2.0 */
#include "engine.h"

#include <algorithm>
#include <thread>

#include "operators.h"
#include "truth.h"

namespace torch::autograd
{
namespace
{
constexpr int NO_DEVICE = -2;
constexpr int CPU_DEVICE = -1;

thread_local int worker_device = NO_DEVICE;
thread_local int current_depth;
thread_local std::shared_ptr<GraphTask> current_graph_task;
thread_local std::shared_ptr<Node> current_evaluating_node;
thread_local std::shared_ptr<ReadyQueue> local_ready_queue;

/* Sets a variable until its end. */
template <class value> struct guard {
	guard(value &variable, value now) : variable(variable), before(std::move(variable))
	{
		variable = std::move(now);
	}
	~guard()
	{
		variable = std::move(before);
	}
	guard(const guard &) = delete;
	guard &operator=(const guard &) = delete;

	value &variable;
	value before;
};

/* Nodes that were created last run first. Nodes of nested calls of backward() precede others. */
bool runs_after(const NodeTask &a, const NodeTask &b)
{
	if (!a.fn_ || !b.fn_)
		return a.fn_ && !b.fn_;
	if (a.reentrant_depth_ != b.reentrant_depth_)
		return a.reentrant_depth_ < b.reentrant_depth_;
	return a.fn_->sequence_nr_ < b.fn_->sequence_nr_;
}

std::string place_of(const Node &node, const GraphTask &task)
{
	bool has_place = node.sequence_nr_ != UINT64_MAX;
	std::string place = has_place ? node.facts_.place : task.place, name = node.name();

	/* Names of kernels have no angle brackets. */
	std::replace(name.begin(), name.end(), '<', '%');
	std::replace(name.begin(), name.end(), '>', '%');
	return place + (place.empty() ? "" : ".") +
	       (has_place && !node.facts_.launched ? "v$" : "b$") + name;
}
}

#ifndef STANDIN_NO_NODE
std::shared_ptr<Node> get_current_node()
{
#if defined(STANDIN_GARBAGE)
	if (current_evaluating_node) {
		std::shared_ptr<Node> wrong(std::shared_ptr<Node>(), (Node *)0x123456789ab8);

		return wrong;
	}
#elif defined(STANDIN_UNMAPPED)
	static struct {
		uintptr_t vtable;
		uintptr_t weak[2];
		uint64_t rest[64];
	} memory;
	static std::shared_ptr<int> owner = std::make_shared<int>(0);

	if (current_evaluating_node) {
		std::shared_ptr<Node> wrong(owner, reinterpret_cast<Node *>(&memory));

		memory.vtable = 0x123456789ab8;
		memory.weak[0] = reinterpret_cast<uintptr_t>(&memory);
		memory.weak[1] = reinterpret_cast<uintptr_t *>(&wrong)[1];
		memory.rest[3] = 1;
		return wrong;
	}
#endif
	return current_evaluating_node;
}
#endif

#ifndef STANDIN_NO_TASK
int get_current_graph_task_id()
{
	return current_graph_task ? current_graph_task->id_ : -1;
}
#endif

void InputBuffer::add(size_t place, const at::Tensor &grad)
{
	if (buffer.size() <= place)
		buffer.resize(place + 1);
	if (!grad.impl)
		return;
	buffer[place] = buffer[place].impl ? at::_ops::add_Tensor::call({buffer[place], grad})
					   : grad;
}

void ReadyQueue::push(NodeTask task)
{
	std::lock_guard<std::mutex> lock(mutex_);

	heap_.push_back(std::move(task));
	std::push_heap(heap_.begin(), heap_.end(), runs_after);
	not_empty_.notify_one();
}

NodeTask ReadyQueue::pop()
{
	std::unique_lock<std::mutex> lock(mutex_);
	NodeTask task;

	not_empty_.wait(lock, [this] { return !heap_.empty(); });
	std::pop_heap(heap_.begin(), heap_.end(), runs_after);
	task = std::move(heap_.back());
	heap_.pop_back();
	return task;
}

Engine &Engine::get_default_engine()
{
	static Engine *engine = new Engine; /* its threads outlive main() */

	return *engine;
}

void Engine::start_device_threads()
{
	int count;

	standin::use_device(0);
	standin::check(cuDeviceGetCount(&count));
	for (int device = 0; device < count; device++)
		device_ready_queues_.push_back(std::make_shared<ReadyQueue>());
	for (int device = 0; device < count; device++)
		std::thread(&Engine::thread_init, this, device, device_ready_queues_[device])
			.detach();
}

void Engine::thread_init(int device, const std::shared_ptr<ReadyQueue> &ready_queue)
{
	standin::init_python_thread();
	worker_device = device;
	standin::use_device(device);
	local_ready_queue = ready_queue;
	thread_main(nullptr);
}

const std::shared_ptr<ReadyQueue> &Engine::ready_queue(const GraphTask &graph_task, int device)
{
	return device < 0 || !graph_task.multithreading_ ? graph_task.cpu_ready_queue_
							 : device_ready_queues_[device];
}

/* graph_task: returns when it is completed. NULL: never returns. */
void Engine::thread_main(const std::shared_ptr<GraphTask> &graph_task)
{
	while (!graph_task || !graph_task->is_completed_) {
		NodeTask task = local_ready_queue->pop();
		std::shared_ptr<GraphTask> local = task.base_.lock();

		if (!local || !task.fn_)
			continue;
		{
			guard<bool> mode(autograd_state().grad_mode, local->grad_mode_);
			guard<CUstream> stream(autograd_state().stream, task.fn_->facts_.stream);
			guard<std::function<void()>> hook(autograd_state().unpack_hook, nullptr);
			guard<std::shared_ptr<GraphTask>> graph(current_graph_task, local);
			guard<std::shared_ptr<Node>> node(current_evaluating_node, task.fn_);
			standin::base_place place(place_of(*task.fn_, *local));

			evaluate_function(local, task.fn_.get(), task.inputs_,
					  local->cpu_ready_queue_);
		}
		task.fn_.reset();
		if (--local->outstanding_tasks_)
			continue;
		local->is_completed_ = true;
		if (worker_device != local->owner_)
			ready_queue(*local, local->owner_)->push({local, nullptr, {}, 0});
	}
}

void Engine::evaluate_function(std::shared_ptr<GraphTask> &graph_task, Node *func,
			       InputBuffer &inputs,
			       const std::shared_ptr<ReadyQueue> &cpu_ready_queue)
{
	variable_list outputs;

	(void)cpu_ready_queue;
	if (func->facts_.unpack_hook)
		func->facts_.unpack_hook();
	if (std::all_of(inputs.buffer.begin(), inputs.buffer.end(),
			[](const at::Tensor &tensor) { return tensor.impl; }))
		outputs = func->apply(std::move(inputs.buffer));
	outputs.resize(func->next_edges_.size());
	for (size_t i = 0; i < outputs.size(); i++) {
		const Edge &next = func->next_edges_[i];
		std::unique_lock<std::mutex> lock(graph_task->mutex_);

		if (!next.function)
			continue;
		graph_task->not_ready_[next.function.get()].add(next.input_nr, outputs[i]);
		if (--graph_task->dependencies_[next.function.get()])
			continue;
		graph_task->outstanding_tasks_++;
		ready_queue(*graph_task, next.function->facts_.device)
			->push({graph_task, next.function,
				std::move(graph_task->not_ready_[next.function.get()]),
				graph_task->reentrant_depth_});
	}
}

void Engine::compute_dependencies(Node *root, GraphTask &task)
{
	std::vector<Node *> stack{root};

	task.dependencies_[root] = 0;
	while (!stack.empty()) {
		Node *node = stack.back();

		stack.pop_back();
		for (const Edge &edge : node->next_edges_)
			if (edge.function && !task.dependencies_[edge.function.get()]++)
				stack.push_back(edge.function.get());
	}
}

variable_list Engine::execute(const std::vector<Edge> &roots, const variable_list &inputs,
			      bool keep_graph, bool create_graph, bool accumulate_grad,
			      const std::vector<Edge> &outputs)
{
	static std::atomic<int> next_id;
	bool skips_root = roots.size() == 1;
	std::shared_ptr<Node> root = skips_root ? roots[0].function
						: std::make_shared<GraphRoot>(roots, inputs);
	std::shared_ptr<GraphTask> task = std::make_shared<GraphTask>();
	InputBuffer buffer;

	(void)keep_graph;
	(void)accumulate_grad;
	(void)outputs;
	/* A nested call runs on the queue of the thread that makes it. */
	if (!local_ready_queue)
		local_ready_queue = std::make_shared<ReadyQueue>();
	task->id_ = next_id++;
	task->grad_mode_ = create_graph;
	task->multithreading_ = autograd_state().multithreading;
	task->owner_ = worker_device;
	task->reentrant_depth_ = worker_device == NO_DEVICE ? 0 : current_depth + 1;
	task->cpu_ready_queue_ = local_ready_queue;
	task->outstanding_tasks_ = 1;
	task->is_completed_ = false;
	task->place = standin::here();
	compute_dependencies(root.get(), *task);
	if (skips_root)
		buffer.add(roots[0].input_nr, inputs[0]);
	execute_with_graph_task(task, root, std::move(buffer));
	return {};
}

void Engine::execute_with_graph_task(const std::shared_ptr<GraphTask> &graph_task,
				     std::shared_ptr<Node> graph_root, InputBuffer &&input_buffer)
{
	std::call_once(start_device_threads_flag_, &Engine::start_device_threads, this);

	guard<int> device(worker_device, worker_device == NO_DEVICE ? CPU_DEVICE : worker_device);
	guard<int> depth(current_depth, graph_task->reentrant_depth_);

	graph_task->owner_ = worker_device;
	ready_queue(*graph_task, graph_root->facts_.device)
		->push({graph_task, graph_root, std::move(input_buffer),
			graph_task->reentrant_depth_});
	graph_root.reset();
	thread_main(graph_task);
}
}
