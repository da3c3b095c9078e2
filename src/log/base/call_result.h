/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of CUDA calls. Any thread.
 */
#ifndef XT_LOG_CALL_RESULT_H
#define XT_LOG_CALL_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "xtrace/log_format.h"

/* CUresult and cudaError_t agree in these. */
#define XT_RESULT_OUT_OF_MEMORY 2
#define XT_RESULT_NOT_FOUND	500
#define XT_RESULT_NOT_READY	600

/* Whether a call of a class failed. Answers to queries are no failures. */
static inline bool xt_call_failed(uint32_t class, uint64_t result)
{
	return result && result != XT_RESULT_NOT_READY &&
	       !(result == XT_RESULT_NOT_FOUND && class == XT_API_MODULE);
}

#endif
