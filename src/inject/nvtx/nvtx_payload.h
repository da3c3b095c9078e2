/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies the payloads of an NVTX event, and the texts they point to, into a ring record.
 */
#ifndef XT_INJECT_NVTX_PAYLOAD_H
#define XT_INJECT_NVTX_PAYLOAD_H

#include <stddef.h>
#include <stdint.h>

#include "inject/nvtx/nvtx_events.h"
#include "inject/nvtx/nvtx_schema.h"

#define POINTED_TEXT_BYTES 256

/*
 * A payload in a ring record. Its data follow, then a struct taken_text for each text that the
 * schema points to; each padded to a multiple of 8 bytes.
 */
struct taken_payload {
	uint32_t schema; /* number; 0: not registered */
	uint32_t data_bytes;
	uint64_t schema_id;    /* NVTX's id; XT_NVTX_TYPE_NONE: payloads that did not fit */
	uint64_t stated_bytes; /* stated by the program; or how many payloads did not fit */
};

struct taken_text {
	uint32_t text_bytes; /* or TEXT_NULL */
	uint32_t is_cut;     /* the text may be longer */
};
#define TEXT_NULL UINT32_MAX

/* Takes message, category and color of an event without attributes from its payloads. */
void nvtx_payload_describe(struct nvtx_event *event);

/* Copies the payloads of an event; returns how many bytes that took, a multiple of 8. Hot path. */
size_t nvtx_payload_take(const struct nvtx_event *event, uint8_t *out, size_t room);

#endif
