// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Computes the lags after a possible slice, which decide whether a VF may have the slice. Finds the
 * VF with the earliest deadline. share.c has the rule.
 */
#include "pf-driver/core/run/internal.h"

/* a lag of this size may come from rounding */
#define LAG_EPSILON_NS 1
/* overruns cause less than 4 slices of negative lag; hangs and stalls of the host cause more */
#define FAR_SLICES 4

/* the lags of a priority class after a possible slice */
struct outlook {
	int64_t lag[VGPU_PF_MAX_VFS + 1];
	int64_t served_ns;	    /* length of the slice */
	uint64_t weights;	    /* sum of the weights that count */
	uint64_t uncounted_weights; /* sum of the weights that count once their VFs have work */
};

static int64_t slice_of(const struct vgpu_vf *vf)
{
	return (int64_t)(vf->share.slice_us * VGPU_NS_PER_US);
}

static int64_t longest_slice(struct vgpu_pf *pf, uint32_t priority_class)
{
	return (int64_t)vgpu_pf_run_tables_active(pf)->longest_us[priority_class] *
	       (int64_t)VGPU_NS_PER_US;
}

/*
 * Computes the lags after the VF `served` has had a slice of `ns`. VFs that sleep with a negative
 * lag get their part of the service first, at most until their lag is 0; competing VFs divide the
 * rest by weight.
 */
static void predict_lags(struct vgpu_pf *pf, const struct vgpu_vf *served, int64_t ns,
			 struct outlook *outlook)
{
	uint32_t priority_class = served->share.priority_class;
	uint64_t competing_weights = 0;
	int64_t left = ns;
	struct vgpu_vf *vf;

	outlook->served_ns = ns;
	outlook->weights = vgpu_pf_run_share_weights(pf, priority_class);
	outlook->uncounted_weights = 0;
	vgpu_for_each_vf(pf, vf) {
		int64_t part, lag = vgpu_pf_run_share_lag(pf, vf);

		if (vf->share.priority_class != priority_class || vf->share.is_competing ||
		    !vgpu_pf_run_share_counts(vf)) {
			if (vf->share.priority_class == priority_class && vf->share.is_competing)
				competing_weights += vf->share.weight;
			else if (vf->share.priority_class == priority_class)
				outlook->uncounted_weights += vf->share.table_weight;
			continue;
		}
		part = ns * (int64_t)vf->share.weight / (int64_t)outlook->weights;
		if (part > -lag)
			part = -lag;
		left -= part;
		outlook->lag[vf->number] = lag + part;
	}
	vgpu_for_each_vf(pf, vf)
		if (vf->share.priority_class == priority_class && vf->share.is_competing)
			outlook->lag[vf->number] =
				vgpu_pf_run_share_lag(pf, vf) +
				left * (int64_t)vf->share.weight / (int64_t)competing_weights -
				(vf == served ? ns : 0);
}

/* the service that b gets by its weight until a's deadline */
static int64_t service_until_deadline(const struct outlook *outlook, const struct vgpu_vf *a,
				      int64_t slice_ns, const struct vgpu_vf *b)
{
	return (slice_ns - outlook->lag[a->number]) * (int64_t)b->share.weight /
	       (int64_t)a->share.weight;
}

/* part of the slice that VFs with this sum of weights would lose if all uncounted VFs woke now */
static int64_t service_lost_to_uncounted(const struct outlook *outlook, uint64_t weights)
{
	uint64_t all = outlook->weights + outlook->uncounted_weights;
	int64_t uncounted = outlook->served_ns * (int64_t)outlook->uncounted_weights / (int64_t)all;

	return uncounted * (int64_t)weights / (int64_t)outlook->weights;
}

/* true if the slice could bring the VF too far ahead; the worst case: all VFs without work wake */
static bool is_ahead(struct vgpu_pf *pf, const struct vgpu_vf *vf, const struct outlook *outlook)
{
	uint64_t all = outlook->weights + outlook->uncounted_weights;
	int64_t ns = outlook->served_ns;
	int64_t lag =
		vgpu_pf_run_share_lag(pf, vf) - ns + ns * (int64_t)vf->share.weight / (int64_t)all;

	return lag < -longest_slice(pf, vf->share.priority_class) - LAG_EPSILON_NS;
}

/*
 * Computes the service that will be missing at the deadline D of `due`:
 *   sum of lag(VFs with deadline <= D)
 *   - sum of min(-lag, service by weight until D)(other VFs with lag < 0)
 *   + service that uncounted VFs, if they woke, would take from the VFs that are not in the first
 *     sum
 * A VF with a later deadline and a lag >= 0 also leaves its service until D to the VFs with
 * deadline <= D. The formula does not subtract this service, because such a VF may run out of work.
 */
static int64_t missing_service(struct vgpu_pf *pf, const struct outlook *outlook,
			       const struct vgpu_vf *due)
{
	int64_t slice = slice_of(due);
	uint64_t weights = 0;
	int64_t missing = 0;
	struct vgpu_vf *vf;

	vgpu_for_each_vf(pf, vf) {
		int64_t lag = outlook->lag[vf->number], by_weight;

		if (vf->share.priority_class != due->share.priority_class ||
		    !vgpu_pf_run_share_counts(vf))
			continue;
		by_weight = service_until_deadline(outlook, due, slice, vf);
		/* true if the deadline of the VF is <= D */
		if (vf->share.is_competing && slice_of(vf) - lag <= by_weight) {
			missing += lag;
			weights += vf->share.weight;
		} else if (lag < 0) {
			missing -= by_weight < -lag ? by_weight : -lag;
		}
	}
	return missing + service_lost_to_uncounted(outlook, outlook->weights - weights);
}

/* true if the missing service at each deadline of the priority class is within the bound */
static bool is_safe(struct vgpu_pf *pf, uint32_t priority_class, const struct outlook *outlook)
{
	struct vgpu_vf *vf;

	vgpu_for_each_vf(pf, vf)
		if (vf->share.priority_class == priority_class && vf->share.is_competing &&
		    missing_service(pf, outlook, vf) >
			    longest_slice(pf, priority_class) + LAG_EPSILON_NS)
			return false;
	return true;
}

/*
 * Check the missing service in the VF's priority class. Return: true if at each deadline the
 * missing service is within the bound, or if the VF's weight does not count.
 */
bool vgpu_pf_run_outlook_is_safe(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	struct outlook outlook;

	if (!vgpu_pf_run_share_counts(vf))
		return true;
	predict_lags(pf, vf, 0, &outlook);
	return is_safe(pf, vf->share.priority_class, &outlook);
}

/*
 * Return: true if a VF has had more than FAR_SLICES slices too much, as after a hang or a stall of
 * the host. The core does not skip the entries of such a VF: vgpud's next tables take the service
 * back in parts, so that no VF waits too long.
 */
bool vgpu_pf_run_outlook_is_far(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	return vgpu_pf_run_share_lag(pf, vf) <
	       -FAR_SLICES * longest_slice(pf, vf->share.priority_class);
}

/* Check whether a VF may have a slice of `ns`. A VF that does not compete by weight always may. */
enum vgpu_outlook vgpu_pf_run_outlook_of(struct vgpu_pf *pf, struct vgpu_vf *vf, int64_t ns)
{
	struct outlook outlook;

	if (!vf->share.is_competing)
		return VGPU_OUTLOOK_ALLOWED;
	predict_lags(pf, vf, ns, &outlook);
	if (is_ahead(pf, vf, &outlook))
		return VGPU_OUTLOOK_AHEAD;
	return is_safe(pf, vf->share.priority_class, &outlook) ? VGPU_OUTLOOK_ALLOWED
							       : VGPU_OUTLOOK_UNSAFE;
}

/*
 * Find the VF with the earliest deadline among the candidates (VFs of one priority class) with a
 * lag >= 0. If none has such a lag, find the candidate that is least ahead. Return: VF number; 0 if
 * no VF competes by weight.
 */
uint32_t vgpu_pf_run_outlook_first(struct vgpu_pf *pf, uint32_t candidates)
{
	struct vgpu_vf *first = NULL, *min = NULL, *vf;
	int64_t first_left = 0;

	vgpu_for_each_vf(pf, vf) {
		int64_t lag = vgpu_pf_run_share_lag(pf, vf);
		int64_t left = slice_of(vf) - lag; /* (deadline - V) * weight */

		if (!vgpu_has_bit(candidates, vf->number) || !vf->share.is_competing)
			continue;
		if (!min || vgpu_pf_run_share_ahead(pf, vf) < vgpu_pf_run_share_ahead(pf, min))
			min = vf;
		if (lag < -LAG_EPSILON_NS)
			continue;
		if (first &&
		    left * (int64_t)first->share.weight >= first_left * (int64_t)vf->share.weight)
			continue;
		first = vf;
		first_left = left;
	}
	if (first)
		return first->number;
	return min ? min->number : 0;
}
