/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes as text, and back: base64 of RFC 4648, with padding.
 */
#ifndef XT_PAGE_BASE64_H
#define XT_PAGE_BASE64_H

#include <stddef.h>

/* The text, terminated; to be freed. NULL if memory ran out. */
char *base64_text(const void *bytes, size_t length);

/* The bytes; to be freed. NULL if memory ran out, or (errno is EINVAL then) it is no base64. */
void *base64_bytes(const char *text, size_t *length_out);

#endif
