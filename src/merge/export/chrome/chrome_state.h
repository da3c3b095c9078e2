/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of the Chrome exporter, and the texts that its events share.
 */
#ifndef XT_MERGE_CHROME_STATE_H
#define XT_MERGE_CHROME_STATE_H

#include "merge/base/text.h"
#include "merge/tracks/tracks.h"

struct text {
	char *data;
	size_t length;
};

/* Short text that many events contain. All of it is copied: a constant size is faster. */
#define PIECE_BYTES 40
#define EVENT	    ",\n" /* before each event: the name of a process is first, so it needs no other */
struct piece {
	uint32_t length;
	char text[PIECE_BYTES];
};

static inline char *put_piece(char *p, const struct piece *piece)
{
	memcpy(p, piece->text, sizeof(piece->text));
	return p + piece->length;
}

struct chrome_track {
	uint32_t pid, tid;
	struct piece place; /* `,"pid":1,"tid":2` */
	struct text args;   /* `"device":0,"context":1,"stream":7,`, or NULL */
};

struct chrome {
	struct tracks tracks;
	bool has_events;
	struct piece flow;		/* number of the last one */
	struct piece keys[ARG_KEYS];	/* `"bytes":` */
	struct piece heads[CATEGORIES]; /* of a complete event: `,\n{"ph":"X","cat":"api"` */
	struct text *names;		/* by name in paths: JSON text; NULL: not used yet */
	size_t name_capacity;
	bool *used_nodes; /* by path node: an event refers to this frame */
	size_t used_capacity;
	struct text buffer; /* for one text */
	size_t buffer_capacity;
};

static inline struct chrome_track *chrome_track(struct track *track)
{
	return (struct chrome_track *)track->data;
}

static inline struct chrome *chrome_of(struct tracks *t)
{
	return (struct chrome *)t;
}

static inline int64_t chrome_time(const struct tracks *t, uint64_t ns)
{
	return (int64_t)(ns - (uint64_t)t->process->origin_ns);
}

#endif
