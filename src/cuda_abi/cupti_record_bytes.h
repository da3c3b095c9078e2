/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sizes of activity records in each CUPTI version. Only CUPTI's own reader knows them, but a
 * reader of a buffer without CUPTI needs them. tests/conformance compares the sizes with the real
 * headers, if they are installed.
 */
#ifndef XTRACE_CUDA_ABI_CUPTI_RECORD_BYTES_H
#define XTRACE_CUDA_ABI_CUPTI_RECORD_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "cuda_abi/cupti_abi.h"

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
	XT_CUPTI_GRAPH_TRACE1_BYTES = 48,
	XT_CUPTI_GRAPH_TRACE2_BYTES = 56,
	XT_CUPTI_UNKNOWN_BYTES = 0,
};

/*
 * X(first API version, kernel, copy, copy between devices, memset, memory, graph), newest first.
 * Versions: 18 is CUDA 11.8, 19 is 12.0, 24 is 12.6, 26 is 12.8. The record of a graph became
 * longer between 19 and 24.
 */
#define XT_CUPTI_RECORD_VERSIONS(X)                                                                \
	X(130000, KERNEL10, MEMCPY6, MEMCPY_PTOP4, MEMSET4, MEMORY4, GRAPH_TRACE2)                 \
	X(26, KERNEL9, MEMCPY6, MEMCPY_PTOP4, MEMSET4, MEMORY4, GRAPH_TRACE2)                      \
	X(24, KERNEL9, MEMCPY5, MEMCPY_PTOP4, MEMSET4, MEMORY4, GRAPH_TRACE2)                      \
	X(19, KERNEL9, MEMCPY5, MEMCPY_PTOP4, MEMSET4, MEMORY3, UNKNOWN)                           \
	X(18, KERNEL8, MEMCPY5, MEMCPY_PTOP4, MEMSET4, MEMORY3, GRAPH_TRACE1)                      \
	X(17, KERNEL7, MEMCPY5, MEMCPY_PTOP4, MEMSET4, MEMORY3, GRAPH_TRACE1)

/* From 13.2 on, kernel records are longer than in the table. Their size is unknown. */
#define XT_CUPTI_RECORD_VERSIONS_END 130200

/*
 * CUPTI sets this bit in the kind of a record that it has begun and not completed, while it owns
 * the buffer. Observed with 13.0 on a real GPU: such a record lacks only its times.
 */
#define XT_CUPTI_RECORD_BEGUN 0x80000000u

/* Returns the size of a record in bytes, or 0 if the kind or the version is unknown. */
static inline uint32_t xt_cupti_record_bytes(uint32_t version, uint32_t kind)
{
	static const struct {
		uint32_t version, kernel, copy, peer_copy, set, memory, graph;
	} rows[] = {
#define XT_CUPTI_ROW(version, kernel, copy, peer_copy, set, memory, graph)                         \
	{version,                                                                                  \
	 XT_CUPTI_##kernel##_BYTES,                                                                \
	 XT_CUPTI_##copy##_BYTES,                                                                  \
	 XT_CUPTI_##peer_copy##_BYTES,                                                             \
	 XT_CUPTI_##set##_BYTES,                                                                   \
	 XT_CUPTI_##memory##_BYTES,                                                                \
	 XT_CUPTI_##graph##_BYTES},
		XT_CUPTI_RECORD_VERSIONS(XT_CUPTI_ROW)
#undef XT_CUPTI_ROW
	};
	size_t row = 0;

	while (rows[row].version > version)
		if (++row == sizeof(rows) / sizeof(rows[0]))
			return 0;
	switch (kind) {
	case XT_CUPTI_ACTIVITY_KERNEL:
	case XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL:
		return rows[row].kernel;
	case XT_CUPTI_ACTIVITY_MEMCPY:
		return rows[row].copy;
	case XT_CUPTI_ACTIVITY_MEMCPY2:
		return rows[row].peer_copy;
	case XT_CUPTI_ACTIVITY_MEMSET:
		return rows[row].set;
	case XT_CUPTI_ACTIVITY_MEMORY2:
		return rows[row].memory;
	case XT_CUPTI_ACTIVITY_GRAPH_TRACE:
		return rows[row].graph;
	default:
		return 0;
	}
}

#endif
