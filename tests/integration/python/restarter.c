/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into a Python interpreter, turns it into a program that embeds one. It runs each
 * argument "name code" in a new interpreter, after the end of the previous one. The code is that of
 * a file /tmp/name.py and defines a function of that name, which calls launch(). Launches are
 * numbered from 1.
 *
 * Objects of each interpreter are placed at the addresses of the previous one's, to provoke stale
 * cache entries, which by chance would be rare.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED    __attribute__((visibility("default")))
#define CALLS	    3 /* per function */
#define FIXED_BYTES (1u << 20)
#define TAKES_NONE  4	/* METH_NOARGS */
#define OF_FILE	    257 /* Py_file_input */
#define OF_OBJECTS  2	/* PYMEM_DOMAIN_OBJ */

typedef int main_function(int argc, char **argv, char **environment);

EXPORTED int __libc_start_main(main_function *program, int argc, char **argv, void (*init)(void),
			       void (*fini)(void), void (*loader_fini)(void), void *stack_end);

/* PyMethodDef and PyMemAllocatorEx: the same in all versions. */
struct method {
	const char *name;
	void *(*function)(void *self, void *arguments);
	int flags;
	const char *text;
};
struct allocator {
	void *context;
	void *(*malloc)(void *context, size_t bytes);
	void *(*calloc)(void *context, size_t count, size_t bytes);
	void *(*realloc)(void *context, void *memory, size_t bytes);
	void (*free)(void *context, void *memory);
};

static struct {
	int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
		      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
		      void *stream, void **parameters, void **extra);
	int (*synchronize)(void);
	void *function;
	unsigned count;
	void *(*from_long)(long value);
} gpu;

/* Where objects are placed while it is enabled. The size of each is stored before it. */
static struct {
	_Alignas(16) uint8_t memory[FIXED_BYTES];
	size_t used;
	bool is_on;
	struct allocator before;
} fixed;

static void *symbol(void *library, const char *name)
{
	void *function = dlsym(library, name);

	if (!function)
		abort();
	return function;
}
#define PYTHON(name, result, ...) ((result(*)(__VA_ARGS__))symbol(RTLD_DEFAULT, name))

static bool is_fixed(const void *memory)
{
	return (uintptr_t)memory - (uintptr_t)fixed.memory < FIXED_BYTES;
}

static void *take(void *context, size_t bytes)
{
	size_t *head = (size_t *)(fixed.memory + fixed.used);

	if (!fixed.is_on)
		return fixed.before.malloc(context, bytes);
	if (bytes > FIXED_BYTES - fixed.used - 32)
		return NULL;
	fixed.used += (bytes + 31) / 16 * 16;
	*head = bytes;
	return head + 2;
}

static void *take_zeroed(void *context, size_t count, size_t bytes)
{
	void *memory;

	if (!fixed.is_on)
		return fixed.before.calloc(context, count, bytes);
	memory = take(context, count * bytes);
	return memory ? memset(memory, 0, count * bytes) : NULL;
}

static void *take_other(void *context, void *memory, size_t bytes)
{
	size_t old_bytes;
	void *other;

	if (memory && !is_fixed(memory))
		return fixed.before.realloc(context, memory, bytes);
	other = take(context, bytes);
	if (memory && other) {
		old_bytes = ((size_t *)memory)[-2];
		memcpy(other, memory, old_bytes < bytes ? old_bytes : bytes);
	}
	return other;
}

static void give_back(void *context, void *memory)
{
	if (!is_fixed(memory))
		fixed.before.free(context, memory);
}

/* A starting interpreter may have replaced the allocator. */
static void fix_objects(void)
{
	struct allocator own = {NULL, take, take_zeroed, take_other, give_back}, now;

	PYTHON("PyMem_GetAllocator", void, int, struct allocator *)(OF_OBJECTS, &now);
	if (now.malloc != take)
		fixed.before = now;
	own.context = fixed.before.context;
	PYTHON("PyMem_SetAllocator", void, int, struct allocator *)(OF_OBJECTS, &own);
	fixed.used = 0;
	fixed.is_on = true;
}

static void open_gpu(void)
{
	static const char kernel[] =
		".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n";
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *context, *module;

	if (!cuda || ((int (*)(unsigned))symbol(cuda, "cuInit"))(0) ||
	    ((int (*)(void **, int))symbol(cuda, "cuDevicePrimaryCtxRetain"))(&context, 0) ||
	    ((int (*)(void *))symbol(cuda, "cuCtxSetCurrent"))(context) ||
	    ((int (*)(void **, const void *))symbol(cuda, "cuModuleLoadData"))(&module, kernel) ||
	    ((int (*)(void **, void *, const char *))symbol(cuda, "cuModuleGetFunction"))(
		    &gpu.function, module, "k"))
		abort();
	gpu.launch = symbol(cuda, "cuLaunchKernel");
	gpu.synchronize = symbol(cuda, "cuCtxSynchronize");
	gpu.from_long = PYTHON("PyLong_FromLong", void *, long);
}

static void *launch(void *self, void *arguments)
{
	(void)self;
	(void)arguments;
	gpu.launch(gpu.function, ++gpu.count, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	return gpu.from_long(gpu.count);
}

/* Returns the function that the code defines. */
static void *define(const char *name, const char *code, void *globals)
{
	char path[32] = "/tmp/";
	void *compiled;

	strcat(strcat(path, name), ".py");
	compiled = PYTHON("Py_CompileString", void *, const char *, const char *, int)(code, path,
										       OF_FILE);
	if (!compiled ||
	    !PYTHON("PyEval_EvalCode", void *, void *, void *, void *)(compiled, globals, globals))
		abort();
	return PYTHON("PyDict_GetItemString", void *, void *, const char *)(globals, name);
}

static void run(char *argument)
{
	static struct method method = {"launch", launch, TAKES_NONE, NULL};
	char *code = strchr(argument, ' '), name[16] = "";
	void *module, *globals, *function;

	memcpy(name, argument, (size_t)(code - argument));
	PYTHON("Py_InitializeEx", void, int)(0);
	module = PYTHON("PyImport_AddModule", void *, const char *)("__main__");
	globals = PYTHON("PyModule_GetDict", void *, void *)(module);
	function = PYTHON("PyCFunction_NewEx", void *, struct method *, void *, void *)(&method,
											NULL, NULL);
	PYTHON("PyDict_SetItemString", int, void *, const char *, void *)
	(globals, "launch", function);
	/* Objects that outlive an interpreter, such as some strings, are created here. */
	define(name, code + 1, globals);
	fix_objects();
	function = define(name, code + 1, globals);
	for (int i = 0; i < CALLS; i++)
		if (!PYTHON("PyObject_CallObject", void *, void *, void *)(function, NULL))
			abort();
	fixed.is_on = false;
	if (PYTHON("Py_FinalizeEx", int, void)())
		abort();
}

static int run_each(int argc, char **argv, char **environment)
{
	(void)environment;
	open_gpu();
	for (int i = 1; i < argc; i++)
		run(argv[i]);
	return gpu.synchronize();
}

/* Replaces the C library's function, which calls main(). */
int __libc_start_main(main_function *program, int argc, char **argv, void (*init)(void),
		      void (*fini)(void), void (*loader_fini)(void), void *stack_end)
{
	typeof(__libc_start_main) *start = (typeof(start))symbol(RTLD_NEXT, "__libc_start_main");

	(void)program;
	return start(run_each, argc, argv, init, fini, loader_fini, stack_end);
}
