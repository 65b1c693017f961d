// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Makes the synthetic VBIOS of a VF. The image has the data tables that a stock amdgpu VF driver
 * reads, but no code, because a VF's driver executes no command table. Table numbers and layouts
 * are those of atomfirmware.h in Linux.
 *
 * image_values and image_texts list the image as values at offsets, so that a reader can compare
 * each value with atomfirmware.h. All other bytes are 0, except the size of the VF's VRAM, which
 * vgpu_pf_vbios_build() adds.
 */
#include "pf-driver/core/resource/parts.h"
#include "pf-driver/hw/pf2vf.h"

/* offsets of tables and texts in the image */
enum vbios_offset {
	VBIOS_SIGNATURE = 0x000,
	VBIOS_LENGTH = 0x002,
	VBIOS_MAGIC = 0x030,
	VBIOS_ROM_HEADER_POINTER = 0x048,
	VBIOS_DATE = 0x050,
	VBIOS_VERSION = 0x080,
	VBIOS_ROM_HEADER = 0x200,
	VBIOS_COMMAND_TABLE = 0x300,
	VBIOS_DATA_TABLE = 0x400,
	VBIOS_FIRMWARE_INFO = 0x600,
	VBIOS_SMU_INFO = 0x700,
	VBIOS_VRAM_USAGE = 0x780,
	VBIOS_INDIRECT_IO = 0x800,
	VBIOS_UMC_INFO = 0x840,
	VBIOS_VRAM_INFO = 0x900,
};

/* indices of tables in the master data table (VBIOS_DATA_TABLE) */
enum vbios_data {
	VBIOS_DATA_FIRMWARE_INFO = 4,
	VBIOS_DATA_SMU_INFO = 8,
	VBIOS_DATA_VRAM_USAGE = 11,
	VBIOS_DATA_INDIRECT_IO = 23,
	VBIOS_DATA_UMC_INFO = 24,
	VBIOS_DATA_VRAM_INFO = 28,
	VBIOS_DATA_ENTRIES = 35,
};

#define VBIOS_HEADER_BYTES  4u
#define VBIOS_DATA_ENTRY(n) (VBIOS_DATA_TABLE + VBIOS_HEADER_BYTES + 2 * (n))
/* size | format revision << 16 | content revision << 24 */
#define TABLE_HEADER(size, format, content)                                                        \
	((uint32_t)(size) | (uint32_t)(format) << 16 | (uint32_t)(content) << 24)

struct placed_value {
	uint16_t offset;
	uint8_t bytes;
	uint32_t value;
};

static const struct placed_value image_values[] = {
	{VBIOS_SIGNATURE, 2, 0xaa55},
	{VBIOS_LENGTH, 1, VF_VRAM_VBIOS_BYTES / 512},
	{VBIOS_ROM_HEADER_POINTER, 2, VBIOS_ROM_HEADER},
	{VBIOS_ROM_HEADER, 4, TABLE_HEADER(40, 2, 2)},
	{VBIOS_ROM_HEADER + 0x1e, 2, VBIOS_COMMAND_TABLE},
	{VBIOS_ROM_HEADER + 0x20, 2, VBIOS_DATA_TABLE},
	{VBIOS_COMMAND_TABLE, 4, TABLE_HEADER(0xa4, 2, 1)},
	{VBIOS_DATA_TABLE, 4, TABLE_HEADER(VBIOS_HEADER_BYTES + 2 * VBIOS_DATA_ENTRIES, 2, 1)},
	{VBIOS_DATA_ENTRY(VBIOS_DATA_FIRMWARE_INFO), 2, VBIOS_FIRMWARE_INFO},
	{VBIOS_DATA_ENTRY(VBIOS_DATA_SMU_INFO), 2, VBIOS_SMU_INFO},
	{VBIOS_DATA_ENTRY(VBIOS_DATA_VRAM_USAGE), 2, VBIOS_VRAM_USAGE},
	{VBIOS_DATA_ENTRY(VBIOS_DATA_INDIRECT_IO), 2, VBIOS_INDIRECT_IO},
	{VBIOS_DATA_ENTRY(VBIOS_DATA_UMC_INFO), 2, VBIOS_UMC_INFO},
	{VBIOS_DATA_ENTRY(VBIOS_DATA_VRAM_INFO), 2, VBIOS_VRAM_INFO},
	{VBIOS_FIRMWARE_INFO, 4, TABLE_HEADER(72, 3, 1)},
	{VBIOS_FIRMWARE_INFO + 0x04, 4, 0x01000000}, /* firmware revision */
	{VBIOS_FIRMWARE_INFO + 0x08, 4, 85200},	     /* engine clock in 10 kHz */
	{VBIOS_FIRMWARE_INFO + 0x0c, 4, 16700},	     /* memory clock in 10 kHz */
	{VBIOS_FIRMWARE_INFO + 0x10, 4, 2},	     /* capability: GPU_VIRTUALIZATION */
	{VBIOS_FIRMWARE_INFO + 0x18, 4, 0x4c},	     /* first BIOS scratch register */
	{VBIOS_SMU_INFO, 4, TABLE_HEADER(64, 3, 1)},
	{VBIOS_SMU_INFO + 0x10, 4, 2700}, /* core_refclk_10khz */
	{VBIOS_VRAM_USAGE, 4, TABLE_HEADER(12, 2, 1)},
	{VBIOS_VRAM_USAGE + 0x04, 4, 0x80000000}, /* flag SRIOV_MSG_SHARE_RESERVATION; offset 0 */
	{VBIOS_VRAM_USAGE + 0x08, 2, VF_VRAM_RESERVED_BYTES / 1024},
	{VBIOS_INDIRECT_IO, 4, TABLE_HEADER(8, 1, 1)},
	{VBIOS_UMC_INFO, 4, TABLE_HEADER(64, 3, 1)},
	{VBIOS_VRAM_INFO, 4, TABLE_HEADER(0x100, 2, 3)},
	{VBIOS_VRAM_INFO + 0x14, 1, 1},	   /* number of modules */
	{VBIOS_VRAM_INFO + 0x1c, 4, 0xff}, /* mask of enabled channels */
	{VBIOS_VRAM_INFO + 0x2c, 2, 60},   /* bytes of a module's entry */
	{VBIOS_VRAM_INFO + 0x2f, 1, 0x60}, /* memory type: HBM2 */
	{VBIOS_VRAM_INFO + 0x30, 1, 16},   /* number of channels */
	{VBIOS_VRAM_INFO + 0x31, 1, 7},	   /* log2 of a channel's width: 128 bits */
};

/* offset of the field that holds the size of the VF's VRAM in MiB */
#define VBIOS_MODULE_SIZE_MB (VBIOS_VRAM_INFO + 0x18)

struct placed_text {
	uint16_t offset;
	const char *text;
};

static const struct placed_text image_texts[] = {
	{VBIOS_MAGIC, " 761295520"},
	{VBIOS_DATE, "01/01/26 00:00"},
	{VBIOS_VERSION, "113-SOFTGPU-000"},
	{VBIOS_ROM_HEADER + 4, "ATOM"},
};

static void write_le(uint8_t *image, uint32_t offset, uint32_t bytes, uint32_t value)
{
	for (uint32_t i = 0; i < bytes; i++)
		image[offset + i] = (uint8_t)(value >> (8 * i));
}

/* Compose the image (64 KiB) for a VF with vram_mb MiB of VRAM. */
void vgpu_pf_vbios_build(uint8_t image[VGPU_PF_SCRATCH_BYTES], uint32_t vram_mb)
{
	memset(image, 0, VF_VRAM_VBIOS_BYTES);
	for (uint32_t i = 0; i < VGPU_COUNT_OF(image_values); i++)
		write_le(image, image_values[i].offset, image_values[i].bytes,
			 image_values[i].value);
	write_le(image, VBIOS_MODULE_SIZE_MB, 4, vram_mb);
	for (uint32_t i = 0; i < VGPU_COUNT_OF(image_texts); i++)
		for (uint32_t c = 0; image_texts[i].text[c]; c++)
			image[image_texts[i].offset + c] = (uint8_t)image_texts[i].text[c];
}

/* Write the image to the start of a VF's VRAM. Return: 0 or negative errno. */
int vgpu_pf_vbios_write(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	vgpu_pf_vbios_build(pf->scratch, (uint32_t)(vf->config.vram_bytes >> 20));
	return vgpu_pf_vram_write_vf(pf, vf, VF_VRAM_VBIOS_OFFSET, pf->scratch,
				     VF_VRAM_VBIOS_BYTES);
}
HW_STATIC_ASSERT(VGPU_PF_SCRATCH_BYTES >= VF_VRAM_VBIOS_BYTES);
