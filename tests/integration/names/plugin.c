/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin, built with several values of NAME and KERNEL. All have the same code size, so one may
 * be mapped at the address of another. The launching function has a different name in each, at the
 * same offset.
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
