/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "model.h"

void collect_garbage(unsigned int microseconds)
{
	usleep(microseconds);
}
