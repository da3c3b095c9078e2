/* SPDX-License-Identifier: Apache-2.0 */
#include "log/recover/recovery.h"

#include <stdlib.h>
#include <string.h>

bool recovery_grow(void *array, size_t *capacity, size_t index, size_t item_bytes)
{
	size_t wanted = index + 1 > *capacity * 2 ? index + 1 : *capacity * 2;
	uint8_t *grown;
	void *old;

	if (index < *capacity)
		return true;
	memcpy(&old, array, sizeof(old));
	grown = reallocarray(old, wanted, item_bytes);
	if (!grown)
		return false;
	memset(grown + *capacity * item_bytes, 0, (wanted - *capacity) * item_bytes);
	memcpy(array, &grown, sizeof(grown));
	*capacity = wanted;
	return true;
}
