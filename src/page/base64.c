/* SPDX-License-Identifier: Apache-2.0 */
#include "page/base64.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *base64_text(const void *bytes, size_t length)
{
	const uint8_t *from = bytes;
	char *text = xt_malloc((length + 2) / 3 * 4 + 1), *to = text;

	for (size_t i = 0; i < length; i += 3) {
		size_t left = length - i;
		uint32_t three = (uint32_t)from[i] << 16 |
				 (left > 1 ? (uint32_t)from[i + 1] << 8 : 0) |
				 (left > 2 ? from[i + 2] : 0);

		*to++ = digits[three >> 18];
		*to++ = digits[three >> 12 & 63];
		*to++ = left > 1 ? digits[three >> 6 & 63] : '=';
		*to++ = left > 2 ? digits[three & 63] : '=';
	}
	*to = '\0';
	return text;
}

void *base64_bytes(const char *text, size_t *length_out)
{
	size_t length = strlen(text), padding = 0, used = 0;
	uint8_t *bytes = xt_malloc(length / 4 * 3 + 1);
	uint32_t bits = 0;

	while (padding < 2 && padding < length && text[length - 1 - padding] == '=')
		padding++;
	for (size_t i = 0; i < length - padding; i++) {
		const char *digit = text[i] ? strchr(digits, text[i]) : NULL;

		if (!digit || length % 4)
			goto senseless;
		bits = bits << 6 | (uint32_t)(digit - digits);
		if (i % 4 == 3)
			for (int shift = 16; shift >= 0; shift -= 8)
				bytes[used++] = (uint8_t)(bits >> shift);
	}
	/* Decode the last group: two digits give one byte, three give two. */
	if (padding == 2)
		bytes[used++] = (uint8_t)(bits >> 4);
	if (padding == 1) {
		bytes[used++] = (uint8_t)(bits >> 10);
		bytes[used++] = (uint8_t)(bits >> 2);
	}
	*length_out = used;
	return bytes;
senseless:
	free(bytes);
	return NULL;
}
