/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that is loaded and unloaded, built with several values of NAME. All have the same code
 * size, so one may be mapped at the address of another. The launching function has a different name
 * in each.
 */
extern void device_launch(unsigned blocks);
void run(unsigned blocks);

__attribute__((noinline)) static void NAME(unsigned blocks)
{
	device_launch(blocks);
	__asm__ volatile("");
}

__attribute__((visibility("default"))) void run(unsigned blocks)
{
	NAME(blocks);
	__asm__ volatile("");
}
