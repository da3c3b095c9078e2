/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that provides malloc(), and waits in a function with another name.
 */
#include <stddef.h>
#include <unistd.h>

__attribute__((visibility("default"))) void *malloc(size_t bytes);
__attribute__((visibility("default"))) void refill(int descriptor);

void *malloc(size_t bytes)
{
	(void)bytes;
	return NULL;
}

void refill(int descriptor)
{
	char byte;

	(void)!read(descriptor, &byte, 1);
}
