/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the figures of running processes as text for Prometheus.
 */
#ifndef XTRACE_METRICS_TEXT_H
#define XTRACE_METRICS_TEXT_H

#include "live_processes.h"

enum metrics_format {
	METRICS_PROMETHEUS, /* the older text format, version 0.0.4 */
	METRICS_OPENMETRICS,
	METRICS_FORMATS
};

/* The format that an Accept header asks for. NULL: no header. */
enum metrics_format metrics_choose(const char *accept);

const char *metrics_content_type(enum metrics_format format);

/*
 * path_count: how many call paths of each process to write, those with most GPU time. Returns text
 * to free(), or NULL if out of memory.
 */
char *metrics_text(const struct live_processes *processes, enum metrics_format format,
		   unsigned path_count);

#endif
