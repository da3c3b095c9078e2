/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/export/pprof/pprof_messages.h"

#include <errno.h>
#include <stdlib.h>

#include "log/base/grow.h"
#include "merge/base/text.h"

int64_t pprof_string(struct pprof *pprof, const char *text, size_t length)
{
	char *clean = malloc(text_clean_bound(length) + 1);
	uint32_t name =
		clean ? names_intern(&pprof->strings, clean, text_clean(clean, text, length, '\0'))
		      : NAME_FAILED;

	free(clean);
	return name == NAME_FAILED ? -1 : (int64_t)name;
}

int pprof_put(struct pprof *pprof, const Perftools__Profiles__Profile *piece)
{
	size_t length = perftools__profiles__profile__get_packed_size(piece);

	if (grow(&pprof->packed, &pprof->packed_capacity, length, 1) < 0)
		return -ENOMEM;
	perftools__profiles__profile__pack(piece, pprof->packed);
	gzip_write(pprof->gzip, pprof->packed, length);
	return 0;
}
