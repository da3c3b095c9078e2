/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface for Python, by ctypes. A tensor is a pointer that belongs to the caller, who frees
 * it with tensor_free().
 */
#include <cstdio>

#include "engine.h"
#include "operators.h"
#include "truth.h"

using namespace torch::autograd;
using at::Tensor;

namespace
{
typedef void hook();
typedef void *run_forward(void);
typedef void *call_python(void *);

CUgraphExec captured;
thread_local std::vector<standin::base_place *> recomputed;

Tensor *give(const Tensor &tensor)
{
	return new Tensor(tensor);
}
}

#define UNARY(name)                                                                                \
	Tensor *name(const Tensor *a)                                                              \
	{                                                                                          \
		return give(at::_ops::name::call({*a}));                                           \
	}
#define BINARY(name)                                                                               \
	Tensor *name(const Tensor *a, const Tensor *b)                                             \
	{                                                                                          \
		return give(at::_ops::name::call({*a, *b}));                                       \
	}

extern "C" {
UNARY(relu)
UNARY(sum)
UNARY(slice_Tensor)
UNARY(view)
UNARY(gt_Scalar)
BINARY(mm)
BINARY(mul_Tensor)
BINARY(add_Tensor)
BINARY(copy_)

Tensor *addmm(const Tensor *bias, const Tensor *a, const Tensor *b)
{
	return give(at::_ops::addmm::call({*bias, *a, *b}));
}

Tensor *tensor_new(int device, int requires_grad)
{
	Tensor tensor = make_tensor(device);

	tensor.impl->requires_grad = requires_grad;
	return give(tensor);
}

void tensor_free(Tensor *tensor)
{
	delete tensor;
}

Tensor *tensor_grad(const Tensor *tensor)
{
	return tensor->impl->grad.impl ? give(tensor->impl->grad) : nullptr;
}

void tensor_clear_grad(const Tensor *tensor)
{
	tensor->impl->grad = Tensor();
}

void register_post_accumulate_grad_hook(const Tensor *tensor, hook *function)
{
	tensor->impl->post_accumulate_grad_hook = function;
}

/* grads: NULL for ones. */
void THPEngine_run_backward(Tensor **tensors, Tensor **grads, int count, int create_graph)
{
	std::vector<Edge> roots;
	variable_list inputs;

	for (int i = 0; i < count; i++) {
		roots.push_back(gradient_edge(*tensors[i]));
		inputs.push_back(grads ? *grads[i] : make_tensor(tensors[i]->impl->device));
	}
	Engine::get_default_engine().execute(roots, inputs, true, create_graph, true, {});
}

/* Members of the Python object of a node: torch.autograd.function.FunctionCtx. */
struct function_context {
	PyNode *node;
	std::shared_ptr<PyNode> *owner;
};

/*
 * Creates the node, then calls the Python function forward(), whose object this returns. object:
 * the context as Python object. Call THPFunction_connect() next.
 */
void *THPFunction_apply(const Tensor *input, void *object, function_context *context,
			const char *class_name, run_forward *forward, call_python *backward)
{
	std::shared_ptr<PyNode> node;
	bool grad_mode = autograd_state().grad_mode;
	void *result;

	if (any_requires_grad({*input})) {
		node = std::make_shared<PyNode>();
		node->obj = object;
		node->class_name = class_name;
		node->backward = backward;
		node->set_history({*input});
		*context = {node.get(), new std::shared_ptr<PyNode>(node)};
	}
	{
		standin::forward_scope scope(node.get());

		autograd_state().grad_mode = false;
		result = forward();
		autograd_state().grad_mode = grad_mode;
	}
	return result;
}

/* Makes the node the one of the result. */
void THPFunction_connect(const Tensor *result, function_context *context)
{
	if (!context->owner)
		return;
	result->impl->grad_fn = *context->owner;
	result->impl->requires_grad = true;
	delete context->owner;
	context->owner = nullptr;
}

int set_grad_enabled(int enabled)
{
	bool before = autograd_state().grad_mode;

	autograd_state().grad_mode = enabled;
	return before;
}

int set_multithreading_enabled(int enabled)
{
	bool before = autograd_state().multithreading;

	autograd_state().multithreading = enabled;
	return before;
}

int current_graph_task_id()
{
#ifdef STANDIN_NO_TASK
	return -1;
#else
	return get_current_graph_task_id();
#endif
}

/* Nodes that are created from now on call this when they run. NULL: no function. */
void set_unpack_hook(hook *function)
{
	autograd_state().unpack_hook = function ? std::function<void()>(function) : nullptr;
}

void set_user_file(const char *path)
{
	standin::set_user_file(path);
}

/* The caller's place, for recompute_begin(). */
void here(char *out, size_t out_bytes)
{
	snprintf(out, out_bytes, "%s", standin::here().c_str());
}

/* Launches until recompute_end() are of a function that a checkpoint at this place runs again. */
void recompute_begin(const char *place)
{
	recomputed.push_back(new standin::base_place(std::string(place) + ".r"));
}

void recompute_end()
{
	delete recomputed.back();
	recomputed.pop_back();
}

void capture_begin()
{
	autograd_state().stream = standin::new_stream();
	standin::check(cuStreamBeginCapture(autograd_state().stream,
					    CU_STREAM_CAPTURE_MODE_RELAXED));
}

void capture_end()
{
	CUgraph graph;

	standin::check(cuStreamEndCapture(autograd_state().stream, &graph));
	standin::check(cuGraphInstantiate(&captured, graph, 0));
	autograd_state().stream = nullptr;
}

void replay()
{
	standin::check(cuGraphLaunch(captured, nullptr));
}

void new_thread_stream()
{
	autograd_state().stream = standin::new_stream();
}

void synchronize()
{
	int count;

	standin::use_device(0);
	standin::check(cuDeviceGetCount(&count));
	for (int device = 0; device < count; device++) {
		standin::use_device(device);
		standin::check(cuCtxSynchronize());
	}
}
}
