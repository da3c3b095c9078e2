/* SPDX-License-Identifier: Apache-2.0 */
/* Training in C++ on the stand-in for PyTorch. Names of kernels tell their functions. */
#include <cstdio>
#include <cstring>
#include <thread>

#include "engine.h"
#include "operators.h"
#include "truth.h"

using at::Tensor;
using namespace at::_ops;

#define STEPS 3

/* The node of a function that is written in C++: torch/csrc/autograd/custom_function.h. */
namespace torch::autograd
{
template <class T> struct CppNode : Node {
	std::string name() const override
	{
		return "CppNode<" + std::string(T::name) + ">";
	}

	variable_list apply(variable_list &&grads) override
	{
		return {T::backward(grads[0])};
	}
};

template <class T> struct Function {
	static Tensor apply(const Tensor &input)
	{
		std::shared_ptr<CppNode<T>> node;
		bool grad_mode = autograd_state().grad_mode;
		Tensor result;

		if (any_requires_grad({input})) {
			node = std::shared_ptr<CppNode<T>>(new CppNode<T>);
			node->set_history({input});
		}
		{
			standin::forward_scope scope(node.get());

			autograd_state().grad_mode = false;
			result = T::forward(input);
			autograd_state().grad_mode = grad_mode;
		}
		result.impl->grad_fn = node;
		result.impl->requires_grad = node != nullptr;
		return result;
	}
};
}

struct Square : torch::autograd::Function<Square> {
	static constexpr const char *name = "Square";

	static Tensor forward(const Tensor &x)
	{
		return mul_Tensor::call({x, x});
	}

	static Tensor backward(const Tensor &grad)
	{
		return mul_Tensor::call({grad, grad});
	}
};

struct weights {
	Tensor bias, matrix;
};

static Tensor parameter()
{
	Tensor tensor = torch::autograd::make_tensor(0);

	tensor.impl->requires_grad = true;
	return tensor;
}

static Tensor user_linear(const Tensor &x, const weights &w)
{
	standin::user_place place(__func__);

	return addmm::call({w.bias, x, w.matrix});
}

static Tensor user_activation(const Tensor &x)
{
	standin::user_place place(__func__);

	return relu::call({x});
}

static Tensor user_square(const Tensor &x)
{
	standin::user_place place(__func__);

	return Square::apply(x);
}

static Tensor user_slice(const Tensor &x)
{
	standin::user_place place(__func__);
	Tensor y = slice_Tensor::call({x});

	gt_Scalar::call({x});
	return y;
}

static Tensor user_model(const weights &w)
{
	standin::user_place place(__func__);
	Tensor x = user_linear(torch::autograd::make_tensor(0), w);

	x = user_activation(x);
	x = user_square(x);
	x = user_slice(x);
	x = user_linear(x, w);
	x = user_activation(x);
	return sum::call({x});
}

static void user_backward(const Tensor &loss)
{
	standin::user_place place(__func__);

	torch::autograd::Engine::get_default_engine().execute(
		{torch::autograd::gradient_edge(loss)}, {torch::autograd::make_tensor(0)}, false,
		false, true, {});
}

static void user_step(const weights &w)
{
	standin::user_place place(__func__);

	user_backward(user_model(w));
}

static void train()
{
	weights w = {parameter(), parameter()};

	for (int i = 0; i < STEPS; i++)
		user_step(w);
}

static void train_in_threads()
{
	std::vector<std::thread> threads;

	for (int i = 0; i < 4; i++)
		threads.emplace_back(train);
	for (std::thread &thread : threads)
		thread.join();
}

static void train_on_same_thread()
{
	torch::autograd::autograd_state().multithreading = false;
	train();
}

static const struct {
	const char *name;
	void (*run)();
} cases[] = {
	{"cpp", train},
	{"cpp_threads", train_in_threads},
	{"cpp_same_thread", train_on_same_thread},
};

int main(int argc, char **argv)
{
	standin::use_device(0);
	for (const auto &one : cases)
		if (argc == 2 && !strcmp(argv[1], one.name)) {
			one.run();
			standin::check(cuCtxSynchronize());
			return 0;
		}
	fprintf(stderr, "usage: %s CASE\n", argv[0]);
	return 2;
}
