/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of CPython that a reader of frames must know: line tables, characters, and the offsets,
 * in bytes, of the structures that a walk reads.
 *
 * From 3.13 on, the interpreter publishes most of them at the start of _PyRuntime. Older versions
 * are in a table. An unknown version has no layout.
 */
#ifndef XT_PYTHON_LAYOUT_H
#define XT_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * How to split the chain of frames into runs: the frames that one activation of the interpreter
 * loop executes.
 */
enum python_division {
	PYTHON_EACH_UNMARKED, /* 3.9: one frame per activation */
	PYTHON_EACH_MARKED, /* 3.10: the same, with a struct _PyCFrame in the activation's native frame */
	PYTHON_BY_FLAG, /* 3.11: the same struct; a flag marks the outermost frame of a run */
	PYTHON_BY_SHIM, /* from 3.12: a shim frame follows the outermost; it is in the activation's native frame */
};

enum python_line_format {
	PYTHON_LNOTAB,	  /* 3.9 */
	PYTHON_LINETABLE, /* 3.10 */
	PYTHON_LOCATIONS, /* from 3.11 */
};

/*
 * Where an instance keeps its attributes. A dict may be split: it shares the keys of the class and
 * has values of its own.
 */
enum python_dict_place {
	PYTHON_DICT_AT_OFFSET,	  /* to 3.10: a dict, at an offset of the type */
	PYTHON_DICT_AND_VALUES,	  /* 3.11: before the object, a dict and values; one is NULL */
	PYTHON_DICT_OR_VALUES,	  /* 3.12: before the object, a dict, or values less one byte */
	PYTHON_DICT_AND_EMBEDDED, /* from 3.13: a dict before the object, or values behind it */
};

/* Frames with this owner or a higher one execute no code object. */
#define PYTHON_OWNER_SHIM 3

/*
 * Bits of a thread state's status: initialised, bound to a thread, unbound, current in its thread.
 */
#define PYTHON_STATUS_MASK   0x0fu
#define PYTHON_STATUS_GOOD   0x0bu
#define PYTHON_STATUS_ACTIVE 0x10u /* a thread executes Python in this state */

/* 0: no such member. Members that may have offset 0 always exist. Hot members come first. */
struct python_layout {
	uint8_t division;	  /* enum python_division */
	uint8_t line_format;	  /* enum python_line_format */
	uint16_t state_frame;	  /* PyThreadState: the innermost frame */
	uint16_t state_cframe;	  /* 3.10 to 3.12: struct _PyCFrame of the innermost activation */
	uint16_t state_thread_id; /* to 3.11: pthread_self() of its thread */
	uint16_t state_status;	  /* from 3.12: bits, PYTHON_STATUS_* */
	uint16_t state_interpreter;
	uint16_t interpreter_id; /* from 3.12: unique number */
	uint16_t cframe_frame;	 /* innermost frame, if the thread state does not have it */
	uint16_t cframe_previous;
	uint16_t frame_previous;
	uint16_t frame_code;
	uint16_t frame_instruction; /* a pointer; to 3.10 an index */
	uint16_t frame_is_entry;    /* 3.11 */
	uint16_t frame_owner;	    /* from 3.11 */
	uint16_t instruction_bytes; /* the unit of an index; 0 from 3.11 on */
	uint16_t code_version;	    /* from 3.12: unique within the interpreter */
	uint16_t runtime_finalizing;
	uint16_t runtime_interpreters; /* to 3.11: the newest interpreter, followed by the first */
	uint16_t
		frame_tlbc_index; /* free-threaded: index of the thread's copy of the instructions */
	uint16_t code_name;
	uint16_t code_file;
	uint16_t code_first_line;
	uint16_t code_line_table;
	uint16_t code_instructions;    /* from 3.11: start of the instructions */
	uint16_t code_first_traceable; /* from 3.11: a frame before it is incomplete */
	uint16_t code_tlbc;
	uint16_t object_type;
	uint16_t type_name;
	uint16_t bytes_size;
	uint16_t bytes_data;
	uint16_t str_length;
	uint16_t str_state;
	uint16_t str_kind_bit;	    /* in the state: kind (3 bits), compact, ASCII */
	uint16_t str_ascii_bytes;   /* offset of the text of an ASCII string */
	uint16_t str_compact_bytes; /* offset of the text of other compact strings */
	/* For the paths of modules (python_modules.h). */
	uint16_t frame_locals;	/* first local variable of a frame; 0: modules cannot be read */
	uint16_t type_keys;	/* of a class: the keys of its instances' values */
	uint16_t values_start;	/* of an object's values */
	uint16_t keys_count;	/* of keys: number of entries */
	uint16_t keys_indices;	/* of keys: indices, then entries */
	uint8_t keys_are_sized; /* to 3.10: keys have their size; later its logarithm and a kind */
	uint8_t dict_place;	/* enum python_dict_place */
	/* For other processes: from _PyRuntime to the states of all threads. */
	uint16_t runtime_head;	      /* the newest interpreter */
	uint16_t interpreter_next;    /* the next older one */
	uint16_t interpreter_threads; /* the newest state; states begin with two links and this */
	uint16_t state_pthread;	      /* pthread_self() of its thread */
	uint16_t state_native_id;     /* from 3.11: gettid() of its thread */
};

#define PYTHON_VERSION(major, minor) ((uint32_t)(major) << 24 | (uint32_t)(minor) << 16)

/* As people write it. 0: unknown, so an old one. */
void python_version_name(uint32_t version, char *out, size_t out_bytes);

/*
 * Whether this is the file of an interpreter. Accepts programs such as "python3", "python3.12",
 * "pypy3" and libraries such as "libpython3.12.so.1.0", "libpypy3.10-c.so". Rejects the stub
 * "libpython3.so" and names like "python3app".
 */
bool python_has_name(const char *path);

/*
 * The version by symbols: the value of Py_Version, which exists since 3.11, or else whether it has
 * PyIter_Send, since 3.10, and PyFrame_GetBack, since 3.9. 0: older than all known versions.
 */
uint32_t python_version_by_symbols(uint32_t py_version, bool has_iter_send, bool has_get_back);

/* The largest of several ends of members, but at most `most`: how many bytes to read. */
size_t python_end(const uint16_t *ends, size_t count, size_t most);

/* A member of up to 8 bytes in a copy of an object. */
static inline uint64_t python_member(const uint8_t *object, size_t offset, unsigned bytes)
{
	uint64_t value = 0;

	memcpy(&value, object + offset, bytes);
	return value;
}

/*
 * Fills *layout for the interpreter of that version (PY_VERSION_HEX) with _PyRuntime at `runtime`.
 * 0, or -EINVAL with *why if the layout is unknown. Any thread.
 */
int python_layout_find(uint32_t version, const void *runtime, struct python_layout *layout,
		       char *why, size_t why_bytes);

/*
 * Returns the line of the instruction at `offset` bytes from the first one (may be negative), or 0
 * if it has none. Tolerates any table contents. *used_out is how many bytes were read. Any thread;
 * no memory, no system call.
 */
uint32_t python_line(enum python_line_format format, const uint8_t *table, size_t table_bytes,
		     uint32_t first_line, int64_t offset, size_t *used_out);

/*
 * Writes a character as UTF-8: at most 4 bytes, whose number is returned. Python stores undecodable
 * bytes of file names as lone surrogates.
 */
unsigned python_put_character(uint8_t *out, uint32_t character);

#endif
