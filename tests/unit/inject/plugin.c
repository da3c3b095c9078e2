/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that tests load and unload. Built twice: same size and symbols, different frames.
 */
#include <string.h>

void plugin_call(void (*callback)(void));

__attribute__((visibility("default"), noinline)) void plugin_call(void (*callback)(void))
{
	volatile char memory[PLUGIN_FRAME_BYTES];

	memory[0] = 1;
	callback();
	memory[1] = memory[0];
}
