/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows a function's instructions in the order of their addresses. Any thread. An instruction
 * that it cannot decode makes the size unknown.
 */
#include "sampler/frame_size.h"

#include <string.h>

/* Of struct instruction. */
enum opcode_map { OPCODE_MAP_1 = 0, OPCODE_MAP_0F, OPCODE_MAP_0F38, OPCODE_MAP_0F3A };

/*
 * One table for each opcode map. It has only the instructions that compilers emit, so that data
 * taken for code is noticed. Operands after an opcode: M: ModRM. b: 1 byte. w: 2 bytes. z: 4 bytes,
 * or 2 with prefix 66. d: 4 bytes. v: as z, or 8 bytes with REX.W. o: 8 bytes of address. B: M and
 * b. Z: M and z. e: w and b. f: M, and b if the ModRM's reg is 0 or 1. F: M, and z if the ModRM's
 * reg is 0 or 1. -: nothing. x: unknown, or a prefix.
 */
static const char map_1[] = "MMMMbzxxMMMMbzxx" /* 00 */
			    "MMMMbzxxMMMMbzxx" /* 10 */
			    "MMMMbzxxMMMMbzxx" /* 20 */
			    "MMMMbzxxMMMMbzxx" /* 30 */
			    "xxxxxxxxxxxxxxxx" /* 40 */
			    "----------------" /* 50 */
			    "xxxMxxxxzZbB----" /* 60 */
			    "bbbbbbbbbbbbbbbb" /* 70 */
			    "BZxBMMMMMMMMMMMM" /* 80 */
			    "----------x-----" /* 90 */
			    "oooo----bz------" /* a0 */
			    "bbbbbbbbvvvvvvvv" /* b0 */
			    "BBw-xxBZe-w--bx-" /* c0 */
			    "MMMMxxx-MMMMMMMM" /* d0 */
			    "bbbbbbbbddxb----" /* e0 */
			    "x-xx--fF------MM" /* f0 */;

static const char map_0f[] = "MMMMx-----x-xMxx" /* 00 */
			     "MMMMMMMMMMMMMMMM" /* 10 */
			     "MMMMxxxxMMMMMMMM" /* 20 */
			     "------x-xxxxxxxx" /* 30 */
			     "MMMMMMMMMMMMMMMM" /* 40 */
			     "MMMMMMMMMMMMMMMM" /* 50 */
			     "MMMMMMMMMMMMMMMM" /* 60 */
			     "BBBBMMM-xxxxMMMM" /* 70 */
			     "dddddddddddddddd" /* 80 */
			     "MMMMMMMMMMMMMMMM" /* 90 */
			     "---MBMxx---MBMMM" /* a0 */
			     "MMMMMMMMMMBMMMMM" /* b0 */
			     "MMBMBBBM--------" /* c0 */
			     "MMMMMMMMMMMMMMMM" /* d0 */
			     "MMMMMMMMMMMMMMMM" /* e0 */
			     "MMMMMMMMMMMMMMMM" /* f0 */;

struct decoder {
	const uint8_t *code;
	size_t at, byte_count;
	bool is_past_end;
	bool has_66;
};

static uint8_t next_byte(struct decoder *decoder)
{
	if (decoder->at >= decoder->byte_count || decoder->at >= 15) {
		decoder->is_past_end = true;
		return 0;
	}
	return decoder->code[decoder->at++];
}

static int32_t next_number(struct decoder *decoder, size_t bytes)
{
	uint32_t value = 0;

	for (size_t i = 0; i < bytes; i++)
		if (i < sizeof(value))
			value |= (uint32_t)next_byte(decoder) << (8 * i);
		else
			next_byte(decoder);
	if (bytes == 1)
		return (int8_t)value;
	if (bytes == 2)
		return (int16_t)value;
	return bytes > sizeof(value) ? 0 : (int32_t)value;
}

static void read_modrm(struct decoder *decoder, struct instruction *instruction)
{
	uint8_t modrm = next_byte(decoder), mode = modrm >> 6, rm = modrm & 7;

	instruction->modrm = modrm;
	instruction->has_modrm = true;
	if (mode == 3)
		return;
	if (rm == 4) {
		uint8_t sib = next_byte(decoder);

		if (mode == 0 && (sib & 7) == 5)
			mode = 2;
	} else if (mode == 0 && rm == 5) {
		mode = 2;
	}
	if (mode)
		next_number(decoder, mode == 1 ? 1 : 4);
}

static bool read_operands(struct decoder *decoder, struct instruction *instruction, char kind)
{
	bool is_wide = instruction->rex & 8;
	size_t z_bytes = decoder->has_66 && !is_wide ? 2 : 4;

	if (strchr("MBZfF", kind))
		read_modrm(decoder, instruction);
	if ((kind == 'f' || kind == 'F') && ((instruction->modrm >> 3) & 7) > 1)
		return true;
	switch (kind) {
	case 'M':
	case '-':
		return true;
	case 'b':
	case 'B':
	case 'f':
		instruction->immediate = next_number(decoder, 1);
		return true;
	case 'w':
		instruction->immediate = next_number(decoder, 2);
		return true;
	case 'z':
	case 'Z':
	case 'F':
		instruction->immediate = next_number(decoder, z_bytes);
		return true;
	case 'd':
		instruction->immediate = next_number(decoder, 4);
		return true;
	case 'v':
		instruction->immediate = next_number(decoder, is_wide ? 8 : z_bytes);
		return true;
	case 'o':
		next_number(decoder, 8);
		return true;
	case 'e':
		next_number(decoder, 3);
		return true;
	default:
		return false;
	}
}

/* Instructions with a VEX or EVEX prefix; `map` counts as in the prefix. */
static bool read_vector(struct decoder *decoder, struct instruction *instruction, unsigned map,
			bool is_evex)
{
	uint8_t opcode = next_byte(decoder);
	bool has_immediate =
		map == 3 || (map == 1 && ((opcode >= 0x70 && opcode <= 0x73) || opcode == 0xc2 ||
					  (opcode >= 0xc4 && opcode <= 0xc6)));

	if (map == 0 || map == 4 || map > 6 || (!is_evex && map > 3))
		return false;
	instruction->is_vector = true;
	instruction->map = (uint8_t)map;
	instruction->opcode = opcode;
	if (map == 1 && opcode == 0x77 && !is_evex)
		return true; /* vzeroupper */
	return read_operands(decoder, instruction, has_immediate ? 'B' : 'M');
}

static bool read_vector_prefix(struct decoder *decoder, struct instruction *instruction,
			       uint8_t first)
{
	uint8_t second = next_byte(decoder);

	if (first == 0xc5)
		return read_vector(decoder, instruction, 1, false);
	next_byte(decoder);
	if (first == 0xc4)
		return read_vector(decoder, instruction, second & 0x1f, false);
	next_byte(decoder);
	return read_vector(decoder, instruction, second & 7, true);
}

static bool read_opcode(struct decoder *decoder, struct instruction *instruction, uint8_t byte)
{
	char kind;

	if (byte != 0x0f) {
		instruction->opcode = byte;
		kind = map_1[byte];
		/* Opcode 8f with another reg is a prefix of AMD's XOP. */
		return read_operands(decoder, instruction, kind) &&
		       (byte != 0x8f || !(instruction->modrm & 0x38));
	}
	byte = next_byte(decoder);
	if (byte == 0x38 || byte == 0x3a) {
		instruction->map = byte == 0x38 ? OPCODE_MAP_0F38 : OPCODE_MAP_0F3A;
		kind = byte == 0x38 ? 'M' : 'B';
		instruction->opcode = next_byte(decoder);
	} else {
		instruction->map = OPCODE_MAP_0F;
		instruction->opcode = byte;
		kind = map_0f[byte];
	}
	return read_operands(decoder, instruction, kind);
}

static bool is_prefix(uint8_t byte)
{
	static const uint8_t prefixes[] = {0x66, 0xf2, 0xf3, 0xf0, 0x2e, 0x36,
					   0x3e, 0x26, 0x64, 0x65, 0x67};

	return memchr(prefixes, byte, sizeof(prefixes));
}

bool instruction_decode(struct instruction *instruction, const uint8_t *code, size_t code_bytes)
{
	struct decoder decoder = {.code = code, .byte_count = code_bytes};
	uint8_t byte = next_byte(&decoder);
	bool is_known;

	*instruction = (struct instruction){0};
	for (; is_prefix(byte); byte = next_byte(&decoder))
		decoder.has_66 |= byte == 0x66;
	if ((byte & 0xf0) == 0x40) {
		instruction->rex = byte;
		byte = next_byte(&decoder);
	}
	if (byte == 0xc4 || byte == 0xc5 || byte == 0x62)
		is_known = read_vector_prefix(&decoder, instruction, byte);
	else
		is_known = read_opcode(&decoder, instruction, byte);
	instruction->length = (uint8_t)decoder.at;
	return is_known && !decoder.is_past_end;
}

#define NUMBER_RAX 0
#define NUMBER_RSP 4
#define NUMBER_RBP 5

#define ARGUMENT_BYTES_MAX 4096

enum part {
	PART_BEFORE,   /* no frame yet: early exits of functions that build it late */
	PART_PUSHED,   /* after push %rbp */
	PART_PROLOGUE, /* RBP is set; registers are saved */
	PART_BODY,
	PART_ARGUMENTS, /* of a call are on the stack */
	PART_EPILOGUE
};

struct frame_scan {
	enum part part;
	uint32_t bytes;	       /* CFA - RSP in the prologue and the body */
	uint32_t pushed;       /* registers, as bits */
	bool has_subtraction;  /* of the prologue */
	bool has_restored_rbp; /* in this epilogue */
	bool is_unknown;
	bool has_called;	 /* the function that takes the pushed arguments */
	uint32_t argument_bytes; /* pushed */
	/* When the instruction pointer was passed. 0: it was not, or RSP is not known there. */
	uint32_t bytes_at_pointer;
	enum part part_at_pointer;
};

static uint8_t reg_number(const struct instruction *instruction)
{
	return ((instruction->modrm >> 3) & 7) | (instruction->rex & 4) << 1;
}

/* The register that the ModRM names, or 255 if it names memory. */
static uint8_t rm_number(const struct instruction *instruction)
{
	if (!instruction->has_modrm || instruction->modrm < 0xc0)
		return 255;
	return (instruction->modrm & 7) | (instruction->rex & 1) << 3;
}

static uint8_t opcode_number(const struct instruction *instruction)
{
	return (instruction->opcode & 7) | (instruction->rex & 1) << 3;
}

static bool is_push(const struct instruction *i)
{
	return i->map == OPCODE_MAP_1 && i->opcode >= 0x50 && i->opcode <= 0x57;
}

static bool is_pop(const struct instruction *i)
{
	return i->map == OPCODE_MAP_1 && i->opcode >= 0x58 && i->opcode <= 0x5f;
}

static bool is_leave(const struct instruction *i)
{
	return i->map == OPCODE_MAP_1 && i->opcode == 0xc9;
}

static bool is_move_rsp_to_rbp(const struct instruction *i)
{
	if (i->map != OPCODE_MAP_1 || i->rex != 0x48)
		return false;
	return (i->opcode == 0x89 && i->modrm == 0xe5) || (i->opcode == 0x8b && i->modrm == 0xec);
}

/* Bytes by which an addition or subtraction lowers RSP; 0 if it is none. */
static int64_t lowers_rsp_by(const struct instruction *i)
{
	if (i->map != OPCODE_MAP_1 || i->rex != 0x48 || (i->opcode != 0x81 && i->opcode != 0x83))
		return 0;
	if (i->modrm == 0xec)
		return i->immediate;
	if (i->modrm == 0xc4)
		return -(int64_t)i->immediate;
	return 0;
}

/* lea DISPLACEMENT(%rbp),%rsp */
static bool is_rsp_from_rbp(const struct instruction *i)
{
	return i->map == OPCODE_MAP_1 && i->rex == 0x48 && i->opcode == 0x8d &&
	       (i->modrm == 0x65 || i->modrm == 0xa5);
}

static bool is_call(const struct instruction *i)
{
	return i->map == OPCODE_MAP_1 &&
	       (i->opcode == 0xe8 || (i->opcode == 0xff && ((i->modrm >> 3) & 7) == 2));
}

static bool is_jump(const struct instruction *i)
{
	return i->map == OPCODE_MAP_1 && (i->opcode == 0xe9 || i->opcode == 0xeb ||
					  (i->opcode == 0xff && ((i->modrm >> 3) & 7) == 4));
}

static bool is_return(const struct instruction *i)
{
	return i->map == OPCODE_MAP_1 && i->opcode == 0xc3;
}

static bool is_branch(const struct instruction *i)
{
	if (i->map == OPCODE_MAP_0F)
		return i->opcode >= 0x80 && i->opcode <= 0x8f;
	return i->map == OPCODE_MAP_1 && ((i->opcode >= 0x70 && i->opcode <= 0x7f) ||
					  (i->opcode >= 0xe0 && i->opcode <= 0xe3));
}

/* Opcodes of the first map that write the register of ModRM's reg, of its rm, or of both. */
static bool writes_reg(uint8_t opcode)
{
	if (opcode < 0x38)
		return (opcode & 7) == 3;
	return opcode == 0x63 || opcode == 0x69 || opcode == 0x6b || opcode == 0x87 ||
	       opcode == 0x8b || opcode == 0x8d;
}

static bool writes_rm(const struct instruction *i)
{
	uint8_t operation = (i->modrm >> 3) & 7;

	if (i->opcode < 0x38)
		return (i->opcode & 7) == 1;
	switch (i->opcode) {
	case 0x81:
	case 0x83:
		return operation != 7; /* cmp */
	case 0x87:
	case 0x89:
	case 0x8f:
	case 0xc1:
	case 0xc7:
	case 0xd1:
	case 0xd3:
		return true;
	case 0xf7:
		return operation >= 2 && operation <= 3; /* not, neg */
	case 0xff:
		return operation <= 1; /* inc, dec */
	default:
		return false;
	}
}

/* Changes of RSP other than by call and return. Compilers never use it in further ways. */
static bool changes_rsp(const struct instruction *i)
{
	uint8_t opcode = i->opcode;

	if (i->is_vector || i->map > OPCODE_MAP_0F)
		return false;
	if (i->map == OPCODE_MAP_0F)
		return opcode == 0xa0 || opcode == 0xa1 || opcode == 0xa8 || opcode == 0xa9 ||
		       (opcode >= 0x40 && opcode <= 0x4f && reg_number(i) == NUMBER_RSP) ||
		       (opcode >= 0xc8 && opcode_number(i) == NUMBER_RSP && opcode <= 0xcf);
	if (is_push(i) || is_pop(i) || is_leave(i) || opcode == 0x68 || opcode == 0x6a ||
	    opcode == 0x9c || opcode == 0x9d || opcode == 0xc8 || opcode == 0x8f ||
	    (opcode == 0xff && ((i->modrm >> 3) & 7) == 6))
		return true;
	if ((opcode == 0x94 || opcode == 0xbc) && opcode_number(i) == NUMBER_RSP)
		return true;
	if (!i->has_modrm)
		return false;
	return (writes_reg(opcode) && reg_number(i) == NUMBER_RSP) ||
	       (writes_rm(i) && rm_number(i) == NUMBER_RSP);
}

/* Returns from odd places and interrupts: code that no compiler made. */
static bool is_strange(const struct instruction *i)
{
	return i->map == OPCODE_MAP_1 &&
	       (i->opcode == 0xc2 || i->opcode == 0xca || i->opcode == 0xcb || i->opcode == 0xcf ||
		(i->opcode == 0xff && (((i->modrm >> 3) & 7) == 3 || ((i->modrm >> 3) & 7) == 5)));
}

static bool pushes(const struct instruction *i)
{
	return i->map == OPCODE_MAP_1 && (is_push(i) || i->opcode == 0x68 || i->opcode == 0x6a ||
					  (i->opcode == 0xff && ((i->modrm >> 3) & 7) == 6));
}

static bool is_saved_register(uint8_t number)
{
	return number == 3 || (number >= 12 && number <= 15);
}

static void scan_before(struct frame_scan *scan, const struct instruction *i)
{
	if (is_push(i) && opcode_number(i) == NUMBER_RBP)
		scan->part = PART_PUSHED;
	else
		scan->is_unknown = changes_rsp(i) || is_call(i);
}

static void scan_pushed(struct frame_scan *scan, const struct instruction *i)
{
	if (is_move_rsp_to_rbp(i)) {
		scan->part = PART_PROLOGUE;
		scan->bytes = 16; /* the return address and RBP */
	} else {
		scan->is_unknown =
			changes_rsp(i) || is_call(i) || is_branch(i) || is_jump(i) || is_return(i);
	}
}

static void scan_epilogue(struct frame_scan *scan, const struct instruction *i)
{
	if (is_leave(i) || (is_pop(i) && opcode_number(i) == NUMBER_RBP)) {
		scan->has_restored_rbp = true;
	} else if (is_return(i) || is_jump(i)) {
		scan->is_unknown = !scan->has_restored_rbp;
		scan->part = PART_BODY;
	} else if (is_call(i) || is_branch(i)) {
		scan->is_unknown = true;
	} else if (changes_rsp(i)) {
		scan->is_unknown = !is_pop(i) && lowers_rsp_by(i) >= 0 && !is_rsp_from_rbp(i);
	}
}

/*
 * From the first push to the end of the removal of the arguments there is one call and no other
 * control flow. A call that does not return leaves arguments behind; what follows must not look as
 * if they were still there.
 */
static void scan_arguments(struct frame_scan *scan, const struct instruction *i)
{
	int64_t lowered = pushes(i) ? 8 : is_pop(i) ? -8 : lowers_rsp_by(i);

	if (is_call(i)) {
		scan->is_unknown = scan->has_called;
		scan->has_called = true;
	} else if (scan->has_called && (is_leave(i) || is_rsp_from_rbp(i))) {
		scan->part = PART_EPILOGUE;
		scan->has_restored_rbp = is_leave(i);
	} else if (lowered) {
		int64_t bytes = scan->argument_bytes + lowered;

		scan->is_unknown = scan->has_called != (lowered < 0) || bytes < 0 ||
				   bytes > ARGUMENT_BYTES_MAX;
		scan->argument_bytes = (uint32_t)bytes;
		if (!bytes)
			scan->part = PART_BODY;
	} else {
		scan->is_unknown = changes_rsp(i) || is_branch(i) || is_jump(i) || is_return(i) ||
				   is_move_rsp_to_rbp(i);
	}
}

static void start_arguments(struct frame_scan *scan, const struct instruction *i)
{
	scan->part = PART_ARGUMENTS;
	scan->has_called = false;
	scan->argument_bytes = 0;
	scan_arguments(scan, i);
}

static void scan_body(struct frame_scan *scan, const struct instruction *i)
{
	scan->is_unknown = is_move_rsp_to_rbp(i);
	if (pushes(i) || lowers_rsp_by(i) > 0) {
		start_arguments(scan, i);
		return;
	}
	/* A return without an epilogue is in a part that runs without the frame. */
	if (!changes_rsp(i))
		return;
	scan->part = PART_EPILOGUE;
	scan->has_restored_rbp = false;
	scan_epilogue(scan, i);
}

static void scan_prologue(struct frame_scan *scan, const struct instruction *i)
{
	int64_t lowered = lowers_rsp_by(i);

	if (is_push(i) && opcode_number(i) == NUMBER_RAX && !scan->has_subtraction) {
		scan->has_subtraction = true; /* clang aligns the stack by it */
		scan->bytes += 8;
	} else if (is_push(i)) {
		uint8_t number = opcode_number(i);

		/* Anything else may be an argument of a call. */
		scan->is_unknown = scan->has_subtraction || !is_saved_register(number) ||
				   (scan->pushed & 1u << number);
		scan->pushed |= 1u << number;
		scan->bytes += 8;
	} else if (lowered > 0 && scan->has_subtraction) {
		start_arguments(scan, i);
	} else if (lowered > 0) {
		scan->is_unknown = lowered > 1 << 24;
		scan->has_subtraction = true;
		scan->bytes += (uint32_t)lowered;
	} else if (is_call(i) || is_branch(i) || is_jump(i) || is_return(i) || changes_rsp(i)) {
		scan->part = PART_BODY;
		scan_body(scan, i);
	}
}

static void scan_instruction(struct frame_scan *scan, const struct instruction *i)
{
	static void (*const scans[])(struct frame_scan * scan, const struct instruction *i) = {
		[PART_BEFORE] = scan_before,	   [PART_PUSHED] = scan_pushed,
		[PART_PROLOGUE] = scan_prologue,   [PART_BODY] = scan_body,
		[PART_ARGUMENTS] = scan_arguments, [PART_EPILOGUE] = scan_epilogue,
	};

	if (is_strange(i))
		scan->is_unknown = true;
	else
		scans[scan->part](scan, i);
}

/*
 * A thread may be stopped anywhere: also in the prologue, where the size differs unless it is
 * complete. After a call, only the part that the scan was in tells what is on the stack.
 */
static void pass_pointer(struct frame_scan *scan, const struct instruction *before, bool is_exact)
{
	if (!is_exact && !is_call(before))
		return;
	scan->part_at_pointer = scan->part;
	if (scan->part == PART_PROLOGUE || scan->part == PART_BODY)
		scan->bytes_at_pointer = scan->bytes;
	else if (scan->part == PART_ARGUMENTS && !is_exact)
		scan->bytes_at_pointer = scan->bytes + scan->argument_bytes;
}

uint32_t frame_size_find(const uint8_t *code, size_t code_bytes, size_t at, bool is_exact)
{
	struct frame_scan scan = {.part = PART_BEFORE};
	struct instruction instruction = {0};

	for (size_t offset = 0; offset < code_bytes; offset += instruction.length) {
		if (offset == at)
			pass_pointer(&scan, &instruction, is_exact);
		if (!instruction_decode(&instruction, code + offset, code_bytes - offset))
			return FRAME_SIZE_UNKNOWN;
		scan_instruction(&scan, &instruction);
		if (scan.is_unknown)
			return FRAME_SIZE_UNKNOWN;
	}
	/* A call that never returns may be the function's last instruction. */
	if (at == code_bytes)
		pass_pointer(&scan, &instruction, is_exact);
	if (scan.part_at_pointer == PART_PROLOGUE && scan.bytes_at_pointer != scan.bytes)
		return FRAME_SIZE_UNKNOWN;
	return scan.bytes_at_pointer;
}

bool frame_size_ends_with_call(const uint8_t *bytes, size_t byte_count)
{
	struct instruction instruction;

	for (size_t length = 2; length <= byte_count; length++)
		if (instruction_decode(&instruction, bytes + byte_count - length, length) &&
		    instruction.length == length && is_call(&instruction))
			return true;
	return false;
}
