/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_HTML_PAGE_H
#define XT_MERGE_HTML_PAGE_H

#include "merge/export/html/html_events.h"

/* Writes the largest page that fits into --html-size. */
void html_put_page(struct sink *sink, const struct run *run);

#endif
