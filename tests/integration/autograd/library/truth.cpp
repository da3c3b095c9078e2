/* SPDX-License-Identifier: Apache-2.0 */
#include "truth.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include <dlfcn.h>

namespace standin
{
namespace
{
/* Python's own functions, if this process has them. */
struct python {
	void *(*get_code)(void *frame);
	int (*get_line)(void *frame);
	void *(*get_back)(void *frame);
	void *(*get_frame)(void *state);
	void *(*get_state)(void);
	void *(*attribute)(void *object, const char *name);
	const char *(*text)(void *object);
	void (*release)(void *object);
	int (*ensure)(void);
	void (*restore)(int);
	void *(*save)(void);

	python()
	{
		find(get_code, "PyFrame_GetCode");
		find(get_line, "PyFrame_GetLineNumber");
		find(get_back, "PyFrame_GetBack");
		find(get_frame, "PyThreadState_GetFrame");
		find(get_state, "PyThreadState_Get");
		find(attribute, "PyObject_GetAttrString");
		find(text, "PyUnicode_AsUTF8");
		find(release, "Py_DecRef");
		find(ensure, "PyGILState_Ensure");
		find(restore, "PyGILState_Release");
		find(save, "PyEval_SaveThread");
	}

	template <class function> static void find(function &out, const char *name)
	{
		out = reinterpret_cast<function>(dlsym(RTLD_DEFAULT, name));
	}
};

const python &python_now()
{
	static const python found;

	return found;
}

std::string user_file;

struct base {
	std::string tokens;
	size_t depth = 0; /* of own tokens that it replaces */
};
thread_local std::vector<std::string> native_places;
thread_local std::vector<base> bases;
thread_local torch::autograd::Node *forward_node;

bool is_of_user(const python &py, void *frame)
{
	void *code = py.get_code(frame), *file = py.attribute(code, "co_filename");
	bool result = user_file == py.text(file);

	py.release(file);
	py.release(code);
	return result;
}

/* The lines of the user's file on the thread's Python stack, innermost first. */
std::vector<std::string> python_lines()
{
	const python &py = python_now();
	std::vector<std::string> lines;
	int state;

	if (user_file.empty() || !py.ensure)
		return lines;
	state = py.ensure();
	for (void *frame = py.get_frame(py.get_state()), *back; frame; frame = back) {
		if (is_of_user(py, frame))
			lines.push_back(std::to_string(py.get_line(frame)));
		back = py.get_back(frame);
		py.release(frame);
	}
	py.restore(state);
	return lines;
}

/* All tokens of the thread, outermost first. A program has either lines or native places. */
std::vector<std::string> own_tokens()
{
	std::vector<std::string> lines = python_lines();
	std::vector<std::string> tokens(lines.rbegin(), lines.rend());

	tokens.insert(tokens.end(), native_places.begin(), native_places.end());
	return tokens;
}

std::string joined(const std::vector<std::string> &tokens, size_t first, std::string text)
{
	for (size_t i = first; i < tokens.size(); i++)
		text += (text.empty() ? "" : ".") + tokens[i];
	return text;
}

CUfunction function_of(const std::string &name, int device)
{
	static std::map<std::pair<std::string, int>, CUfunction> known;
	static std::mutex lock;
	std::lock_guard<std::mutex> guard(lock);
	CUfunction &function = known[{name, device}];
	std::string text = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry " + name +
			   "() { ret; }\n";
	CUmodule module;

	if (!function) {
		check(cuModuleLoadData(&module, text.c_str()));
		check(cuModuleGetFunction(&function, module, name.c_str()));
	}
	return function;
}
}

void check(CUresult result)
{
	if (result == CUDA_SUCCESS)
		return;
	fprintf(stderr, "stand-in: CUDA error %d\n", (int)result);
	abort();
}

void set_user_file(const char *path)
{
	user_file = path;
}

user_place::user_place(const char *name)
{
	native_places.push_back(name);
}

user_place::~user_place()
{
	native_places.pop_back();
}

std::string here()
{
	return bases.empty() ? joined(own_tokens(), 0, "")
			     : joined(own_tokens(), bases.back().depth, bases.back().tokens);
}

base_place::base_place(std::string tokens)
{
	bases.push_back({std::move(tokens), own_tokens().size()});
}

base_place::~base_place()
{
	bases.pop_back();
}

forward_scope::forward_scope(torch::autograd::Node *node) : outer(forward_node)
{
	if (node)
		forward_node = node;
}

forward_scope::~forward_scope()
{
	forward_node = outer;
}

void use_device(int device)
{
	thread_local int current = -1;
	static CUcontext contexts[8];
	static std::mutex lock;
	std::lock_guard<std::mutex> guard(lock);

	if (current == device)
		return;
	check(cuInit(0));
	if (!contexts[device])
		check(cuDevicePrimaryCtxRetain(&contexts[device], device));
	check(cuCtxSetCurrent(contexts[device]));
	current = device;
}

CUstream new_stream()
{
	CUstream stream;

	use_device(0);
	check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return stream;
}

void launch(const char *kernel, int device)
{
	std::string name = std::string(kernel) + "$$" + here();

	use_device(device);
	if (forward_node)
		forward_node->facts_.launched = true;
	check(cuLaunchKernel(function_of(name, device), 1, 1, 1, 32, 1, 1, 0,
			     torch::autograd::autograd_state().stream, nullptr, nullptr));
}

void init_python_thread()
{
	const python &py = python_now();

	if (user_file.empty() || !py.ensure)
		return;
	py.ensure();
	py.save();
}
}
