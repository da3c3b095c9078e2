/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches from several lines through a helper. It is built without debug information, and with
 * that of this file.
 */
#include "launches.h"

static __attribute__((noinline)) void step(void)
{
	forward();
}

static __attribute__((noinline)) void epoch(void)
{
	step();
}

int main(void)
{
	launches_begin();
	epoch();
	backward();
	return 0;
}
