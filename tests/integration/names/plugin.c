/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin, of which there are two, by NAME: code of one size, so that the second is mapped where
 * the first was. The function that launches has another name in each, and stands at one address.
 */
extern void device_launch(unsigned blocks);

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
