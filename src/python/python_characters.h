/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts the characters of Python's strings. Any thread; no memory, no system call.
 */
#ifndef XT_PYTHON_CHARACTERS_H
#define XT_PYTHON_CHARACTERS_H

#include <stdint.h>

/*
 * Writes a character as UTF-8: at most 4 bytes, whose number is returned. Python stores undecodable
 * bytes of file names as lone surrogates.
 */
unsigned python_put_character(uint8_t *out, uint32_t character);

#endif
