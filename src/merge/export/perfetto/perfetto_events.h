/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions return 0 or -ENOMEM unless stated otherwise.
 */
#ifndef XT_MERGE_PERFETTO_EVENTS_H
#define XT_MERGE_PERFETTO_EVENTS_H

#include "merge/export/perfetto/perfetto_state.h"

/* Interns a string in the sequence. Ids: the name + 1, and the value. */
int perfetto_intern_name(struct sink *sink, struct sequence *sequence, const struct names *names,
			 uint32_t name);
int perfetto_intern_value(struct sink *sink, struct sequence *sequence, uint32_t value);

/* Interns a stack of the log. Its id is the node of its path: PATH_ROOT if it is not known. */
int perfetto_intern_stack(struct sink *sink, struct sequence *sequence,
			  const struct process *process, uint32_t stack, uint32_t *node_out);

/* Interns a path. Its id is its node, which may be PATH_ROOT. */
int perfetto_intern_path(struct sink *sink, struct sequence *sequence, const struct paths *paths,
			 uint32_t node);

/* An event. Only members that are not 0 are written. */
struct perfetto_event {
	uint64_t time_ns;  /* on the common clock */
	uint64_t track;	   /* if it differs from the sequence's track */
	uint64_t flow;	   /* flow that starts, continues or ends here */
	uint64_t number;   /* annotation */
	uint64_t weight;   /* of the stack, in sums over events */
	double real;	   /* annotation, if has_real */
	uint32_t name;	   /* interned name + 1 */
	uint32_t stack;	   /* interned node */
	uint32_t text;	   /* annotation, as an interned value */
	uint8_t type;	   /* Perfetto__Protos__TrackEvent__Type */
	uint8_t ends_flow; /* the flow ends here */
	uint8_t number_is; /* enum annotation */
	uint8_t text_is;   /* enum annotation */
	bool has_number;   /* write number even if it is 0 */
	bool has_real;
	bool is_signed;	 /* number is signed */
	int64_t counter; /* of TYPE_COUNTER */
};
void perfetto_put_event(struct sink *sink, struct sequence *sequence,
			const struct perfetto_event *event);

#endif
