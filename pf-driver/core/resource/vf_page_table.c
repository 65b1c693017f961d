// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The VF page table: the second translation stage of a VF (hw/vf_page_table.h). This file writes a
 * table that maps the units of VRAM that the VF owns, and hands the table to the device. After a
 * restart of the core, this file reads the table back to learn which units the VF owns.
 */
#include "pf-driver/core/resource/parts.h"
#include "pf-driver/core/resource/pf_vram.h"
#include "pf-driver/hw/regs.h"

/* entries of a leaf table that map one unit of VRAM */
#define ENTRIES_PER_UNIT (1u << (VGPU_VRAM_UNIT_SHIFT - VF_PAGE_TABLE_LEAF_SHIFT))
#define UNITS_PER_TABLE	 (VF_PAGE_TABLE_ENTRIES / ENTRIES_PER_UNIT)

static void put_entry(uint8_t *table, uint32_t index, uint64_t entry)
{
	memcpy(table + index * sizeof(entry), &entry, sizeof(entry));
}

static uint64_t get_entry(const uint8_t *table, uint32_t index)
{
	uint64_t entry;

	memcpy(&entry, table + index * sizeof(entry), sizeof(entry));
	return entry;
}

/* finds the VF's next unit u >= *unit, and sets *unit to u + 1; false if there is none */
static bool next_unit(const struct vgpu_pf *pf, const struct vgpu_vf *vf, uint32_t *unit)
{
	while (*unit < pf->vram.count) {
		if (pf->vram.owner[(*unit)++] == vf->number)
			return true;
	}
	return false;
}

/*
 * fills pf->scratch with a leaf table that maps the VF's next units from *unit on, and advances
 * *unit; returns the number of units that the table maps
 */
static uint32_t fill_leaf_table(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint32_t *unit)
{
	uint32_t units = 0;

	memset(pf->scratch, 0, VF_PAGE_TABLE_BYTES);
	while (units < UNITS_PER_TABLE && next_unit(pf, vf, unit)) {
		uint64_t base = (uint64_t)(*unit - 1) << VGPU_VRAM_UNIT_SHIFT;

		for (uint32_t i = 0; i < ENTRIES_PER_UNIT; i++) {
			uint64_t page = base + ((uint64_t)i << VF_PAGE_TABLE_LEAF_SHIFT);

			put_entry(pf->scratch, units * ENTRIES_PER_UNIT + i,
				  page | VF_PAGE_TABLE_VALID);
		}
		units++;
	}
	return units;
}

/*
 * Writes the table in pf->scratch to an offset in device VRAM: the first `entries` entries, then
 * zeroes over the rest of the `old_entries` entries of the previous table. If old_entries exceeds
 * the length of a table, writes the whole table.
 */
static int write_table(struct vgpu_pf *pf, uint64_t offset, uint32_t entries, uint32_t old_entries)
{
	uint32_t count = entries > old_entries ? entries : old_entries;

	if (count > VF_PAGE_TABLE_ENTRIES)
		count = VF_PAGE_TABLE_ENTRIES;
	return pf->os->ops->vram_write(pf->os, offset, pf->scratch, count * sizeof(uint64_t));
}

static int write_root_table(struct vgpu_pf *pf, const struct vgpu_vf *vf, uint32_t tables,
			    uint32_t old_entries)
{
	memset(pf->scratch, 0, VF_PAGE_TABLE_BYTES);
	for (uint32_t i = 0; i < tables; i++)
		put_entry(pf->scratch, i, pf_vram_leaf(vf->number, i) | VF_PAGE_TABLE_VALID);
	return write_table(pf, pf_vram_root(vf->number), tables, old_entries);
}

/*
 * Write the page table of a VF into PF VRAM. The device must no longer use the VF's previous table.
 * Entries that are zero already are not written: if the PF core runs in a VM, the hypervisor may
 * have to emulate each write, which is slow. Return: 0 or negative errno.
 */
int vgpu_pf_vf_page_table_write(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	uint32_t old_entries = vf->table_entries, old_entries_left = old_entries;
	uint32_t tables = 0, entries = 0;
	uint32_t unit = 0, units;
	int error;

	vf->table_entries = VGPU_TABLE_ENTRIES_UNKNOWN;
	while (tables < PF_VRAM_LEAF_TABLES_PER_VF && (units = fill_leaf_table(pf, vf, &unit))) {
		error = write_table(pf, pf_vram_leaf(vf->number, tables), units * ENTRIES_PER_UNIT,
				    old_entries_left);
		if (error)
			return error;
		entries += units * ENTRIES_PER_UNIT;
		old_entries_left -= old_entries_left < VF_PAGE_TABLE_ENTRIES
					    ? old_entries_left
					    : VF_PAGE_TABLE_ENTRIES;
		tables++;
	}
	error = write_root_table(pf, vf, tables,
				 old_entries / VF_PAGE_TABLE_ENTRIES +
					 (old_entries % VF_PAGE_TABLE_ENTRIES != 0));
	/* the larger count: leaf tables that the root no longer lists keep their old entries */
	if (!error)
		vf->table_entries = entries > old_entries ? entries : old_entries;
	return error;
}

/*
 * Writes the registers that give the VF its page table; root 0: no table. The size comes first,
 * because the device applies both values when the high half of the root is written.
 */
static int write_root_registers(struct vgpu_pf *pf, struct vgpu_vf *vf, uint64_t root,
				uint32_t size_mb)
{
	int error = vgpu_pf_device_write_bank(pf, vf, REG_VGPU_VF0_FB_SIZE_MB, size_mb);

	return error ? error
		     : vgpu_pf_device_write_bank64(pf, vf, REG_VGPU_VF0_FB_TABLE_ROOT_LO, root);
}

/*
 * Hand a written table to the device. Return: 0; -EIO with a message if the device refuses the
 * table; or another errno.
 */
int vgpu_pf_vf_page_table_commit(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	int error = write_root_registers(pf, vf, pf_vram_root(vf->number) | VF_PAGE_TABLE_VALID,
					 (uint32_t)(vf->config.vram_bytes >> 20));

	if (error)
		return error;
	if (!vgpu_pf_vf_page_table_is_live(pf, vf))
		return vgpu_pf_text_fail(pf, -EIO, "VF%u: the device refused its page table",
					 vf->number);
	return 0;
}

/* Take the page table away from a VF, which then reaches no VRAM. Return: 0 or negative errno. */
int vgpu_pf_vf_page_table_clear(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	return write_root_registers(pf, vf, 0, 0);
}

/* True if the device uses the table that the core has for this VF in PF VRAM. */
bool vgpu_pf_vf_page_table_is_live(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	uint64_t root = vgpu_pf_device_read_bank64(pf, vf, REG_VGPU_VF0_FB_TABLE_ROOT_LO);

	return root == (pf_vram_root(vf->number) | VF_PAGE_TABLE_VALID);
}

/* gives the VF the units that a leaf table of the previous core maps; checks one entry per unit */
static int adopt_leaf_table(struct vgpu_pf *pf, struct vgpu_vf *vf, uint32_t leaf, uint32_t units)
{
	int error = pf->os->ops->vram_read(pf->os, pf_vram_leaf(vf->number, leaf), pf->scratch,
					   VF_PAGE_TABLE_BYTES);

	for (uint32_t i = 0; !error && i < units; i++) {
		uint64_t entry = get_entry(pf->scratch, i * ENTRIES_PER_UNIT);
		struct vgpu_range unit = {0, 1};

		if (!(entry & VF_PAGE_TABLE_VALID) ||
		    (entry & VF_PAGE_TABLE_ADDR_MASK) % VGPU_VRAM_UNIT_BYTES)
			return -EBADMSG;
		unit.first = (uint32_t)((entry & VF_PAGE_TABLE_ADDR_MASK) >> VGPU_VRAM_UNIT_SHIFT);
		error = vgpu_pf_range_reserve(&pf->vram, unit, (uint8_t)vf->number);
	}
	return error;
}

/*
 * Learn a VF's units and config.vram_bytes from the table that the device uses. Return: 0; -ENOENT
 * if the device does not use the core's table; -EBADMSG or -ERANGE if the table is invalid; -EBUSY
 * if a unit has another owner; or an error of the read. After an error the VF owns no units.
 */
int vgpu_pf_vf_page_table_adopt(struct vgpu_pf *pf, struct vgpu_vf *vf)
{
	uint32_t size_mb = vgpu_pf_device_read_bank(pf, vf, REG_VGPU_VF0_FB_SIZE_MB);
	uint64_t bytes = (uint64_t)size_mb << 20;
	uint32_t units = (uint32_t)(bytes >> VGPU_VRAM_UNIT_SHIFT);
	int error = 0;

	if (!vgpu_pf_vf_page_table_is_live(pf, vf))
		return -ENOENT;
	if (units == 0 || bytes % VGPU_VRAM_UNIT_BYTES ||
	    units > PF_VRAM_LEAF_TABLES_PER_VF * UNITS_PER_TABLE)
		return -EBADMSG;
	for (uint32_t leaf = 0; !error && units; leaf++) {
		uint32_t mapped = units < UNITS_PER_TABLE ? units : UNITS_PER_TABLE;

		error = adopt_leaf_table(pf, vf, leaf, mapped);
		units -= mapped;
	}
	if (error) {
		vgpu_pf_vram_release(pf, vf);
		return error;
	}
	vf->config.vram_bytes = bytes;
	return 0;
}
