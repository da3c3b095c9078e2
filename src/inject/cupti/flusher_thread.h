/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_INJECT_FLUSHER_THREAD_H
#define XT_INJECT_FLUSHER_THREAD_H

/*
 * The flusher thread: every 50 ms it asks CUPTI for finished records. It is the only thread of the tracer
 * that may hang in CUPTI or the driver. Returns after flusher_stop() and a last, forced flush.
 */
void *flusher_main(void *unused);

#endif
