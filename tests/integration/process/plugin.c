/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that is loaded and unloaded.
 */
#include <unistd.h>

int plugin_value(void);
__attribute__((visibility("default"))) void plugin_exit(int status);

int plugin_value(void)
{
	return 1;
}

void plugin_exit(int status)
{
	_exit(status);
}
