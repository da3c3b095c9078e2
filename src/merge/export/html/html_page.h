/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_HTML_PAGE_H
#define XT_MERGE_HTML_PAGE_H

#include "merge/export/html/html_small.h"

/* Writes the page with the chosen data. Sorts the samples of choice. */
void html_make_page(struct output *out, struct html *html, struct html_choice *choice,
		    const struct run *run);

#endif
