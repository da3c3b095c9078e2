/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "model.h"

void load_batch(const struct model *model, unsigned int microseconds)
{
	static unsigned char batch[BATCH_BYTES];

	usleep(microseconds);
	for (size_t i = 0; i < sizeof(batch); i++)
		batch[i] = (unsigned char)i;
	check(cuMemcpyHtoDAsync(model->batch, batch, sizeof(batch), model->compute), "upload");
}
