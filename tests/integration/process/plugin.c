/* SPDX-License-Identifier: Apache-2.0 */
/* A library that comes and goes. */
int plugin_value(void);

int plugin_value(void)
{
	return 1;
}
