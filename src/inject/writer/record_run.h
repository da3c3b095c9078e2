/* SPDX-License-Identifier: Apache-2.0 */
/* Rows about the run itself: the process, its modules and threads, clocks and pauses. */
#ifndef XT_INJECT_RECORD_RUN_H
#define XT_INJECT_RECORD_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inject/unwind/stack_walk.h"
#include "inject/writer/recorder.h"

void record_meta(struct recorder *rec, const char *key, const char *value);
void record_meta_number(struct recorder *rec, const char *key, uint64_t value);
void record_start(struct recorder *rec);   /* META, API and first CLOCK rows */
void record_modules(struct recorder *rec); /* modules loaded or unloaded */
bool record_thread(struct recorder *rec, struct thread_buffer *tb); /* false: out of memory */
void record_clock(struct recorder *rec);
/* Recording was paused or resumed at that time. Not for XT_SWITCH_YIELDED. */
void record_switch(struct recorder *rec, uint64_t time_ns, bool is_on, enum xt_switch_why why);
/* Rows for handoffs of CUPTI (cupti_owner.h). */
void record_handoffs(struct recorder *rec);
void record_devices(struct recorder *rec); /* once the driver has answered */

/*
 * Stores the path of the module's file, shorter than XT_MODULE_PATH_MAX, and returns its length.
 * The program has no name (name_bytes 0). A relative name such as "./plugin.so" depends on the
 * directory at that time, so the path is taken from the kernel. If the module is no longer
 * mapped, the name is kept. Does not keep errno.
 */
size_t module_path(const struct module_image *image, const char *name, size_t name_bytes,
		   char *path);

#endif
