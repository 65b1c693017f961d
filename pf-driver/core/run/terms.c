// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Checks the contracts of a run table, each by itself and all together. The checks do not include
 * the time for world switches, so the client must leave this time free.
 */
#include "pf-driver/core/run/internal.h"

static int check_gang(struct vgpu_pf *pf, const struct vgpu_pf_contract *terms, uint32_t vf)
{
	if (!(terms->flags & VGPU_PF_CONTRACT_GANG)) {
		if (terms->phase_us == 0)
			return 0;
		return vgpu_pf_text_fail(
			pf, -EINVAL, "run table: VF%u has a phase of %u us but is not in a gang",
			vf, terms->phase_us);
	}
	if (terms->budget_ns == 0 || terms->ahead || terms->rate_ppm ||
	    vgpu_pf_run_terms_phase_ns(terms) >= terms->period_ns)
		return vgpu_pf_text_fail(
			pf, -EINVAL,
			"run table: VF%u is in a gang, which requires a budget, a phase (%u us) "
			"below the period, ahead 0 and no cap",
			vf, terms->phase_us);
	return 0;
}

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t remainder = a % b;

		a = b;
		b = remainder;
	}
	return a;
}

/*
 * True if any slots of a and b overlap. Let g be the greatest common divisor of both periods. The
 * shortest time from the start of a slot of a to the start of a slot of b is (phase b - phase a)
 * mod g. The slots overlap if this time is less than the length of a slot of a, or if the same
 * holds with a and b exchanged.
 */
static bool do_slots_overlap(const struct vgpu_pf_contract *a, const struct vgpu_pf_contract *b)
{
	uint64_t common = greatest_common_divisor(a->period_ns, b->period_ns);
	uint64_t from_a = vgpu_pf_run_terms_phase_ns(a) % common;
	uint64_t from_b = vgpu_pf_run_terms_phase_ns(b) % common;

	return (from_b + common - from_a) % common < a->budget_ns ||
	       (from_a + common - from_b) % common < b->budget_ns;
}

/* refuses gang slots that overlap, because only one VF can be in the engine at a time */
static int check_slots(struct vgpu_pf *pf, const struct vgpu_pf_contract *contracts)
{
	for (uint32_t b = 0; b < VGPU_PF_MAX_VFS; b++) {
		if (!(contracts[b].flags & VGPU_PF_CONTRACT_GANG))
			continue;
		for (uint32_t a = 0; a < b; a++) {
			if (!(contracts[a].flags & VGPU_PF_CONTRACT_GANG) ||
			    !do_slots_overlap(&contracts[a], &contracts[b]))
				continue;
			return vgpu_pf_text_fail(pf, -EINVAL,
						 "run table: gang slots of VF%u and VF%u overlap",
						 a + 1, b + 1);
		}
	}
	return 0;
}

static int check_reservation(struct vgpu_pf *pf, const struct vgpu_pf_contract *terms, uint32_t vf)
{
	if (terms->budget_ns == 0 && (terms->period_ns || terms->ahead))
		return vgpu_pf_text_fail(
			pf, -EINVAL, "run table: VF%u has a period_ns or ahead, but no budget_ns",
			vf);
	if (terms->budget_ns == 0)
		return 0;
	if (terms->budget_ns < VGPU_PF_CONTRACT_MIN_NS || terms->budget_ns > terms->period_ns ||
	    terms->period_ns > VGPU_PF_CONTRACT_MAX_NS)
		return vgpu_pf_text_fail(
			pf, -EINVAL,
			"run table: VF%u has a budget of %llu ns in a period of %llu ns; "
			"a budget is from 100 us to its period, a period at most 10 s",
			vf, LLU(terms->budget_ns), LLU(terms->period_ns));
	if (terms->ahead > VGPU_PF_CONTRACT_MAX_AHEAD)
		return vgpu_pf_text_fail(pf, -EINVAL, "run table: VF%u has ahead %u; at most %u",
					 vf, terms->ahead, VGPU_PF_CONTRACT_MAX_AHEAD);
	return 0;
}

static int check_cap(struct vgpu_pf *pf, const struct vgpu_pf_contract *terms, uint32_t vf)
{
	uint64_t min = terms->budget_ns + VGPU_PF_CONTRACT_MIN_NS;

	if (terms->rate_ppm == 0 && terms->burst_ns == 0)
		return 0;
	if (terms->rate_ppm == 0 || terms->rate_ppm > VGPU_PF_RATE_MAX_PPM)
		return vgpu_pf_text_fail(pf, -EINVAL,
					 "run table: VF%u has a cap of %u ppm; 1 to %u", vf,
					 terms->rate_ppm, VGPU_PF_RATE_MAX_PPM);
	if (terms->burst_ns < min || terms->burst_ns > VGPU_PF_CONTRACT_MAX_NS)
		return vgpu_pf_text_fail(
			pf, -EINVAL,
			"run table: VF%u has a burst of %llu ns; %llu ns (its budget + "
			"100 us) to 10 s are valid",
			vf, LLU(terms->burst_ns), LLU(min));
	return 0;
}

static int check_contract(struct vgpu_pf *pf, const struct vgpu_pf_contract *terms, uint32_t vf)
{
	static const struct vgpu_pf_contract none;
	int error = check_reservation(pf, terms, vf);

	if (!error)
		error = check_cap(pf, terms, vf);
	if (error)
		return error;
	if (terms->priority_class >= VGPU_PF_PRIORITY_CLASSES)
		return vgpu_pf_text_fail(pf, -EINVAL,
					 "run table: VF%u is in priority class %u; 0 to %u", vf,
					 terms->priority_class, VGPU_PF_PRIORITY_CLASSES - 1);
	if (terms->flags & ~(uint32_t)(VGPU_PF_CONTRACT_STRICT | VGPU_PF_CONTRACT_GANG))
		return vgpu_pf_text_fail(pf, -EINVAL, "run table: VF%u has unknown flags 0x%x", vf,
					 terms->flags);
	error = check_gang(pf, terms, vf);
	if (error)
		return error;
	if (terms->preempt_timeout_us > VGPU_PF_PREEMPT_TIMEOUT_MAX_US)
		return vgpu_pf_text_fail(
			pf, -EINVAL, "run table: VF%u has a preempt_timeout_us of %u; at most %u",
			vf, terms->preempt_timeout_us, VGPU_PF_PREEMPT_TIMEOUT_MAX_US);
	if (vf > pf->device.total_vfs && memcmp(terms, &none, sizeof(none)))
		return vgpu_pf_text_fail(pf, -EINVAL,
					 "run table: a contract names VF%u; VFs are 1 to %u", vf,
					 pf->device.total_vfs);
	return 0;
}

/*
 * Check that each contract is valid, that the reservations and gang slots together fit into the
 * engine's time, and that gang slots do not overlap. contracts: VGPU_PF_MAX_VFS contracts. Return:
 * 0, or -EINVAL with a message.
 */
int vgpu_pf_run_terms_check(struct vgpu_pf *pf, const struct vgpu_pf_contract *contracts)
{
	uint64_t sum_ppm = 0;

	for (uint32_t vf = 1; vf <= VGPU_PF_MAX_VFS; vf++) {
		const struct vgpu_pf_contract *terms = &contracts[vf - 1];
		int error = check_contract(pf, terms, vf);

		if (error)
			return error;
		if (terms->budget_ns)
			sum_ppm += terms->budget_ns * VGPU_PF_RATE_MAX_PPM / terms->period_ns;
	}
	if (sum_ppm > VGPU_PF_RATE_MAX_PPM)
		return vgpu_pf_text_fail(
			pf, -EINVAL,
			"run table: reservations take %llu ppm of the engine; at most %u",
			LLU(sum_ppm), VGPU_PF_RATE_MAX_PPM);
	return check_slots(pf, contracts);
}
