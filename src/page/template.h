/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page without its data: src/report, made into one file when xtrace is built.
 */
#ifndef XT_PAGE_TEMPLATE_H
#define XT_PAGE_TEMPLATE_H

#include <stddef.h>

#define PAGE_DATA_MARK "<!--DATA-->" /* gives way to the data; it is there once */

/* NULL, and *length_out 0, where xtrace was built without node or its packages. */
const char *page_template(size_t *length_out);

#endif
