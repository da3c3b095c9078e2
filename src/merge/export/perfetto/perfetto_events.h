/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All functions return 0 or -ENOMEM unless they say otherwise.
 */
#ifndef XT_MERGE_PERFETTO_EVENTS_H
#define XT_MERGE_PERFETTO_EVENTS_H

#include "merge/export/perfetto/perfetto_state.h"

/* Interns a text or stack in the sequence. The ids are the name + 1, the node, and the value. */
int perfetto_intern_name(struct sink *sink, struct sequence *sequence, const struct names *names,
			 uint32_t name);
int perfetto_intern_stack(struct sink *sink, struct sequence *sequence, const struct paths *paths,
			  uint32_t node);
int perfetto_intern_value(struct sink *sink, struct sequence *sequence, uint32_t value);

/* An event, with what is not 0 of the members. */
struct perfetto_event {
	uint64_t time_ns;  /* on the one clock */
	uint64_t track;	   /* where it is not the sequence's */
	uint64_t flow;	   /* what leads from or to here … */
	uint64_t number;   /* annotation */
	double real;	   /* annotation, if has_real */
	uint32_t name;	   /* interned, + 1 */
	uint32_t stack;	   /* interned node */
	uint32_t text;	   /* annotation: interned value */
	uint8_t type;	   /* Perfetto__Protos__TrackEvent__Type */
	uint8_t ends_flow; /* … and no further */
	uint8_t number_is; /* enum annotation */
	uint8_t text_is;   /* likewise */
	bool has_number;   /* even if it is 0 */
	bool has_real;
	bool is_signed;	 /* the number */
	int64_t counter; /* of TYPE_COUNTER */
};
void perfetto_put_event(struct sink *sink, struct sequence *sequence,
			const struct perfetto_event *event);

#endif
