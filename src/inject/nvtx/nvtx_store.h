/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for what programs register with NVTX: domain names, strings, payload schemas. Never freed.
 * Any thread; no lock, no malloc.
 */
#ifndef XT_INJECT_NVTX_STORE_H
#define XT_INJECT_NVTX_STORE_H

#include <stddef.h>
#include <wchar.h>

#define TEXT_BYTES_MAX 4096 /* longer texts are cut */

/* Takes bytes from the store, aligned to 8. NULL if it is full. */
void *nvtx_store(size_t bytes);

/* Copies the text into the store. "" if it is full. */
const char *nvtx_keep_text(const char *text);

/* Whether the text is a registered string in the store. */
int nvtx_is_registered(const char *text);

/* Converts to UTF-8. Cuts at the end of a character; returns the length. */
size_t nvtx_narrow(const wchar_t *wide, char *out, size_t out_bytes);

#endif
