/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/export/sqlite/sqlite_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "merge/base/text.h"
#include "merge/sums/exporter.h"

/* Keep the first error, as for write errors. */
void sqlite_note_error(struct sink *sink, int result)
{
	if (result == SQLITE_OK || result == SQLITE_DONE || sink->out.error)
		return;
	switch (result & 0xff) {
	case SQLITE_FULL:
		sink->out.error = -ENOSPC;
		break;
	case SQLITE_NOMEM:
		xt_out_of_memory(0);
	default:
		sink->out.error = -EIO;
	}
}

void sqlite_put(struct sink *sink, enum statement statement)
{
	struct sqlite *s = sink->state;

	if (sink->out.error)
		return;
	sqlite_note_error(sink, sqlite3_step(s->statements[statement]));
	sqlite3_reset(s->statements[statement]);
}

void sqlite_text(struct sqlite *s, enum statement statement, int column, const char *text)
{
	sqlite3_bind_text(s->statements[statement], column, text, -1, SQLITE_TRANSIENT);
}

void sqlite_clean_text(struct sqlite *s, enum statement statement, int column, const char *text)
{
	size_t length = strlen(text);
	char *clean = xt_malloc(text_clean_bound(length) + 1);

	clean[text_clean(clean, text, length, '\0')] = '\0';
	sqlite_text(s, statement, column, clean);
	free(clean);
}
