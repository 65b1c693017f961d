// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Text formatting without a C library, for the messages of replies, log lines and the dump; and the
 * checksum CRC-32C. The formatter knows %u %d %x %s %c %%, the lengths l and ll, and a width, which
 * it pads with zeroes.
 */
#include "pf-driver/core/base/parts.h"

struct text_out {
	char *out;
	uint32_t bytes, used;
};

static void put_char(struct text_out *text, char c)
{
	if (text->used + 1 < text->bytes)
		text->out[text->used++] = c;
}

static void put_string(struct text_out *text, const char *string)
{
	while (*string)
		put_char(text, *string++);
}

static void put_number(struct text_out *text, uint64_t value, uint32_t base, uint32_t width)
{
	char digits[24];
	uint32_t count = 0;

	do {
		digits[count++] = "0123456789abcdef"[value % base];
		value /= base;
	} while (value);
	while (width > count) {
		put_char(text, '0');
		width--;
	}
	while (count)
		put_char(text, digits[--count]);
}

static void put_signed(struct text_out *text, int64_t value, uint32_t width)
{
	if (value < 0) {
		put_char(text, '-');
		put_number(text, 0 - (uint64_t)value, 10, width);
		return;
	}
	put_number(text, (uint64_t)value, 10, width);
}

struct conversion {
	uint32_t width;
	uint32_t longs; /* number of l in the length: 0, 1 or 2 */
	char kind;
};

static const char *parse_conversion(const char *format, struct conversion *conversion)
{
	conversion->width = 0;
	conversion->longs = 0;
	while (*format >= '0' && *format <= '9')
		conversion->width = conversion->width * 10 + (uint32_t)(*format++ - '0');
	while (*format == 'l') {
		conversion->longs++;
		format++;
	}
	conversion->kind = *format ? *format++ : '%';
	return format;
}

/* the next argument, of the length that the conversion names */
#define TAKE(args, longs, type)                                                                    \
	((longs) == 2	? va_arg(args, type long long)                                             \
	 : (longs) == 1 ? va_arg(args, type long)                                                  \
			: va_arg(args, type int))

/*
 * Format into a buffer of at least 1 byte, with a NUL; longer text is cut. The head of this file
 * has the conversions. Return: characters written, without the NUL.
 */
uint32_t vgpu_pf_text_vformat(char *out, uint32_t bytes, const char *format, va_list args)
{
	struct text_out text = {out, bytes, 0};
	struct conversion conversion;

	while (*format) {
		char c = *format++;

		if (c != '%') {
			put_char(&text, c);
			continue;
		}
		format = parse_conversion(format, &conversion);
		switch (conversion.kind) {
		case 's':
			put_string(&text, va_arg(args, const char *));
			break;
		case 'c':
			put_char(&text, (char)va_arg(args, int));
			break;
		case 'd':
			put_signed(&text, TAKE(args, conversion.longs, signed), conversion.width);
			break;
		case 'u':
		case 'x':
			put_number(&text, TAKE(args, conversion.longs, unsigned),
				   conversion.kind == 'x' ? 16 : 10, conversion.width);
			break;
		default:
			put_char(&text, conversion.kind);
		}
	}
	out[text.used] = 0;
	return text.used;
}

/* Format into a buffer; see vgpu_pf_text_vformat(). */
uint32_t vgpu_pf_text_format(char *out, uint32_t bytes, const char *format, ...)
{
	va_list args;
	uint32_t used;

	va_start(args, format);
	used = vgpu_pf_text_vformat(out, bytes, format, args);
	va_end(args);
	return used;
}

/* Set the error message of the request: what, where, and how to fix it. Return: error. */
int vgpu_pf_text_fail(struct vgpu_pf *pf, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vgpu_pf_text_vformat(pf->requests.message, sizeof(pf->requests.message), format, args);
	va_end(args);
	return error;
}

/* Write one log line. */
void vgpu_pf_text_log(struct vgpu_pf *pf, enum vgpu_os_log_level level, const char *format, ...)
{
	char line[256];
	va_list args;

	va_start(args, format);
	vgpu_pf_text_vformat(line, sizeof(line), format, args);
	va_end(args);
	pf->os->ops->log(pf->os, level, line);
}

/* The CRC-32C of the journal and of streams; crc: 0, or the result for the preceding bytes. */
uint32_t vgpu_pf_text_crc32c(uint32_t crc, const void *data, uint64_t bytes)
{
	/* CRC-32C (0x82f63b78 reflected), for one nibble */
	static const uint32_t table[16] = {
		0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
		0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
		0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
	};
	const uint8_t *byte = data;

	crc = ~crc;
	while (bytes--) {
		crc ^= *byte++;
		crc = (crc >> 4) ^ table[crc & 15];
		crc = (crc >> 4) ^ table[crc & 15];
	}
	return ~crc;
}
