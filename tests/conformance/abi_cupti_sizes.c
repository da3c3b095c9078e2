/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the sizes in cuda_abi/cupti_record_bytes.h with the toolkit's headers, which declare the
 * records of older versions too. Contains no code.
 */
#include "abi_check.h"
#include "cuda_abi/cupti_record_bytes.h"

#define BYTES(ours, theirs) SAME_VALUE(XT_CUPTI_##ours##_BYTES, sizeof(CUpti_Activity##theirs))

BYTES(KERNEL7, Kernel7);
BYTES(KERNEL8, Kernel8);
BYTES(KERNEL9, Kernel9);
BYTES(KERNEL10, Kernel10);
BYTES(MEMCPY5, Memcpy5);
BYTES(MEMCPY6, Memcpy6);
BYTES(MEMCPY_PTOP4, MemcpyPtoP4);
BYTES(MEMSET4, Memset4);
BYTES(MEMORY3, Memory3);
BYTES(MEMORY4, Memory4);
BYTES(GRAPH_TRACE1, GraphTrace);
BYTES(GRAPH_TRACE2, GraphTrace2);
