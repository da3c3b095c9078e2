/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that is loaded and unloaded. Built twice: same shape, same size, other frames.
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
