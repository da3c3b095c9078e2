/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares cuda_abi/nvtx_abi.h with the NVTX 3 of an installed toolkit, at compile time.
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

/* The payload extension, which newer toolkits include. */
#if __has_include(<nvtx3/nvToolsExtPayload.h>)
#include <nvtx3/nvToolsExtPayload.h>

#define MEMBER(ours, field, theirs, their_field)                                                   \
	_Static_assert(offsetof(struct ours, field) == offsetof(theirs, their_field),              \
		       #ours "." #field " is " #their_field)
#define AS_LONG(ours, theirs)                                                                      \
	_Static_assert(sizeof(struct ours) == sizeof(theirs), #ours " is as long as " #theirs)

SAME(PAYLOAD_MODULE, NVTX_EXT_PAYLOAD_MODULEID);
SAME(PAYLOAD_MAJOR, NVTX_EXT_PAYLOAD_COMPATID >> 8);
SAME(PAYLOAD_EXTENDED, NVTX_PAYLOAD_TYPE_EXT);
SAME(SCHEMA_REGISTER, NVTX3EXT_CBID_nvtxPayloadSchemaRegister);
SAME(ENUM_REGISTER, NVTX3EXT_CBID_nvtxPayloadEnumRegister);
SAME(MARK_PAYLOAD, NVTX3EXT_CBID_nvtxMarkPayload);
SAME(RANGE_PUSH_PAYLOAD, NVTX3EXT_CBID_nvtxRangePushPayload);
SAME(RANGE_POP_PAYLOAD, NVTX3EXT_CBID_nvtxRangePopPayload);
SAME(RANGE_START_PAYLOAD, NVTX3EXT_CBID_nvtxRangeStartPayload);
SAME(RANGE_END_PAYLOAD, NVTX3EXT_CBID_nvtxRangeEndPayload);

SAME(TYPE_CHAR, NVTX_PAYLOAD_ENTRY_TYPE_CHAR);
SAME(TYPE_INT, NVTX_PAYLOAD_ENTRY_TYPE_INT);
SAME(TYPE_UINT64, NVTX_PAYLOAD_ENTRY_TYPE_UINT64);
SAME(TYPE_SIZE, NVTX_PAYLOAD_ENTRY_TYPE_SIZE);
SAME(TYPE_CHAR32, NVTX_PAYLOAD_ENTRY_TYPE_CHAR32);
SAME(TYPE_BYTE, NVTX_PAYLOAD_ENTRY_TYPE_BYTE);
SAME(TYPE_TF32, NVTX_PAYLOAD_ENTRY_TYPE_TF32);
SAME(TYPE_CATEGORY, NVTX_PAYLOAD_ENTRY_TYPE_CATEGORY);
SAME(TYPE_COLOR_ARGB, NVTX_PAYLOAD_ENTRY_TYPE_COLOR_ARGB);
SAME(TYPE_CSTRING_UTF32, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF32);
SAME(TYPE_REGISTERED_STRING, NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE);
SAME(TYPE_UNION_SELECTOR, NVTX_PAYLOAD_ENTRY_TYPE_UNION_SELECTOR);
SAME(SCHEMA_REFERENCED, NVTX_TYPE_PAYLOAD_SCHEMA_REFERENCED);
SAME(SCHEMA_RAW, NVTX_TYPE_PAYLOAD_SCHEMA_RAW);
SAME(SCHEMA_STATIC, NVTX_PAYLOAD_SCHEMA_TYPE_STATIC);
SAME(SCHEMA_DYNAMIC, NVTX_PAYLOAD_SCHEMA_TYPE_DYNAMIC);
SAME(SCHEMA_UNION_SELECTED, NVTX_PAYLOAD_SCHEMA_TYPE_UNION_WITH_INTERNAL_SELECTOR);
SAME(ENTRY_POINTER, NVTX_PAYLOAD_ENTRY_FLAG_POINTER);
SAME(ENTRY_OFFSET_FROM_BASE, NVTX_PAYLOAD_ENTRY_FLAG_OFFSET_FROM_BASE);
SAME(ENTRY_OFFSET_FROM_HERE, NVTX_PAYLOAD_ENTRY_FLAG_OFFSET_FROM_HERE);
SAME(ENTRY_HIDE, NVTX_PAYLOAD_ENTRY_FLAG_HIDE);
SAME(ENTRY_EVENT_MESSAGE, NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE);
SAME(ARRAY_FIXED << XT_NVTX_ENTRY_ARRAY_BIT, NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE);
SAME(ARRAY_ZERO_TERMINATED << XT_NVTX_ENTRY_ARRAY_BIT,
     NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_ZERO_TERMINATED);
SAME(ARRAY_LENGTH_INDEX << XT_NVTX_ENTRY_ARRAY_BIT, NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_INDEX);

/* Names that changed between versions of the header. */
#if NVTX_EXT_PAYLOAD_COMPATID == 0x0104
SAME(SCHEMA_STATIC_FIRST, NVTX_PAYLOAD_SCHEMA_ID_STATIC_START);
SAME(SCHEMA_DYNAMIC_FIRST, NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START);
SAME(SCHEMA_HAS_NAME, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME);
SAME(SCHEMA_HAS_KIND, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE);
SAME(SCHEMA_HAS_ENTRIES, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES);
SAME(SCHEMA_HAS_COUNT, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES);
SAME(SCHEMA_HAS_BYTES, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE);
SAME(SCHEMA_HAS_ALIGN, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ALIGNMENT);
SAME(SCHEMA_HAS_ID, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID);
SAME(ENUM_HAS_ENTRIES, NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES);
SAME(ENUM_HAS_COUNT, NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES);
SAME(ENUM_HAS_BYTES, NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE);
SAME(ENUM_HAS_ID, NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID);
#endif

PLACE(reserved0, reserved0);
AS_LONG(xt_nvtx_payload, nvtxPayloadData_t);
MEMBER(xt_nvtx_payload, bytes, nvtxPayloadData_t, size);
MEMBER(xt_nvtx_payload, data, nvtxPayloadData_t, payload);
AS_LONG(xt_nvtx_schema_entry, nvtxPayloadSchemaEntry_t);
MEMBER(xt_nvtx_schema_entry, type, nvtxPayloadSchemaEntry_t, type);
MEMBER(xt_nvtx_schema_entry, name, nvtxPayloadSchemaEntry_t, name);
MEMBER(xt_nvtx_schema_entry, detail, nvtxPayloadSchemaEntry_t, arrayOrUnionDetail);
MEMBER(xt_nvtx_schema_entry, offset, nvtxPayloadSchemaEntry_t, offset);
AS_LONG(xt_nvtx_schema, nvtxPayloadSchemaAttr_t);
MEMBER(xt_nvtx_schema, name, nvtxPayloadSchemaAttr_t, name);
MEMBER(xt_nvtx_schema, kind, nvtxPayloadSchemaAttr_t, type);
MEMBER(xt_nvtx_schema, entries, nvtxPayloadSchemaAttr_t, entries);
MEMBER(xt_nvtx_schema, entry_count, nvtxPayloadSchemaAttr_t, numEntries);
MEMBER(xt_nvtx_schema, static_bytes, nvtxPayloadSchemaAttr_t, payloadStaticSize);
MEMBER(xt_nvtx_schema, pack_align, nvtxPayloadSchemaAttr_t, packAlign);
MEMBER(xt_nvtx_schema, schema_id, nvtxPayloadSchemaAttr_t, schemaId);
AS_LONG(xt_nvtx_enum_value, nvtxPayloadEnum_t);
MEMBER(xt_nvtx_enum_value, value, nvtxPayloadEnum_t, value);
MEMBER(xt_nvtx_enum_value, is_flag, nvtxPayloadEnum_t, isFlag);
AS_LONG(xt_nvtx_enum, nvtxPayloadEnumAttr_t);
MEMBER(xt_nvtx_enum, values, nvtxPayloadEnumAttr_t, entries);
MEMBER(xt_nvtx_enum, value_count, nvtxPayloadEnumAttr_t, numEntries);
MEMBER(xt_nvtx_enum, bytes, nvtxPayloadEnumAttr_t, sizeOfEnum);
MEMBER(xt_nvtx_enum, schema_id, nvtxPayloadEnumAttr_t, schemaId);
AS_LONG(xt_nvtx_extension, nvtxExtModuleInfo_t);
MEMBER(xt_nvtx_extension, struct_bytes, nvtxExtModuleInfo_t, structSize);
MEMBER(xt_nvtx_extension, module_id, nvtxExtModuleInfo_t, moduleId);
MEMBER(xt_nvtx_extension, compat_id, nvtxExtModuleInfo_t, compatId);
MEMBER(xt_nvtx_extension, segments, nvtxExtModuleInfo_t, segments);
AS_LONG(xt_nvtx_segment, nvtxExtModuleSegment_t);
MEMBER(xt_nvtx_segment, slots, nvtxExtModuleSegment_t, functionSlots);
#endif
