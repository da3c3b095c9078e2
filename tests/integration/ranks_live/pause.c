/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "model.h"

void collect_garbage(unsigned int microseconds)
{
	const struct timespec pause = {.tv_nsec = microseconds * 1000L};

	nanosleep(&pause, NULL);
}
