/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/export/perfetto/perfetto_packets.h"

#include "log/base/grow.h"

const char *const perfetto_annotations[ANNOTATIONS] = {
	[ANNOTATION_LAUNCH] = "launch",	  [ANNOTATION_COPY] = "copy",
	[ANNOTATION_BYTES] = "bytes",	  [ANNOTATION_ERROR] = "error",
	[ANNOTATION_PAYLOAD] = "payload", [ANNOTATION_STATE] = "state",
};

int perfetto_put(struct sink *sink, const Perfetto__Protos__TracePacket *packet)
{
	struct perfetto *p = sink->state;
	Perfetto__Protos__Trace trace = PERFETTO__PROTOS__TRACE__INIT;
	Perfetto__Protos__TracePacket *list = (Perfetto__Protos__TracePacket *)packet;
	size_t length;

	trace.packet = &list;
	trace.n_packet = 1;
	length = perfetto__protos__trace__get_packed_size(&trace);
	if (grow(&p->packed, &p->packed_capacity, length, 1) < 0)
		return -ENOMEM;
	perfetto__protos__trace__pack(&trace, p->packed);
	output_text(&sink->out, (const char *)p->packed, length);
	return 0;
}
