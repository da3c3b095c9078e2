/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table for each opcode map. It has only the instructions that compilers emit, so that data
 * taken for code is noticed. Any thread.
 */
#include "sampler/instruction.h"

#include <string.h>

/*
 * Operands after an opcode. M: ModRM. b: 1 byte. w: 2 bytes. z: 4 bytes, or 2 with prefix 66. d: 4
 * bytes. v: as z, or 8 bytes with REX.W. o: 8 bytes of address. B: M and b. Z: M and z. e: w and b.
 * f: M, and b if the ModRM's reg is 0 or 1. F: M, and z if the ModRM's reg is 0 or 1. -: nothing.
 * x: unknown, or a prefix.
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

		instruction->has_sib = true;
		if (mode == 0 && (sib & 7) == 5)
			mode = 2;
	} else if (mode == 0 && rm == 5) {
		mode = 2;
	}
	if (mode)
		instruction->displacement = next_number(decoder, mode == 1 ? 1 : 4);
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
