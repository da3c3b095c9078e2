/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a CPython interpreter lays out what a walk of its frames reads: offsets in bytes.
 *
 * From 3.13 on the interpreter publishes most of them at the start of _PyRuntime; before, they are
 * a table here. Nothing is taken for a version that is not known.
 */
#ifndef XT_INJECT_PYTHON_LAYOUT_H
#define XT_INJECT_PYTHON_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

/* What divides the chain of frames into those that one activation of the interpreter's loop runs. */
enum python_division {
	PYTHON_EACH_ALONE,  /* 3.9: each frame is run by a loop of its own */
	PYTHON_EACH_MARKED, /* 3.10: the same, with a struct _PyCFrame in the loop's frame */
	PYTHON_BY_FLAG,	    /* 3.11: likewise in it; the outermost is flagged */
	PYTHON_BY_SHIM, /* from 3.12: behind the outermost is a frame that is in the loop's frame */
};

enum python_line_format {
	PYTHON_LNOTAB,	  /* 3.9 */
	PYTHON_LINETABLE, /* 3.10 */
	PYTHON_LOCATIONS, /* from 3.11 */
};

/* Owners of a frame from here on are no code's. */
#define PYTHON_OWNER_SHIM 3

/* Of a state's status: initialised, of a thread, not of none any more, what its thread's variable names. */
#define PYTHON_STATUS_MASK   0x0fu
#define PYTHON_STATUS_GOOD   0x0bu
#define PYTHON_STATUS_ACTIVE 0x10u /* a thread, whichever, runs Python in it */

/* 0 where there is no such member; those that may be at offset 0 always exist. What each launch reads stands first. */
struct python_layout {
	uint8_t division;	  /* enum python_division */
	uint8_t line_format;	  /* enum python_line_format */
	uint16_t state_frame;	  /* PyThreadState: the innermost frame */
	uint16_t state_cframe;	  /* 3.10 to 3.12: the struct _PyCFrame of the innermost loop */
	uint16_t state_thread_id; /* to 3.11: pthread_self() of the thread whose it is */
	uint16_t state_status;	  /* from 3.12: bits, PYTHON_STATUS_* */
	uint16_t state_interpreter;
	uint16_t interpreter_id; /* from 3.12: a number that no other one has */
	uint16_t cframe_frame;	 /* where the state does not say it: the innermost frame */
	uint16_t cframe_previous;
	uint16_t frame_previous;
	uint16_t frame_code;
	uint16_t frame_instruction; /* a pointer; to 3.10 an index */
	uint16_t frame_is_entry;    /* 3.11 */
	uint16_t frame_owner;	    /* from 3.11 */
	uint16_t instruction_bytes; /* the unit of an index; 0 from 3.11 on */
	uint16_t code_version; /* from 3.12: a number that no other code of its interpreter has */
	uint16_t runtime_finalizing;
	uint16_t runtime_interpreters; /* to 3.11: the newest, and behind it the first */
	uint16_t frame_tlbc_index;     /* free-threaded: which copy of the instructions */
	uint16_t code_name;
	uint16_t code_file;
	uint16_t code_first_line;
	uint16_t code_line_table;
	uint16_t code_instructions;    /* from 3.11: where they begin */
	uint16_t code_first_traceable; /* from 3.11: before it, a frame is not complete */
	uint16_t code_tlbc;
	uint16_t object_type;
	uint16_t type_name;
	uint16_t bytes_size;
	uint16_t bytes_data;
	uint16_t str_length;
	uint16_t str_state;
	uint16_t str_kind_bit;	    /* in the state: kind (3 bits), compact, ASCII */
	uint16_t str_ascii_bytes;   /* where the text of an ASCII string begins … */
	uint16_t str_compact_bytes; /* … and of others */
};

#define PYTHON_VERSION(major, minor) ((uint32_t)(major) << 24 | (uint32_t)(minor) << 16)
#define PYTHON_FIRST_KNOWN	     PYTHON_VERSION(3, 9)
#define PYTHON_LAST_KNOWN	     PYTHON_VERSION(3, 14)

/*
 * Fills *layout for the interpreter of that version (as PY_VERSION_HEX) whose _PyRuntime is at
 * runtime. 0, or -EINVAL if its layout is not known; *why then says so. Any thread.
 */
int python_layout_find(uint32_t version, const void *runtime, struct python_layout *layout,
		       char *why, size_t why_bytes);

#endif
