/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/base/gzip.h"

#include <stdlib.h>
#include <zlib.h>

#include "base/memory.h"

#define GZIP_WINDOW_BITS (15 + 16) /* the largest window; 16 adds a gzip header */
#define GZIP_MEMORY	 8
#define ROOM_BYTES	 65536

struct gzip {
	struct output *out;
	z_stream stream;
};

struct gzip *gzip_new(struct output *out)
{
	struct gzip *gzip = xt_calloc(1, sizeof(*gzip));

	gzip->out = out;
	if (deflateInit2(&gzip->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW_BITS,
			 GZIP_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
		xt_out_of_memory(0);
	return gzip;
}

static int deflate_some(struct gzip *gzip, int flush)
{
	char *room = output_room(gzip->out, ROOM_BYTES);
	int result;

	gzip->stream.next_out = (unsigned char *)room;
	gzip->stream.avail_out = ROOM_BYTES;
	result = deflate(&gzip->stream, flush);
	output_advance(gzip->out, (char *)gzip->stream.next_out);
	return result;
}

void gzip_write(struct gzip *gzip, const void *bytes, size_t length)
{
	const unsigned char *p = bytes;

	while (length) {
		unsigned piece = length < 1u << 30 ? (unsigned)length : 1u << 30;

		gzip->stream.next_in = (unsigned char *)p;
		gzip->stream.avail_in = piece;
		while (gzip->stream.avail_in)
			deflate_some(gzip, Z_NO_FLUSH);
		p += piece;
		length -= piece;
	}
}

void gzip_finish(struct gzip *gzip)
{
	while (deflate_some(gzip, Z_FINISH) != Z_STREAM_END)
		;
}

void gzip_free(struct gzip *gzip)
{
	if (!gzip)
		return;
	deflateEnd(&gzip->stream);
	free(gzip);
}
