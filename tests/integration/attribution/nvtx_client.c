/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the tool that NVTX_INJECTION64_PATH names and gives it the tables to fill.
 */
#include "nvtx_client.h"

#include <dlfcn.h>
#include <stdlib.h>

xt_nvtx_function nvtx_core[NVTX_CORE_SIZE];
xt_nvtx_function nvtx_core2[NVTX_CORE2_SIZE];
xt_nvtx_function nvtx_cuda[NVTX_CUDA_SIZE];
xt_nvtx_function nvtx_cudart[NVTX_CUDA_SIZE];

static xt_nvtx_function *core_places[NVTX_CORE_SIZE];
static xt_nvtx_function *core2_places[NVTX_CORE2_SIZE];
static xt_nvtx_function *cuda_places[NVTX_CUDA_SIZE];
static xt_nvtx_function *cudart_places[NVTX_CUDA_SIZE];

intptr_t nvtx_payload_slots[NVTX_PAYLOAD_SLOTS];

static int get_module_function_table(uint32_t module, xt_nvtx_function_table *table_out,
				     unsigned *size_out)
{
	static const struct {
		uint32_t module;
		unsigned size;
		xt_nvtx_function *const *places;
	} tables[] = {
		{XT_NVTX_CORE, NVTX_CORE_SIZE, core_places},
		{XT_NVTX_CORE2, NVTX_CORE2_SIZE, core2_places},
		{XT_NVTX_CUDA, NVTX_CUDA_SIZE, cuda_places},
		{XT_NVTX_CUDART, NVTX_CUDA_SIZE, cudart_places},
	};

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		if (tables[i].module != module)
			continue;
		*table_out = (xt_nvtx_function_table)tables[i].places;
		*size_out = tables[i].size;
		return 1;
	}
	return 0;
}

static const void *get_export_table(uint32_t id)
{
	static const struct xt_nvtx_export_callbacks callbacks = {
		.struct_bytes = sizeof(callbacks),
		.get_module_function_table = get_module_function_table,
	};

	return id == XT_NVTX_EXPORT_CALLBACKS ? &callbacks : NULL;
}

void nvtx_start(void)
{
	const char *path = getenv("NVTX_INJECTION64_PATH");
	void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
	int (*initialize)(xt_nvtx_get_export_table);

	if (!library)
		return;
	for (int i = 1; i < NVTX_CORE_SIZE; i++)
		core_places[i] = &nvtx_core[i];
	for (int i = 1; i < NVTX_CORE2_SIZE; i++)
		core2_places[i] = &nvtx_core2[i];
	for (int i = 1; i < NVTX_CUDA_SIZE; i++) {
		cuda_places[i] = &nvtx_cuda[i];
		cudart_places[i] = &nvtx_cudart[i];
	}
	initialize = (int (*)(xt_nvtx_get_export_table))dlsym(library, "InitializeInjectionNvtx2");
	if (initialize)
		initialize(get_export_table);
}

/* NVTX does this at the first use of the extension. */
int nvtx_start_payloads(void)
{
	const char *path = getenv("NVTX_INJECTION64_PATH");
	void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
	struct xt_nvtx_segment segment = {0, NVTX_PAYLOAD_SLOTS, nvtx_payload_slots};
	struct xt_nvtx_extension extension = {
		.nvtx_version = 3,
		.struct_bytes = sizeof(extension),
		.module_id = XT_NVTX_PAYLOAD_MODULE,
		.compat_id = 0x0103,
		.segment_count = 1,
		.segments = &segment,
	};
	int (*initialize)(struct xt_nvtx_extension *);

	if (!library)
		return 0;
	*(void **)&initialize = dlsym(library, "InitializeInjectionNvtxExtension");
	return initialize && initialize(&extension);
}
