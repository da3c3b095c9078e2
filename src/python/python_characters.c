/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lone surrogates of undecodable bytes become these bytes again. Others become question marks.
 */
#include "python/python_characters.h"

unsigned python_put_character(uint8_t *out, uint32_t c)
{
	if (c >= 0xdc80 && c <= 0xdcff)
		c &= 0xff;
	else if (c >= 0xd800 && c <= 0xdfff)
		c = '?';
	else if (c >= 0x10000) {
		out[0] = (uint8_t)(0xf0 | (c >> 18 & 7));
		out[1] = 0x80 | (c >> 12 & 63);
		out[2] = 0x80 | (c >> 6 & 63);
		out[3] = 0x80 | (c & 63);
		return 4;
	} else if (c >= 0x800) {
		out[0] = (uint8_t)(0xe0 | c >> 12);
		out[1] = 0x80 | (c >> 6 & 63);
		out[2] = 0x80 | (c & 63);
		return 3;
	} else if (c >= 0x80) {
		out[0] = (uint8_t)(0xc0 | c >> 6);
		out[1] = 0x80 | (c & 63);
		return 2;
	}
	out[0] = (uint8_t)c;
	return 1;
}
