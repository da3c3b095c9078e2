/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XT_MERGE_HTML_LABELS_H
#define XT_MERGE_HTML_LABELS_H

#include "merge/export/html/html_state.h"

/* Interns text, with the process appended if there are several. */
uint32_t html_label(struct html_labels *labels, const struct process *process, char *text,
		    uint32_t id);

void html_labels_free(struct html_labels *labels);

/* Returns the name of a device in html->devices. */
uint32_t html_device(struct html *html, const struct process *process, uint32_t device);

/* Returns the name of a thread in html->threads, or NAME_EMPTY for an unknown one. */
uint32_t html_thread(struct html *html, const struct process *process, uint32_t thread);

/* Returns the name of a thread of a process by the kernel's ids, or NAME_EMPTY. */
uint32_t html_known_thread(const struct html *html, size_t process, uint32_t tid);

#endif
