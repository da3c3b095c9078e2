/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules, functions and libraries. A library handle is a module handle, and a kernel handle of a
 * library is a function handle.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simgpu/sim.h"

/*
 * Unloaded modules are kept, because records that are not read yet point to the names of their
 * kernels. XTRACE_SIMGPU_REUSE_NAMES gives that memory to new names.
 */
static pthread_mutex_t dead_lock = PTHREAD_MUTEX_INITIALIZER;
static CUmodule dead_modules; /* under dead_lock */

/*
 * Returns the memory of a dead name of that length, or NULL. The dead function still points to it.
 */
static char *dead_name(size_t length)
{
	for (CUmodule module = dead_modules; module; module = module->next) {
		for (CUfunction function = module->functions; function; function = function->next) {
			if (function->name_is_reused || strlen(function->name) != length)
				continue;
			function->name_is_reused = true;
			return function->name;
		}
	}
	return NULL;
}

/* Returns a copy of the name, or NULL if there is no memory. Never freed. */
static char *make_name(const char *name)
{
	char *place = NULL;

	if (sim_config()->reuses_names) {
		pthread_mutex_lock(&dead_lock);
		place = dead_name(strlen(name));
		pthread_mutex_unlock(&dead_lock);
	}
	return place ? strcpy(place, name) : strdup(name);
}

/*
 * PTX text is parsed for what the simulation needs: the names of the kernels, the shared memory
 * that they declare, and an estimate of their registers. Instructions are not executed.
 */
#define TOKEN_BYTES_MAX 1024

struct scanner {
	const char *at;
	char token[TOKEN_BYTES_MAX];
};

static void skip_blanks(struct scanner *s)
{
	for (;;) {
		const char *end = NULL;

		while (isspace((unsigned char)*s->at))
			s->at++;
		if (s->at[0] == '/' && s->at[1] == '/')
			end = strchr(s->at, '\n');
		else if (s->at[0] == '/' && s->at[1] == '*')
			end = strstr(s->at, "*/");
		else
			return;
		s->at = end ? end + 1 + (*end == '*') : s->at + strlen(s->at);
	}
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.' || c == '%';
}

/* The next word, or a single character; false at the end of the text. */
static bool next_token(struct scanner *s)
{
	size_t length = 0;

	skip_blanks(s);
	if (!*s->at)
		return false;
	do {
		if (length < sizeof(s->token) - 1)
			s->token[length++] = *s->at;
		s->at++;
	} while (is_word(s->token[0]) && is_word(*s->at));
	s->token[length] = '\0';
	return true;
}

static uint32_t type_bytes(const char *type)
{
	const char *digits = type + strcspn(type, "0123456789");
	uint32_t bits = (uint32_t)strtoul(digits, NULL, 10);

	return bits < 8 ? 1 : bits / 8;
}

/* `.shared .align 4 .b8 name[bytes];` or `.reg .b32 %r<count>;`: element size times count. */
static uint32_t declared_bytes(struct scanner *s)
{
	uint32_t element_bytes = 4;
	uint32_t count = 1;

	while (next_token(s) && strcmp(s->token, ";")) {
		if (!strcmp(s->token, ".align"))
			next_token(s);
		else if (s->token[0] == '.')
			element_bytes = type_bytes(s->token);
		else if ((*s->token == '[' || *s->token == '<') && next_token(s))
			count = (uint32_t)strtoul(s->token, NULL, 0);
	}
	return element_bytes * count;
}

/* Reads from the name to the closing brace of the body. */
static void parse_body(struct scanner *s, CUfunction function)
{
	uint32_t register_bytes = 0;
	int depth = 0;

	while (next_token(s)) {
		if (!strcmp(s->token, "{"))
			depth++;
		else if (!strcmp(s->token, "}") && --depth == 0)
			break;
		else if (!strcmp(s->token, ";") && depth == 0)
			break;
		else if (!strcmp(s->token, ".shared") && depth)
			function->static_shared_bytes += declared_bytes(s);
		else if (!strcmp(s->token, ".reg") && depth)
			register_bytes += declared_bytes(s);
	}
	function->registers_per_thread = 16 + register_bytes / 4;
	if (function->registers_per_thread > 255)
		function->registers_per_thread = 255;
}

static CUfunction add_function(CUmodule module, const char *name)
{
	CUfunction function = calloc(1, sizeof(*function));

	if (!function)
		return NULL;
	function->name = make_name(name);
	if (!function->name) {
		free(function);
		return NULL;
	}
	function->magic = SIM_MAGIC_FUNCTION;
	function->module = module;
	function->name_hash = sim_hash(name, strlen(name), 0);
	function->next = module->functions;
	module->functions = function;
	return function;
}

static int sim_ptx_parse(CUmodule module)
{
	struct scanner s = {.at = module->image};
	bool has_version = false;

	while (next_token(&s)) {
		CUfunction function;

		if (!strcmp(s.token, ".version"))
			has_version = true;
		if (strcmp(s.token, ".entry") || !has_version)
			continue;
		if (!next_token(&s))
			return -EINVAL;
		function = add_function(module, s.token);
		if (!function)
			return -ENOMEM;
		parse_body(&s, function);
	}
	return has_version ? 0 : -EINVAL;
}

static _Atomic uint32_t module_count;

bool sim_function_is_valid(CUfunction function)
{
	return function && function->magic == SIM_MAGIC_FUNCTION;
}

static bool is_module(CUmodule module)
{
	return module && module->magic == SIM_MAGIC_MODULE;
}

static void module_notify(uint32_t cbid, CUmodule module)
{
	struct cupti_module_data data = {
		.module_id = module->id,
		.cubin_bytes = module->image_bytes,
		.cubin = module->image,
	};

	sim_hold_kinds();
	sim_resource_notify(cbid, module->context, NULL, &data);
}

/*
 * Functions are marked dead but stay allocated. Stale handles must be recognised, and records that
 * are not read yet point to the names.
 */
static void module_free(CUmodule module)
{
	for (CUfunction function = module->functions; function; function = function->next)
		function->magic = SIM_MAGIC_DEAD;
	module->magic = SIM_MAGIC_DEAD;
	free(module->image);
	module->image = NULL;
	pthread_mutex_lock(&dead_lock);
	module->next = dead_modules;
	dead_modules = module;
	pthread_mutex_unlock(&dead_lock);
}

static CUresult module_make(CUmodule *out, char *image, size_t image_bytes)
{
	CUcontext context = sim_context_current();
	CUmodule module = calloc(1, sizeof(*module));

	if (!module) {
		free(image);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	module->magic = SIM_MAGIC_MODULE;
	module->id = 1 + atomic_fetch_add(&module_count, 1);
	module->context = context;
	module->image = image;
	module->image_bytes = image_bytes;
	sim_wait_until(sim_now_ns() + SIM_MODULE_LOAD_NS);
	if (sim_ptx_parse(module)) {
		module_free(module);
		return CUDA_ERROR_INVALID_IMAGE;
	}
	pthread_mutex_lock(&context->lock);
	module->next = context->modules;
	context->modules = module;
	pthread_mutex_unlock(&context->lock);
	module_notify(XT_CUPTI_RESOURCE_MODULE_LOADED, module);
	*out = module;
	return CUDA_SUCCESS;
}

void sim_modules_free(CUcontext context)
{
	while (context->modules) {
		CUmodule module = context->modules;

		context->modules = module->next;
		module_notify(XT_CUPTI_RESOURCE_MODULE_UNLOAD_STARTING, module);
		module_free(module);
	}
}

CUresult sim_module_load(CUmodule *out, const char *path)
{
	CUresult result = CUDA_ERROR_FILE_NOT_FOUND;
	char *image = NULL;
	size_t capacity = 0;
	ssize_t length;
	FILE *file;

	if (!out || !path)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_context_is_valid(sim_context_current()))
		return CUDA_ERROR_INVALID_CONTEXT;
	file = fopen(path, "re");
	if (!file)
		return result;
	length = getdelim(&image, &capacity, '\0', file);
	fclose(file);
	if (length > 0)
		return module_make(out, image, (size_t)length);
	free(image);
	return CUDA_ERROR_INVALID_IMAGE;
}

CUresult sim_module_load_data(CUmodule *out, const void *image)
{
	return sim_module_load_data_ex(out, image, 0, NULL, NULL);
}

CUresult sim_module_load_data_ex(CUmodule *out, const void *image, unsigned int option_count,
				 CUjit_option *options, void **option_values)
{
	char *copy;

	if (!out || !image || (option_count && (!options || !option_values)))
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_context_is_valid(sim_context_current()))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!memcmp(image, "\x7f", 1)) /* an ELF file: machine code of a real device */
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	copy = strdup(image);
	return copy ? module_make(out, copy, strlen(copy)) : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_module_unload(CUmodule module)
{
	if (!is_module(module))
		return CUDA_ERROR_INVALID_HANDLE;
	sim_context_drain(module->context);
	module_notify(XT_CUPTI_RESOURCE_MODULE_UNLOAD_STARTING, module);
	pthread_mutex_lock(&module->context->lock);
	for (CUmodule *place = &module->context->modules; *place; place = &(*place)->next) {
		if (*place == module) {
			*place = module->next;
			break;
		}
	}
	pthread_mutex_unlock(&module->context->lock);
	module_free(module);
	return CUDA_SUCCESS;
}

CUresult sim_module_get_function(CUfunction *out, CUmodule module, const char *name)
{
	if (!out || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_module(module))
		return CUDA_ERROR_INVALID_HANDLE;
	for (CUfunction function = module->functions; function; function = function->next) {
		if (!strcmp(function->name, name)) {
			*out = function;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_NOT_FOUND;
}

CUresult sim_module_get_loading_mode(CUmoduleLoadingMode *mode)
{
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = CU_MODULE_EAGER_LOADING;
	return CUDA_SUCCESS;
}

CUresult sim_func_get_attribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_function_is_valid(function))
		return CUDA_ERROR_INVALID_HANDLE;
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*value = 1024;
		break;
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
		*value = (int)function->static_shared_bytes;
		break;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*value = (int)function->registers_per_thread;
		break;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
		*value = 70;
		break;
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*value = 90;
		break;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		*value = atomic_load(&function->dynamic_shared_max_bytes);
		*value = *value ? *value : 49152;
		break;
	default:
		*value = 0;
	}
	return CUDA_SUCCESS;
}

CUresult sim_func_set_attribute(CUfunction function, CUfunction_attribute attribute, int value)
{
	if (!sim_function_is_valid(function))
		return CUDA_ERROR_INVALID_HANDLE;
	if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
		return CUDA_SUCCESS;
	if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
	    value > 232448)
		return CUDA_ERROR_INVALID_VALUE;
	atomic_store(&function->dynamic_shared_max_bytes, value);
	return CUDA_SUCCESS;
}

CUresult sim_func_set_cache_config(CUfunction function, CUfunc_cache config)
{
	if (!sim_function_is_valid(function))
		return CUDA_ERROR_INVALID_HANDLE;
	return config > CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult sim_func_get_name(const char **name, CUfunction function)
{
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_function_is_valid(function))
		return CUDA_ERROR_INVALID_HANDLE;
	*name = function->name;
	return CUDA_SUCCESS;
}

CUresult sim_func_get_module(CUmodule *module, CUfunction function)
{
	if (!module)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_function_is_valid(function))
		return CUDA_ERROR_INVALID_HANDLE;
	*module = function->module;
	return CUDA_SUCCESS;
}

CUresult sim_library_load_data(CUlibrary *out, const void *code, CUjit_option *jit_options,
			       void **jit_values, unsigned int jit_count, CUlibraryOption *options,
			       void **values, unsigned int count)
{
	if (count && (!options || !values))
		return CUDA_ERROR_INVALID_VALUE;
	return sim_module_load_data_ex((CUmodule *)out, code, jit_count, jit_options, jit_values);
}

CUresult sim_library_unload(CUlibrary library)
{
	return sim_module_unload((CUmodule)library);
}

CUresult sim_library_get_kernel(CUkernel *out, CUlibrary library, const char *name)
{
	return sim_module_get_function((CUfunction *)out, (CUmodule)library, name);
}

CUresult sim_library_get_module(CUmodule *out, CUlibrary library)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (CUmodule)library;
	return is_module(*out) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim_kernel_get_function(CUfunction *out, CUkernel kernel)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (CUfunction)kernel;
	return sim_function_is_valid(*out) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim_kernel_get_name(const char **name, CUkernel kernel)
{
	return sim_func_get_name(name, (CUfunction)kernel);
}

CUresult sim_occupancy_max_active_blocks_per_multiprocessor(int *count, CUfunction function,
							    int block_threads,
							    size_t dynamic_shared_bytes)
{
	size_t shared_bytes;
	int by_threads;
	int by_shared;

	if (!count || block_threads <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_function_is_valid(function))
		return CUDA_ERROR_INVALID_HANDLE;
	shared_bytes = function->static_shared_bytes + dynamic_shared_bytes + 1024;
	by_threads = 2048 / block_threads;
	by_shared = (int)(233472 / shared_bytes);
	*count = by_threads < by_shared ? by_threads : by_shared;
	return CUDA_SUCCESS;
}
