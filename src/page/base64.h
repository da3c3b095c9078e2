/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Base64 (RFC 4648) with padding.
 */
#ifndef XT_PAGE_BASE64_H
#define XT_PAGE_BASE64_H

#include <stddef.h>

/* Encodes bytes as a terminated string, to be freed. */
char *base64_text(const void *bytes, size_t length);

/* Decodes text into bytes, to be freed. Returns NULL if the text is invalid. */
void *base64_bytes(const char *text, size_t *length_out);

#endif
