/* SPDX-License-Identifier: Apache-2.0 */
/* Uses CUDA and waits. Defines one function, FUNCTION, as the runtimes of sanitizers do. */
#include <cuda.h>

#include <stdio.h>
#include <unistd.h>

__attribute__((visibility("default"))) int FUNCTION(void);

int FUNCTION(void)
{
	return 1;
}

int main(void)
{
	char byte;

	if (cuInit(0) != CUDA_SUCCESS)
		return 1;
	puts("ready");
	fflush(stdout);
	return read(STDIN_FILENO, &byte, 1) != 0;
}
