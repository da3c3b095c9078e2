/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin, of which there are several, by NAME and KERNEL: code of one size, so that each is mapped
 * where another one was. The function that launches has another name in each, and stands at one address.
 */
extern void plugin_launch(unsigned kernel);

__attribute__((noinline)) static void NAME(void)
{
	plugin_launch(KERNEL);
	__asm__ volatile("");
}

__attribute__((visibility("default"))) void run(void)
{
	NAME();
	__asm__ volatile("");
}
