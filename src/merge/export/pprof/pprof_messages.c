/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/export/pprof/pprof_messages.h"

#include <stdlib.h>

#include "merge/base/text.h"

int64_t pprof_string(struct pprof *pprof, const char *text, size_t length)
{
	char *clean = xt_malloc(text_clean_bound(length) + 1);
	uint32_t name = names_intern(&pprof->strings, clean, text_clean(clean, text, length, '\0'));

	free(clean);
	return name;
}

void pprof_put(struct pprof *pprof, const Perftools__Profiles__Profile *piece)
{
	size_t length = perftools__profiles__profile__get_packed_size(piece);

	xt_grow(&pprof->packed, &pprof->packed_capacity, length, 1);
	perftools__profiles__profile__pack(piece, pprof->packed);
	gzip_write(pprof->gzip, pprof->packed, length);
}
