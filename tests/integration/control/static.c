/* SPDX-License-Identifier: Apache-2.0 */
/* A statically linked program: no library can be loaded into it. Lives until its input ends. */
#include <stdio.h>

int main(void)
{
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 7;
}
