/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page without data: src/report, bundled into one file when xtrace is built.
 */
#ifndef XT_PAGE_TEMPLATE_H
#define XT_PAGE_TEMPLATE_H

#include <stddef.h>

#define PAGE_DATA_MARK "<!--DATA-->" /* occurs once; replaced by the data */

/* Returns NULL, with *length_out 0, if xtrace was built without node or its packages. */
const char *page_template(size_t *length_out);

#endif
