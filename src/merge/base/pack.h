/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes data structures into a buffer and reads them from one.
 *
 * The same code does both: pack_bytes() and pack_array() write or read, as the pack says. So both
 * directions cannot disagree. The bytes are those of the memory, which only processes of one build
 * may exchange (build_name()).
 *
 * When reading, no length is trusted, and a checksum finds damage. The first error stays: later
 * calls do nothing.
 */
#ifndef XT_MERGE_PACK_H
#define XT_MERGE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pack {
	uint8_t *data;
	size_t bytes, capacity; /* reading: capacity is unused */
	size_t at;		/* reading: the next byte */
	bool is_reading;
	int error; /* 0, -EBADMSG: damaged, -ESTALE: the log has changed */
};

/* Begins a buffer to write. */
void pack_begin(struct pack *pack);

/* Begins to read a buffer, which must stay valid. Sets the error if it is damaged. */
void pack_open(struct pack *pack, uint8_t *data, size_t bytes);

/*
 * Completes a buffer that was written. Returns its data, which the caller frees, and its length.
 * NULL after an error.
 */
uint8_t *pack_end(struct pack *pack, size_t *bytes_out);

/* Marks the buffer as damaged, if it is read and a value is not as expected. */
void pack_check(struct pack *pack, bool is_valid);

/* A value, which must have no pointers. */
void pack_bytes(struct pack *pack, void *value, size_t bytes);
#define PACK(pack, value) pack_bytes((pack), &(value), sizeof(value))

/*
 * An array of *count elements without pointers. array: address of the pointer to it. When reading,
 * allocates it: the caller frees it. *capacity becomes its size; NULL: there is no such number.
 * More than count_max elements are damage.
 */
void pack_array(struct pack *pack, void *array, size_t *count, size_t *capacity,
		size_t element_bytes, size_t count_max);
#define PACK_ARRAY(pack, array, count, capacity, count_max)                                        \
	pack_array((pack), &(array), &(count), &(capacity), sizeof(*(array)), (count_max))
#define PACK_LIST(pack, l, count_max) PACK_ARRAY(pack, (l).list, (l).count, (l).capacity, count_max)

/* As PACK(), but other bytes than those of true and false are damage. */
void pack_bool(struct pack *pack, bool *value);

/* Marks the buffer as damaged if a flag of a structure that was read is neither true nor false. */
void pack_check_bool(struct pack *pack, const bool *flag);

/* As PACK(), for 0 or -errno: other numbers are damage. */
void pack_error_number(struct pack *pack, int *error);

/* A text, allocated when reading. */
void pack_text(struct pack *pack, char **text);

#endif
