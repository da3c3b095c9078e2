/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds cuda_abi/nvtx_abi.h against the NVTX 3 that comes with an installed toolkit, at compile
 * time.
 */
#include <stddef.h>

#include <nvtx3/nvToolsExt.h>

#include "cuda_abi/nvtx_abi.h"

#define SAME(ours, theirs)                                                                         \
	_Static_assert((long long)XT_NVTX_##ours == (long long)(theirs), #ours " is " #theirs)
#define PLACE(field, their_field)                                                                  \
	_Static_assert(offsetof(struct xt_nvtx_attributes, field) ==                               \
			       offsetof(nvtxEventAttributes_t, their_field),                       \
		       #field " is " #their_field)

SAME(CORE, NVTX_CB_MODULE_CORE);
SAME(CUDA, NVTX_CB_MODULE_CUDA);
SAME(CUDART, NVTX_CB_MODULE_CUDART);
SAME(CORE2, NVTX_CB_MODULE_CORE2);

SAME(MARK_EX, NVTX_CBID_CORE_MarkEx);
SAME(MARK_A, NVTX_CBID_CORE_MarkA);
SAME(MARK_W, NVTX_CBID_CORE_MarkW);
SAME(RANGE_START_EX, NVTX_CBID_CORE_RangeStartEx);
SAME(RANGE_START_A, NVTX_CBID_CORE_RangeStartA);
SAME(RANGE_START_W, NVTX_CBID_CORE_RangeStartW);
SAME(RANGE_END, NVTX_CBID_CORE_RangeEnd);
SAME(RANGE_PUSH_EX, NVTX_CBID_CORE_RangePushEx);
SAME(RANGE_PUSH_A, NVTX_CBID_CORE_RangePushA);
SAME(RANGE_PUSH_W, NVTX_CBID_CORE_RangePushW);
SAME(RANGE_POP, NVTX_CBID_CORE_RangePop);
SAME(NAME_CATEGORY_A, NVTX_CBID_CORE_NameCategoryA);
SAME(NAME_CATEGORY_W, NVTX_CBID_CORE_NameCategoryW);
SAME(NAME_OS_THREAD_A, NVTX_CBID_CORE_NameOsThreadA);
SAME(NAME_OS_THREAD_W, NVTX_CBID_CORE_NameOsThreadW);

SAME(DOMAIN_MARK_EX, NVTX_CBID_CORE2_DomainMarkEx);
SAME(DOMAIN_RANGE_START_EX, NVTX_CBID_CORE2_DomainRangeStartEx);
SAME(DOMAIN_RANGE_END, NVTX_CBID_CORE2_DomainRangeEnd);
SAME(DOMAIN_RANGE_PUSH_EX, NVTX_CBID_CORE2_DomainRangePushEx);
SAME(DOMAIN_RANGE_POP, NVTX_CBID_CORE2_DomainRangePop);
SAME(DOMAIN_NAME_CATEGORY_A, NVTX_CBID_CORE2_DomainNameCategoryA);
SAME(DOMAIN_NAME_CATEGORY_W, NVTX_CBID_CORE2_DomainNameCategoryW);
SAME(DOMAIN_REGISTER_STRING_A, NVTX_CBID_CORE2_DomainRegisterStringA);
SAME(DOMAIN_REGISTER_STRING_W, NVTX_CBID_CORE2_DomainRegisterStringW);
SAME(DOMAIN_CREATE_A, NVTX_CBID_CORE2_DomainCreateA);
SAME(DOMAIN_CREATE_W, NVTX_CBID_CORE2_DomainCreateW);
SAME(DOMAIN_DESTROY, NVTX_CBID_CORE2_DomainDestroy);

SAME(NAME_CU_DEVICE_A, NVTX_CBID_CUDA_NameCuDeviceA);
SAME(NAME_CU_DEVICE_W, NVTX_CBID_CUDA_NameCuDeviceW);
SAME(NAME_CU_CONTEXT_A, NVTX_CBID_CUDA_NameCuContextA);
SAME(NAME_CU_CONTEXT_W, NVTX_CBID_CUDA_NameCuContextW);
SAME(NAME_CU_STREAM_A, NVTX_CBID_CUDA_NameCuStreamA);
SAME(NAME_CU_STREAM_W, NVTX_CBID_CUDA_NameCuStreamW);
SAME(NAME_CU_EVENT_A, NVTX_CBID_CUDA_NameCuEventA);
SAME(NAME_CU_EVENT_W, NVTX_CBID_CUDA_NameCuEventW);

SAME(NAME_CUDA_DEVICE_A, NVTX_CBID_CUDART_NameCudaDeviceA);
SAME(NAME_CUDA_DEVICE_W, NVTX_CBID_CUDART_NameCudaDeviceW);
SAME(NAME_CUDA_STREAM_A, NVTX_CBID_CUDART_NameCudaStreamA);
SAME(NAME_CUDA_STREAM_W, NVTX_CBID_CUDART_NameCudaStreamW);
SAME(NAME_CUDA_EVENT_A, NVTX_CBID_CUDART_NameCudaEventA);
SAME(NAME_CUDA_EVENT_W, NVTX_CBID_CUDART_NameCudaEventW);

SAME(EXPORT_CALLBACKS, NVTX_ETID_CALLBACKS);
SAME(MESSAGE_ASCII, NVTX_MESSAGE_TYPE_ASCII);
SAME(MESSAGE_UNICODE, NVTX_MESSAGE_TYPE_UNICODE);
SAME(MESSAGE_REGISTERED, NVTX_MESSAGE_TYPE_REGISTERED);
SAME(NO_PUSH_POP_TRACKING, NVTX_NO_PUSH_POP_TRACKING);

_Static_assert(sizeof(struct xt_nvtx_attributes) == sizeof(nvtxEventAttributes_t),
	       "attributes are as long as theirs");
PLACE(version, version);
PLACE(bytes, size);
PLACE(category, category);
PLACE(color_type, colorType);
PLACE(color, color);
PLACE(payload_type, payloadType);
PLACE(payload, payload);
PLACE(message_type, messageType);
PLACE(message, message);
