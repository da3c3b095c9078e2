/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes a mapped module by its program headers and notes: its addresses and build id. Any
 * thread; no lock, no malloc.
 */
#ifndef XT_INJECT_MODULE_IMAGE_H
#define XT_INJECT_MODULE_IMAGE_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "xtrace/crash_buffer_format.h"

struct module_image {
	uint64_t start, end; /* [start, end): from the first to the last mapped byte */
	uint64_t bias;	     /* address - bias = ELF virtual address */
	uint32_t build_id_bytes;
	uint8_t build_id[XT_MODULE_BUILD_ID_MAX];
};

/*
 * Describes the module that has these program headers, which must be mapped. False if no segment is
 * mapped.
 */
bool module_image_read(struct module_image *image, uint64_t bias, const ElfW(Phdr) * headers,
		       size_t header_count);

bool module_image_is_same(const struct module_image *a, const struct module_image *b);

#endif
