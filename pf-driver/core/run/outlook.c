// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Shares as they would be if somebody had been served by so much: may it be, and who is due first?
 * share.c has the rule.
 */
#include "pf-driver/core/run/internal.h"

/* less comes from rounding */
#define EVEN_NS 1
/* overruns do not add up to that */
#define FAR_SLICES 4

/* as it would be if somebody had been served by so much */
struct outlook {
	int64_t lag[VGPU_PF_MAX_VFS + 1];
	int64_t served_ns;
	uint64_t weights;	   /* of all that count */
	uint64_t sleeping_weights; /* of those that may wake meanwhile, and count then */
};

static int64_t slice_of(const struct vgpu_vf *vf)
{
	return (int64_t)(vf->share.slice_us * VGPU_NS_PER_US);
}

static int64_t longest_slice(struct vgpu_pf *pf, uint32_t band)
{
	return (int64_t)vgpu_pf_run_tables_active(pf)->longest_us[band] * (int64_t)VGPU_NS_PER_US;
}

/* those who pay do so first: what they do not need the others are given */
static void look_ahead(struct vgpu_pf *pf, const struct vgpu_vf *served, int64_t ns,
		       struct outlook *outlook)
{
	uint32_t band = served->share.band;
	uint64_t competing_weights = 0;
	int64_t left = ns;
	struct vgpu_vf *vf;

	outlook->served_ns = ns;
	outlook->weights = vgpu_pf_run_share_weights(pf, band);
	outlook->sleeping_weights = 0;
	vgpu_for_each_vf(pf, vf) {
		int64_t part, lag = vgpu_pf_run_share_lag(pf, vf);

		if (vf->share.band != band || vf->share.is_competing ||
		    !vgpu_pf_run_share_counts(vf)) {
			if (vf->share.band == band && vf->share.is_competing)
				competing_weights += vf->share.weight;
			else if (vf->share.band == band)
				outlook->sleeping_weights += vf->share.wanted;
			continue;
		}
		part = ns * (int64_t)vf->share.weight / (int64_t)outlook->weights;
		if (part > -lag)
			part = -lag;
		left -= part;
		outlook->lag[vf->number] = lag + part;
	}
	vgpu_for_each_vf(pf, vf)
		if (vf->share.band == band && vf->share.is_competing)
			outlook->lag[vf->number] =
				vgpu_pf_run_share_lag(pf, vf) +
				left * (int64_t)vf->share.weight / (int64_t)competing_weights -
				(vf == served ? ns : 0);
}

/* of b's weight, what passes until a's deadline */
static int64_t until_deadline(const struct outlook *outlook, const struct vgpu_vf *a,
			      int64_t slice_ns, const struct vgpu_vf *b)
{
	return (slice_ns - outlook->lag[a->number]) * (int64_t)b->share.weight /
	       (int64_t)a->share.weight;
}

/* of what others of these weights would be given, what sleepers would have if they woke at once */
static int64_t of_sleepers(const struct outlook *outlook, uint64_t weights)
{
	uint64_t all = outlook->weights + outlook->sleeping_weights;
	int64_t theirs = outlook->served_ns * (int64_t)outlook->sleeping_weights / (int64_t)all;

	return theirs * (int64_t)weights / (int64_t)outlook->weights;
}

/* the slice would put its VF too far ahead, if the sleepers woke now, also those who still pay */
static bool is_ahead(struct vgpu_pf *pf, const struct vgpu_vf *vf, const struct outlook *outlook)
{
	uint64_t all = outlook->weights + outlook->sleeping_weights;
	int64_t ns = outlook->served_ns;
	int64_t lag =
		vgpu_pf_run_share_lag(pf, vf) - ns + ns * (int64_t)vf->share.weight / (int64_t)all;

	return lag < -longest_slice(pf, vf->share.band) - EVEN_NS;
}

/*
 * What is to be served until a VF's deadline and is more than there will be: the lags of those with
 * earlier deadlines, less what those who pay will have left of the service until then. The others
 * will leave some, too, but not if they run out of work.
 */
static int64_t missing_at(struct vgpu_pf *pf, const struct outlook *outlook,
			  const struct vgpu_vf *due)
{
	int64_t slice = slice_of(due);
	uint64_t weights = 0;
	int64_t missing = 0;
	struct vgpu_vf *vf;

	vgpu_for_each_vf(pf, vf) {
		int64_t lag = outlook->lag[vf->number], passes;

		if (vf->share.band != due->share.band || !vgpu_pf_run_share_counts(vf))
			continue;
		passes = until_deadline(outlook, due, slice, vf);
		if (vf->share.is_competing && slice_of(vf) - lag <= passes) {
			missing += lag;
			weights += vf->share.weight;
		} else if (lag < 0) {
			missing -= passes < -lag ? passes : -lag;
		}
	}
	return missing + of_sleepers(outlook, outlook->weights - weights);
}

/* would everybody stay within the bound if only those with earlier deadlines were served? */
static bool is_safe(struct vgpu_pf *pf, uint32_t band, const struct outlook *outlook)
{
	struct vgpu_vf *vf;

	vgpu_for_each_vf(pf, vf)
		if (vf->share.band == band && vf->share.is_competing &&
		    missing_at(pf, outlook, vf) > longest_slice(pf, band) + EVEN_NS)
			return false;
	return true;
}

/**
 * vgpu_pf_run_outlook_is_safe() - would everybody stay within the bound as things are?
 * @pf: the PF
 * @vf: one of the band
 */
bool vgpu_pf_run_outlook_is_safe(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	struct outlook outlook;

	if (!vgpu_pf_run_share_counts(vf))
		return true;
	look_ahead(pf, vf, 0, &outlook);
	return is_safe(pf, vf->share.band, &outlook);
}

/**
 * vgpu_pf_run_outlook_is_far() - has a VF had far more than its share?
 * @pf: the PF
 * @vf: the VF
 *
 * It hung, or the host stood still. It keeps its turns: vgpud's tables make it pay in parts, so
 * that nobody waits too long.
 */
bool vgpu_pf_run_outlook_is_far(struct vgpu_pf *pf, const struct vgpu_vf *vf)
{
	return vgpu_pf_run_share_lag(pf, vf) < -FAR_SLICES * longest_slice(pf, vf->share.band);
}

/**
 * vgpu_pf_run_outlook_is_ahead() - would a slice put its VF too far ahead?
 * @pf: the PF
 * @vf: the VF, competing
 * @ns: the slice
 */
bool vgpu_pf_run_outlook_is_ahead(struct vgpu_pf *pf, struct vgpu_vf *vf, int64_t ns)
{
	struct outlook outlook;

	if (!vf->share.is_competing)
		return false;
	look_ahead(pf, vf, ns, &outlook);
	return is_ahead(pf, vf, &outlook);
}

/**
 * vgpu_pf_run_outlook_allows() - may a VF have a slice that is not its by deadline?
 * @pf: the PF
 * @vf: the VF
 * @ns: the slice
 */
bool vgpu_pf_run_outlook_allows(struct vgpu_pf *pf, struct vgpu_vf *vf, int64_t ns)
{
	struct outlook outlook;

	if (!vf->share.is_competing)
		return true;
	look_ahead(pf, vf, ns, &outlook);
	return !is_ahead(pf, vf, &outlook) && is_safe(pf, vf->share.band, &outlook);
}

/**
 * vgpu_pf_run_outlook_first() - who is next by deadline
 * @pf: the PF
 * @competing: bit per VF, of one band
 *
 * Return: VF number; 0: none of them has a weight.
 */
uint32_t vgpu_pf_run_outlook_first(struct vgpu_pf *pf, uint32_t competing)
{
	struct vgpu_vf *first = NULL, *least = NULL, *vf;
	int64_t first_room = 0;

	vgpu_for_each_vf(pf, vf) {
		int64_t lag = vgpu_pf_run_share_lag(pf, vf);
		int64_t room = slice_of(vf) - lag;

		if (!vgpu_has_bit(competing, vf->number) || !vf->share.is_competing)
			continue;
		if (!least || vgpu_pf_run_share_ahead(pf, vf) < vgpu_pf_run_share_ahead(pf, least))
			least = vf;
		if (lag < -EVEN_NS)
			continue;
		if (first &&
		    room * (int64_t)first->share.weight >= first_room * (int64_t)vf->share.weight)
			continue;
		first = vf;
		first_room = room;
	}
	if (first)
		return first->number;
	return least ? least->number : 0;
}
