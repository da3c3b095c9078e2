/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a mapped module is, by its program headers and notes: where it lies, and of which build it is.
 * Any thread; no lock, no malloc.
 */
#ifndef XT_INJECT_MODULE_IMAGE_H
#define XT_INJECT_MODULE_IMAGE_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xtrace/crash_buffer_format.h"

struct module_image {
	uint64_t start, end; /* [start, end): from the first to the last byte that is mapped */
	uint64_t bias;	     /* address - bias = ELF virtual address */
	uint32_t build_id_bytes;
	uint8_t build_id[XT_MODULE_BUILD_ID_MAX];
};

/* Fills in the image of the module that has these headers, which must be mapped. False if nothing of
 * it is mapped. */
bool module_image_read(struct module_image *image, uint64_t bias, const ElfW(Phdr) * headers,
		       size_t header_count);

bool module_image_is_same(const struct module_image *a, const struct module_image *b);

#endif
