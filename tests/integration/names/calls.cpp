/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches from all kinds of C++ code: templates, lambdas, members, functions with internal
 * linkage, constructors, exception handlers, recursion.
 */
#include "device.h"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <vector>

#define INLINE static inline __attribute__((always_inline))
#define APART  __attribute__((noinline))

INLINE void launch(unsigned blocks)
{
	device_launch(blocks);
	device_launch(blocks + 1); device_launch(blocks + 2);
}

template <class T> INLINE T twice(T value)
{
	launch((unsigned)value);
	return value + 1;
}

namespace net
{
namespace
{
template <class T, int Depth> struct Stack {
	static APART T down(T value)
	{
		value = Stack<T, Depth - 1>::down(value);
		launch((unsigned)value);
		return value;
	}
};

template <class T> struct Stack<T, 0> {
	static T down(T value)
	{
		return twice<T>(value);
	}
};
} // namespace

class Layer
{
	unsigned width;

      public:
	APART explicit Layer(unsigned width) : width(width)
	{
		device_launch(width);
		__asm__ volatile("");
	}
	APART virtual void forward()
	{
		auto inner = [this](unsigned blocks) {
			auto innermost = [](unsigned more) { twice(more); };

			innermost(blocks + width);
			__asm__ volatile("");
		};

		inner(1);
		inner(2);
		std::function<void(unsigned)> late = inner;
		late(3);
	}
	APART void operator()(unsigned blocks) const
	{
		launch(blocks + width);
	}
	virtual ~Layer() = default;
};
} // namespace net

static APART void recurse(int depth)
{
	if (depth)
		recurse(depth - 1);
	else
		twice(1.0);
	__asm__ volatile("");
}

static APART void fail(int code)
{
	try {
		if (code)
			throw std::runtime_error("expected");
		device_launch(1);
	} catch (const std::runtime_error &) {
		launch(7);
	}
}

extern "C" APART int compare_and_launch(const void *a, const void *b)
{
	device_launch(5);
	return *(const char *)a - *(const char *)b;
}

int main(int argc, char **)
{
	std::vector<unsigned> blocks{3, 1, 2};
	char letters[] = "cab";

	device_open();
	std::for_each(blocks.begin(), blocks.end(), [](unsigned b) { launch(b); });
	net::Stack<long, 3>::down(argc);
	net::Layer layer(2);
	layer.forward();
	layer(4);
	recurse(3);
	fail(argc);
	qsort(letters, 3, 1, compare_and_launch);
	device_close();
	return 0;
}
