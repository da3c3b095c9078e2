/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that takes the address of _exit(), and so has it in its own table of hashes beside what it
 * exports; and that imports nothing else by which a process ends.
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
