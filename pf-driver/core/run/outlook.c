// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Computes the lags that VFs would have after a possible slice. These lags decide whether a VF may
 * have the slice. Also finds the VF with the earliest deadline. share.c describes the rules.
 */
#include "pf-driver/core/run/internal.h"

/* a lag of this size may come from rounding */
#define LAG_EPSILON_NS 1
/* overruns cause less than 4 slices of negative lag; hangs and stalls of the host may cause more */
#define FAR_SLICES 4

/*
 * the lags of the VFs of one priority class after a possible slice; a VF is counted if its weight
 * counts (vgpu_pf_run_share_counts())
 */
struct outlook {
	int64_t lag[VGPU_PF_MAX_VFS + 1]; /* by VF number, in ns; set only for counted VFs */
	int64_t served_ns;		  /* length of the slice */
	uint64_t weights;		  /* sum of the weights of the counted VFs */
	uint64_t uncounted_weights;	  /* sum of the weights of the other VFs, which may wake */
};

/* slice length from which the VF's deadline is computed, in ns */
static int64_t slice_of(const struct vgpu_vf *vf)
{
	return (int64_t)(vf->share.slice_us * VGPU_NS_PER_US);
}

/* r in share.c: the longest slice of the class, in ns */
static int64_t longest_slice(struct vgpu_pf *pf, uint32_t priority_class)
{
	return (int64_t)vgpu_pf_run_tables_active(pf)->longest_us[priority_class] *
	       (int64_t)VGPU_NS_PER_US;
}

/*
 * Computes the lags after a slice of `ns` for the VF `served`. The ideal engine splits `ns` by
 * weight: each VF that sleeps with a negative lag first gets its part, at most until its lag is 0;
 * the competing VFs split the rest.
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

/* service of b by weight until the deadline D of a, whose slice is slice_ns: (D - V) * weight(b) */
static int64_t service_until_deadline(const struct outlook *outlook, const struct vgpu_vf *a,
				      int64_t slice_ns, const struct vgpu_vf *b)
{
	return (slice_ns - outlook->lag[a->number]) * (int64_t)b->share.weight /
	       (int64_t)a->share.weight;
}

/* service that VFs with this sum of weights would lose if all uncounted VFs woke now */
static int64_t service_lost_to_uncounted(const struct outlook *outlook, uint64_t weights)
{
	uint64_t all = outlook->weights + outlook->uncounted_weights;
	int64_t uncounted = outlook->served_ns * (int64_t)outlook->uncounted_weights / (int64_t)all;

	return uncounted * (int64_t)weights / (int64_t)outlook->weights;
}

/* true if the slice would bring the VF more than r ahead if all uncounted VFs woke now */
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
 *   the sum of `lag` over the competing VFs with deadline <= D
 *   - the sum of min(-lag, service by weight until D) over the other VFs with lag < 0
 *   + the service that the uncounted VFs, if they woke, would take from the VFs that are not in the
 *     first sum
 * The result is at least S(D) of share.c, which subtracts the whole service by weight until D of
 * the other VFs. But another VF may run out of work before D, and then only its negative lag
 * counts.
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
		/* this condition is: deadline of the VF <= D */
		if (vf->share.is_competing && slice_of(vf) - lag <= by_weight) {
			missing += lag;
			weights += vf->share.weight;
		} else if (lag < 0) {
			missing -= by_weight < -lag ? by_weight : -lag;
		}
	}
	return missing + service_lost_to_uncounted(outlook, outlook->weights - weights);
}

/* true if the missing service at each deadline of the class is at most r */
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
 * Check the present lags of the VF's priority class, without a further slice. Return: true if the
 * missing service at each deadline is at most the longest slice, or if the VF's weight does not
 * count.
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
 * Return: true if a VF is ahead of its share by more than FAR_SLICES times the longest slice, as
 * after a hang or a stall of the host. The core does not skip the entries of such a VF, because the
 * VF would wait too long. The next tables of vgpud correct the lag in parts instead.
 */
bool vgpu_pf_run_outlook_is_far_ahead(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	return vgpu_pf_run_share_lag(pf, vf) <
	       -FAR_SLICES * longest_slice(pf, vf->share.priority_class);
}

/* Check whether a VF may have a slice of `ns`. ALLOWED if the VF does not compete by weight. */
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
 * Find the VF with the earliest deadline among the candidates (VFs of one priority class) that have
 * a lag >= 0. If no candidate has such a lag, find the candidate that is least ahead. Return: VF
 * number; 0 if no candidate competes by weight.
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
