/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's side of NVTX: tables of function pointers that do nothing until a tool fills them.
 * At the first use, NVTX loads the tool that NVTX_INJECTION64_PATH names. The tables are those of
 * cuda_abi/nvtx_abi.h. The functions that call through them are inline, like NVTX's own.
 */
#ifndef XTRACE_TESTS_NVTX_CLIENT_H
#define XTRACE_TESTS_NVTX_CLIENT_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#include "cuda_abi/nvtx_abi.h"

#define NVTX_CORE_SIZE	   16
#define NVTX_CORE2_SIZE	   16
#define NVTX_CUDA_SIZE	   9
#define NVTX_PAYLOAD_SLOTS 63
#define NVTX_INLINE	   static inline __attribute__((always_inline))

extern xt_nvtx_function nvtx_core[NVTX_CORE_SIZE];
extern xt_nvtx_function nvtx_core2[NVTX_CORE2_SIZE];
extern xt_nvtx_function nvtx_cuda[NVTX_CUDA_SIZE];
extern xt_nvtx_function nvtx_cudart[NVTX_CUDA_SIZE];

extern intptr_t nvtx_payload_slots[NVTX_PAYLOAD_SLOTS];

/* Loads the tool, if there is one. Call it once, first, from one thread. */
void nvtx_start(void);

/* The same for the payload extension; false if the tool does not implement it. */
int nvtx_start_payloads(void);

NVTX_INLINE struct xt_nvtx_attributes nvtx_attributes(const char *text, uint32_t category)
{
	return (struct xt_nvtx_attributes){
		.version = 3,
		.bytes = sizeof(struct xt_nvtx_attributes),
		.category = category,
		.color_type = 1,
		.color = 0xff336699,
		.payload_type = 1,
		.payload = category,
		.message_type = XT_NVTX_MESSAGE_ASCII,
		.message = text,
	};
}

NVTX_INLINE void *nvtx_domain_create(const char *name)
{
	xt_nvtx_function create = nvtx_core2[XT_NVTX_DOMAIN_CREATE_A];

	return create ? ((void *(*)(const char *))create)(name) : NULL;
}

NVTX_INLINE void nvtx_push_a(const char *text)
{
	xt_nvtx_function push = nvtx_core[XT_NVTX_RANGE_PUSH_A];

	if (push)
		((int (*)(const char *))push)(text);
}

NVTX_INLINE void nvtx_push_w(const wchar_t *text)
{
	xt_nvtx_function push = nvtx_core[XT_NVTX_RANGE_PUSH_W];

	if (push)
		((int (*)(const wchar_t *))push)(text);
}

NVTX_INLINE void nvtx_push_ex(const struct xt_nvtx_attributes *attributes)
{
	xt_nvtx_function push = nvtx_core[XT_NVTX_RANGE_PUSH_EX];

	if (push)
		((int (*)(const struct xt_nvtx_attributes *))push)(attributes);
}

NVTX_INLINE void nvtx_pop(void)
{
	xt_nvtx_function pop = nvtx_core[XT_NVTX_RANGE_POP];

	if (pop)
		((int (*)(void))pop)();
}

NVTX_INLINE void nvtx_domain_push(void *domain, const struct xt_nvtx_attributes *attributes)
{
	xt_nvtx_function push = nvtx_core2[XT_NVTX_DOMAIN_RANGE_PUSH_EX];

	if (push)
		((int (*)(void *, const struct xt_nvtx_attributes *))push)(domain, attributes);
}

NVTX_INLINE void nvtx_domain_pop(void *domain)
{
	xt_nvtx_function pop = nvtx_core2[XT_NVTX_DOMAIN_RANGE_POP];

	if (pop)
		((int (*)(void *))pop)(domain);
}

NVTX_INLINE uint64_t nvtx_start_a(const char *text)
{
	xt_nvtx_function start = nvtx_core[XT_NVTX_RANGE_START_A];

	return start ? ((uint64_t(*)(const char *))start)(text) : 0;
}

NVTX_INLINE void nvtx_end(uint64_t id)
{
	xt_nvtx_function end = nvtx_core[XT_NVTX_RANGE_END];

	if (end)
		((void (*)(uint64_t))end)(id);
}

NVTX_INLINE uint64_t nvtx_domain_start(void *domain, const struct xt_nvtx_attributes *attributes)
{
	xt_nvtx_function start = nvtx_core2[XT_NVTX_DOMAIN_RANGE_START_EX];

	return start ? ((uint64_t(*)(void *, const struct xt_nvtx_attributes *))start)(domain,
										       attributes)
		     : 0;
}

NVTX_INLINE void nvtx_domain_end(void *domain, uint64_t id)
{
	xt_nvtx_function end = nvtx_core2[XT_NVTX_DOMAIN_RANGE_END];

	if (end)
		((void (*)(void *, uint64_t))end)(domain, id);
}

/* Names a device or a handle through the table nvtx_cuda or nvtx_cudart. */
NVTX_INLINE void nvtx_name(xt_nvtx_function naming, const void *handle, const void *text)
{
	if (naming)
		((void (*)(const void *, const void *))naming)(handle, text);
}

/* Functions of the payload extension, as NVTX calls them. Without a tool they do nothing. */
NVTX_INLINE uint64_t nvtx_register(int slot, void *domain, const void *attributes)
{
	intptr_t f = nvtx_payload_slots[slot];

	return f ? ((uint64_t(*)(void *, const void *))f)(domain, attributes) : 0;
}

NVTX_INLINE uint64_t nvtx_with_payload(int slot, void *domain, const struct xt_nvtx_payload *data,
				       size_t count)
{
	intptr_t f = nvtx_payload_slots[slot];

	return f ? ((uint64_t(*)(void *, const struct xt_nvtx_payload *, size_t))f)(domain, data,
										    count)
		 : 0;
}

NVTX_INLINE void nvtx_end_with_payload(void *domain, uint64_t id,
				       const struct xt_nvtx_payload *data, size_t count)
{
	intptr_t f = nvtx_payload_slots[XT_NVTX_RANGE_END_PAYLOAD];

	if (f)
		((void (*)(void *, uint64_t, const struct xt_nvtx_payload *, size_t))f)(
			domain, id, data, count);
}

NVTX_INLINE void nvtx_mark_a(const char *text)
{
	xt_nvtx_function mark = nvtx_core[XT_NVTX_MARK_A];

	if (mark)
		((void (*)(const char *))mark)(text);
}

NVTX_INLINE void nvtx_domain_mark(void *domain, const struct xt_nvtx_attributes *attributes)
{
	xt_nvtx_function mark = nvtx_core2[XT_NVTX_DOMAIN_MARK_EX];

	if (mark)
		((void (*)(void *, const struct xt_nvtx_attributes *))mark)(domain, attributes);
}

#endif
