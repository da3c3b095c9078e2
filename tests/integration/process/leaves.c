/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that takes the address of _exit(), so that its own hash table contains the symbol. It
 * imports no other function that ends a process.
 */
#include <cuda.h>

#include <unistd.h>

int main(int argc, char **argv)
{
	void (*volatile leave)(int);

	(void)argv;
	cuInit(0);
	leave = _exit;
	if (argc > 1)
		leave(5);
	_exit(5);
}
