/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the activity records of each CUPTI version are: what only CUPTI's own reader knows, and
 * who reads a buffer without CUPTI has to. tests/conformance holds the sizes against the real
 * headers where those are installed.
 */
#ifndef XTRACE_CUDA_ABI_CUPTI_RECORD_BYTES_H
#define XTRACE_CUDA_ABI_CUPTI_RECORD_BYTES_H

enum xt_cupti_record_bytes {
	XT_CUPTI_KERNEL7_BYTES = 176,
	XT_CUPTI_KERNEL8_BYTES = 200,
	XT_CUPTI_KERNEL9_BYTES = 208,
	XT_CUPTI_KERNEL10_BYTES = 216,
	XT_CUPTI_MEMCPY5_BYTES = 88,
	XT_CUPTI_MEMCPY6_BYTES = 96,
	XT_CUPTI_MEMCPY_PTOP4_BYTES = 96,
	XT_CUPTI_MEMSET4_BYTES = 88,
	XT_CUPTI_MEMORY3_BYTES = 120,
	XT_CUPTI_MEMORY4_BYTES = 128,
};

/* X(first API version, kernel, copy, copy between devices, set, memory), newest first: 18 is CUDA
 * 11.8, 19 is 12.0, 24 is 12.6, 26 is 12.8. */
#define XT_CUPTI_RECORD_VERSIONS(X)                                                                \
	X(130000, KERNEL10, MEMCPY6, MEMCPY_PTOP4, MEMSET4, MEMORY4)                               \
	X(26, KERNEL9, MEMCPY6, MEMCPY_PTOP4, MEMSET4, MEMORY4)                                    \
	X(24, KERNEL9, MEMCPY5, MEMCPY_PTOP4, MEMSET4, MEMORY4)                                    \
	X(19, KERNEL9, MEMCPY5, MEMCPY_PTOP4, MEMSET4, MEMORY3)                                    \
	X(18, KERNEL8, MEMCPY5, MEMCPY_PTOP4, MEMSET4, MEMORY3)                                    \
	X(17, KERNEL7, MEMCPY5, MEMCPY_PTOP4, MEMSET4, MEMORY3)

/* From 13.2 on kernel records are longer than the table says, by how much is not known here. */
#define XT_CUPTI_RECORD_VERSIONS_END 130200

#endif
