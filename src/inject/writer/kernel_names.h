/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of kernels, which CUPTI and the driver give as addresses in GPU modules. Writer thread
 * only.
 */
#ifndef XT_INJECT_KERNEL_NAMES_H
#define XT_INJECT_KERNEL_NAMES_H

#include "inject/writer/recorder.h"

/* The string id of the name at that address; 0: unknown, or out of memory. */
uint32_t kernel_name_id(struct recorder *rec, const char *name);

/* Writes the row of a graph node's kernel. */
void record_node_name(struct recorder *rec, const struct xt_record_node_name *record);

#endif
