/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that comes and goes, of which there are several, by NAME: code of one size, so that one is
 * mapped where another was. The function that launches has another name in each.
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
