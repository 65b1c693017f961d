/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Limits the log lines that a guest, a VMM or a caller can cause. The subject of a line is its
 * level together with the text before its first colon, such as "VF3" or "gpu0/vf1", of at most
 * VGPU_LOG_NAME_BYTES. A subject may log VGPU_LOG_BURST lines at once and then one line per
 * VGPU_LOG_PERIOD_MS. Further lines are dropped and counted; when the next line of the subject is
 * logged, the caller can add the count. Used by softgpu, vgpu-pf, vgpud and vgpu-agent. Not
 * thread-safe.
 */
#ifndef VGPU_PROCESS_LOG_LIMIT_H
#define VGPU_PROCESS_LOG_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VGPU_LOG_BURST	    20u
#define VGPU_LOG_PERIOD_MS  10000u
#define VGPU_LOG_SUBJECTS   512u /* places in the hash table */
#define VGPU_LOG_PROBES	    8u	 /* places in which one subject may be */
#define VGPU_LOG_NAME_BYTES 64u

struct vgpu_log_subject {
	uint32_t key;	   /* hash of the subject; 0: the place is free */
	uint32_t left_out; /* lines dropped since the last line that was logged */
	/* from this time, the subject may log a full burst; each line adds VGPU_LOG_PERIOD_MS */
	uint64_t full_burst_ms;
};

/* All zeroes: the initial state. */
struct vgpu_log_limit {
	struct vgpu_log_subject subjects[VGPU_LOG_SUBJECTS];
};

/* hash of a subject (FNV-1a), not 0; subjects with the same hash share one limit */
static inline uint32_t vgpu_log_key(uint32_t level, const char *text, size_t bytes)
{
	uint32_t key = 2166136261u ^ level;

	for (size_t i = 0; i < bytes && i < VGPU_LOG_NAME_BYTES && text[i] != ':'; i++)
		key = (key ^ (uint8_t)text[i]) * 16777619u;
	return key ? key : 1;
}

/*
 * Finds the place of a subject. A new subject takes a free place, or a place whose subject may log
 * a full burst again; that subject's count of dropped lines is then lost. If there is no such
 * place, the new subject shares another subject's place.
 */
static inline struct vgpu_log_subject *vgpu_log_find(struct vgpu_log_limit *limit, uint32_t key,
						     uint64_t now_ms)
{
	struct vgpu_log_subject *place = NULL;

	for (uint32_t i = 0; i < VGPU_LOG_PROBES; i++) {
		struct vgpu_log_subject *probed = &limit->subjects[(key + i) % VGPU_LOG_SUBJECTS];

		if (probed->key == key)
			return probed;
		if (!place && (probed->key == 0 || probed->full_burst_ms <= now_ms))
			place = probed;
	}
	if (!place)
		return &limit->subjects[key % VGPU_LOG_SUBJECTS];
	place->key = key;
	place->left_out = 0;
	return place;
}

/*
 * Decide whether to log the line `text`, which has `bytes` bytes. now_ms: time by any clock that
 * never goes back. left_out receives the number of lines of the same subject that were dropped
 * since its last logged line. Return: true if the line may be logged; false if it must be dropped,
 * and then left_out is unchanged.
 */
static inline bool vgpu_log_admit(struct vgpu_log_limit *limit, uint64_t now_ms, uint32_t level,
				  const char *text, size_t bytes, uint32_t *left_out)
{
	struct vgpu_log_subject *subject =
		vgpu_log_find(limit, vgpu_log_key(level, text, bytes), now_ms);
	uint64_t from = subject->full_burst_ms > now_ms ? subject->full_burst_ms : now_ms;

	if (from - now_ms > (VGPU_LOG_BURST - 1u) * VGPU_LOG_PERIOD_MS) {
		subject->left_out += subject->left_out < UINT32_MAX;
		return false;
	}
	subject->full_burst_ms = from + VGPU_LOG_PERIOD_MS;
	*left_out = subject->left_out;
	subject->left_out = 0;
	return true;
}

#endif
