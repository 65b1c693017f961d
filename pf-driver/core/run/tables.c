// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Sets and gets run tables for clients. This file checks a new table as a whole, and stores it next
 * to the table in force. At the next decision, decide.c lets the new table take over.
 */
#include "pf-driver/core/run/internal.h"

static bool has_contracts(const struct vgpu_pf_run_table *table)
{
	static const struct vgpu_pf_contract none[VGPU_PF_MAX_VFS];

	return memcmp(table->contracts, none, sizeof(none)) != 0;
}

/* records the longest quantum of each priority class */
static void record_longest(struct vgpu_run_indexed_table *indexed)
{
	for (uint32_t i = 0; i < indexed->table.count; i++) {
		uint32_t priority_class =
			indexed->table.contracts[indexed->table.entries[i].vf - 1].priority_class;

		if (priority_class < VGPU_PF_PRIORITY_CLASSES &&
		    indexed->longest_us[priority_class] < indexed->table.entries[i].quantum_us)
			indexed->longest_us[priority_class] = indexed->table.entries[i].quantum_us;
	}
}

static bool has_weights(const struct vgpu_run_indexed_table *indexed)
{
	static const uint32_t none[VGPU_PF_MAX_VFS];

	return memcmp(indexed->table.weights, none, sizeof(none)) != 0;
}

/* time of a VF's entries in a cycle of the table; the default quantum if the VF has no entry */
static uint64_t time_in_cycle_us(const struct vgpu_run_indexed_table *indexed, uint32_t vf)
{
	return indexed->total_us[vf] ? indexed->total_us[vf] : VGPU_PF_QUANTUM_DEFAULT_US;
}

/*
 * If the table has no weights, derives them from the time of each VF in a cycle, at least 1:
 * VGPU_PF_WEIGHT_MAX * time / longest time of any VF. A VF of a gang gets no weight.
 */
static void fill_weights(struct vgpu_run_indexed_table *indexed, uint32_t vfs)
{
	uint64_t max_us = 0;

	if (has_weights(indexed))
		return;
	for (uint32_t vf = 1; vf <= vfs; vf++)
		max_us = vgpu_max_u64(max_us, time_in_cycle_us(indexed, vf));
	for (uint32_t vf = 1; vf <= vfs; vf++)
		if (!(indexed->table.contracts[vf - 1].flags & VGPU_PF_CONTRACT_GANG))
			indexed->table.weights[vf - 1] = (uint32_t)vgpu_max_u64(
				1, time_in_cycle_us(indexed, vf) * VGPU_PF_WEIGHT_MAX / max_us);
}

/* computes the members that are derived from `table`, which the caller has set */
static void index_table(struct vgpu_pf *pf, struct vgpu_run_indexed_table *indexed)
{
	for (uint32_t i = 0; i < indexed->table.count; i++) {
		const struct vgpu_pf_run_entry *entry = &indexed->table.entries[i];

		indexed->listed |= 1u << (entry->vf - 1);
		indexed->cycle_ns += entry->quantum_us * VGPU_NS_PER_US;
		indexed->total_us[entry->vf] += entry->quantum_us;
		if (indexed->first_us[entry->vf] == 0)
			indexed->first_us[entry->vf] = entry->quantum_us;
	}
	for (uint32_t i = 0; i < indexed->table.reserve_count; i++)
		indexed->reserve_us[indexed->table.reserve[i].vf] =
			indexed->table.reserve[i].quantum_us;
	fill_weights(indexed, pf->device.total_vfs);
	record_longest(indexed);
}

static void store_table(struct vgpu_pf *pf, struct vgpu_run_indexed_table *indexed,
			const struct vgpu_pf_run_table *table)
{
	memset(indexed, 0, sizeof(*indexed));
	indexed->table = *table;
	memset(indexed->table.entries + table->count, 0,
	       (VGPU_PF_TABLE_ENTRIES - table->count) * sizeof(table->entries[0]));
	indexed->has_contracts = has_contracts(table);
	index_table(pf, indexed);
}

/* Make the table that is in force until a client sets a table: an equal slice for each VF. */
void vgpu_pf_run_tables_fallback(struct vgpu_pf *pf, struct vgpu_run_indexed_table *indexed)
{
	memset(indexed, 0, sizeof(*indexed));
	for (uint32_t vf = 1; vf <= pf->device.total_vfs; vf++) {
		indexed->table.entries[indexed->table.count].vf = vf;
		indexed->table.entries[indexed->table.count++].quantum_us =
			VGPU_PF_QUANTUM_DEFAULT_US;
	}
	index_table(pf, indexed);
}

static int check_entry(struct vgpu_pf *pf, const struct vgpu_pf_run_entry *entry, uint32_t index,
		       const char *where)
{
	if (entry->vf == 0 || entry->vf > pf->device.total_vfs)
		return vgpu_pf_text_fail(pf, -EINVAL,
					 "run table: %s %u names VF%u; VFs are 1 to %u", where,
					 index, entry->vf, pf->device.total_vfs);
	if (entry->quantum_us < VGPU_PF_QUANTUM_MIN_US ||
	    entry->quantum_us > VGPU_PF_QUANTUM_MAX_US)
		return vgpu_pf_text_fail(pf, -EINVAL, "run table: %s %u has %u us; %u to %u", where,
					 index, entry->quantum_us, VGPU_PF_QUANTUM_MIN_US,
					 VGPU_PF_QUANTUM_MAX_US);
	return 0;
}

static int check_weight(struct vgpu_pf *pf, uint32_t vf, uint32_t weight, uint32_t gap_us)
{
	if (!weight && !gap_us)
		return 0;
	if (vf > pf->device.total_vfs)
		return vgpu_pf_text_fail(pf, -EINVAL,
					 "run table: a weight or gap names VF%u; VFs are 1 to %u",
					 vf, pf->device.total_vfs);
	if (weight > VGPU_PF_WEIGHT_MAX)
		return vgpu_pf_text_fail(pf, -EINVAL, "run table: VF%u has weight %u; 0 to %u", vf,
					 weight, VGPU_PF_WEIGHT_MAX);
	if (gap_us && gap_us < VGPU_PF_GAP_MIN_US)
		return vgpu_pf_text_fail(
			pf, -EINVAL, "run table: VF%u has a max_gap_us of %u; 0, or %u and more",
			vf, gap_us, VGPU_PF_GAP_MIN_US);
	return 0;
}

static int check_table(struct vgpu_pf *pf, const struct vgpu_pf_run_table *table)
{
	int error = 0;

	if (table->count == 0 || table->count > VGPU_PF_TABLE_ENTRIES)
		return vgpu_pf_text_fail(pf, -EINVAL, "run table: %u entries; 1 to %u",
					 table->count, VGPU_PF_TABLE_ENTRIES);
	if (table->reserve_count > VGPU_PF_MAX_VFS)
		return vgpu_pf_text_fail(pf, -EINVAL, "run table: %u reserve entries; at most %u",
					 table->reserve_count, VGPU_PF_MAX_VFS);
	if (table->flags & ~(uint32_t)VGPU_PF_TABLE_STRICT)
		return vgpu_pf_text_fail(pf, -EINVAL, "run table: unknown flags 0x%x",
					 table->flags);
	for (uint32_t i = 0; !error && i < table->count; i++)
		error = check_entry(pf, &table->entries[i], i, "entry");
	for (uint32_t i = 0; !error && i < table->reserve_count; i++)
		error = check_entry(pf, &table->reserve[i], i, "reserve entry");
	for (uint32_t i = 0; !error && i < VGPU_PF_MAX_VFS; i++)
		error = check_weight(pf, i + 1, table->weights[i], table->max_gap_us[i]);
	if (!error)
		error = vgpu_pf_run_terms_check(pf, table->contracts);
	return error;
}

/* Get the table in force. */
struct vgpu_run_indexed_table *vgpu_pf_run_tables_active(struct vgpu_pf *pf)
{
	return &pf->scheduler.tables.indexed[pf->scheduler.tables.active];
}

/* Get the quantum of a VF's first entry; the default quantum if the VF has no entry. Return: ns. */
uint64_t vgpu_pf_run_tables_quantum(struct vgpu_pf *pf, uint32_t vf)
{
	uint32_t us = vgpu_pf_run_tables_active(pf)->first_us[vf];

	return (us ? us : VGPU_PF_QUANTUM_DEFAULT_US) * VGPU_NS_PER_US;
}

/* the table that takes over next, if any; otherwise the table in force */
static const struct vgpu_run_indexed_table *newest_of(const struct vgpu_pf *pf)
{
	const struct vgpu_pf_scheduler *scheduler = &pf->scheduler;

	return &scheduler->tables.indexed[scheduler->tables.is_pending ? !scheduler->tables.active
								       : scheduler->tables.active];
}

/*
 * Store a new table, which takes over at the next decision. A stored table that has not yet taken
 * over is dropped. Return: 0; -EINVAL if the table is not valid; or -ESTALE if the table's
 * generation is not the newest generation + 1. After an error, vgpu_pf_view_message() has a text.
 */
int vgpu_pf_run_tables_set(struct vgpu_pf *pf, const struct vgpu_pf_call *call)
{
	const struct vgpu_pf_run_table *table = call->payload;
	struct vgpu_pf_scheduler *scheduler = &pf->scheduler;
	uint64_t generation = newest_of(pf)->table.generation;
	int error = check_table(pf, table);

	if (error)
		return error;
	if (table->generation != generation + 1)
		return vgpu_pf_text_fail(
			pf, -ESTALE,
			"run table: generation %llu does not follow the newest, %llu; "
			"read that table and send %llu",
			LLU(table->generation), LLU(generation), LLU(generation) + 1);
	store_table(pf, &scheduler->tables.indexed[!scheduler->tables.active], table);
	scheduler->tables.is_pending = true;
	/* preempt an endless run (kind.c): otherwise the new table might take over much later */
	if (scheduler->state == VGPU_SCHEDULER_RUNNING &&
	    vgpu_pf_run_kind_is_endless(&scheduler->run))
		scheduler->preemption = VGPU_PREEMPT_FOR_ANYONE;
	/* decide now: if the VF in the engine has no tokens, the next decision may be far away */
	if (scheduler->state == VGPU_SCHEDULER_EXPIRED)
		scheduler->is_decision_due = true;
	pf->checkpoint.is_table_dirty = true; /* checkpoint.c writes the table */
	return 0;
}

uint32_t vgpu_pf_weight_of(const struct vgpu_pf *pf, uint32_t vf)
{
	return newest_of(pf)->table.weights[vf - 1];
}

uint32_t vgpu_pf_quantum_of(const struct vgpu_pf *pf, uint32_t vf)
{
	return newest_of(pf)->first_us[vf];
}

/* Get the newest table: the table that takes over next, if any; otherwise the table in force. */
void vgpu_pf_run_tables_get(const struct vgpu_pf *pf, struct vgpu_pf_run_table *table)
{
	*table = newest_of(pf)->table;
	table->size = sizeof(*table);
}

/* Put the table of the checkpoint in force if it is valid. The scheduler must be off. */
void vgpu_pf_run_tables_load(struct vgpu_pf *pf, const struct vgpu_pf_run_table *table)
{
	if (check_table(pf, table))
		return;
	store_table(pf, vgpu_pf_run_tables_active(pf), table);
}
