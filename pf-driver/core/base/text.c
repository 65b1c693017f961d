// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Formats the texts of replies, log lines and dumps, and computes the checksum CRC-32C. */
#include "pf-driver/core/base/parts.h"

/*
 * Format like vsnprintf() into a buffer of at least 1 byte; longer text is cut. Return: characters
 * written, without the NUL.
 */
uint32_t vgpu_pf_text_vformat(char *out, uint32_t bytes, const char *format, va_list args)
{
	int used = vsnprintf(out, bytes, format, args);

	return used < 0 ? 0 : (uint32_t)vgpu_min_u64((uint32_t)used, bytes - 1);
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

/* Set the error text that vgpu_pf_view_message() returns. Return: `error`, for the caller. */
int vgpu_pf_text_fail(struct vgpu_pf *pf, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vgpu_pf_text_vformat(pf->requests.message, sizeof(pf->requests.message), format, args);
	va_end(args);
	return error;
}

/* Write one log line; cut the text after 255 characters. */
void vgpu_pf_text_log(struct vgpu_pf *pf, enum vgpu_os_log_level level, const char *format, ...)
{
	char line[256];
	va_list args;

	va_start(args, format);
	vgpu_pf_text_vformat(line, sizeof(line), format, args);
	va_end(args);
	pf->os->ops->log(pf->os, level, line);
}

/* Compute a CRC-32C, for checkpoint and streams; crc: 0, or the result for the bytes before. */
uint32_t vgpu_pf_text_crc32c(uint32_t crc, const void *data, uint64_t bytes)
{
	/* one entry for each value of a nibble; polynomial 0x82f63b78 (reflected) */
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
