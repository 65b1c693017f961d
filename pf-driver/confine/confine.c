// SPDX-License-Identifier: GPL-2.0-only OR MIT
#define _GNU_SOURCE
#include "pf-driver/confine/confine.h"

#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "pf-driver/confine/parts.h"

#define MAX_THREADS	 128u
#define HEAPS_PER_CPU	 8 /* glibc's own limit */
#define HEAP_PIECES	 256u
#define HEAP_PIECE_BYTES 4096u

static const char *failed_step = "";
static DIR *task_directory; /* opened while the process may open files */

/* Get the text of the step at which a vgpu_confine_*() call failed; "" if none has failed. */
const char *vgpu_confine_step(void)
{
	return failed_step;
}

static int fail(const char *step, int error)
{
	failed_step = step;
	return error;
}

/* raises a limit of this process, so that the process needs no capability for the same right */
static bool raise_limit(__rlimit_resource_t resource, rlim_t value)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit))
		return false;
	if (limit.rlim_max < value)
		limit.rlim_max = value;
	if (limit.rlim_cur < value)
		limit.rlim_cur = value;
	return setrlimit(resource, &limit) == 0;
}

static uint32_t bit(uint32_t capability)
{
	return 1u << capability;
}

/*
 * Raises the limits of thread priorities and of locked memory, because the process raises
 * priorities and locks memory while it runs. Returns the capabilities to keep, one for each limit
 * that could not be raised. A limit stays low only if the process lacks CAP_SYS_RESOURCE and the
 * service manager did not raise the limit.
 */
static uint32_t rights_to_keep(int real_time_priority)
{
	uint32_t rights = 0;

	if (!raise_limit(RLIMIT_RTPRIO, (rlim_t)real_time_priority))
		rights |= bit(CAP_SYS_NICE);
	if (!raise_limit(RLIMIT_MEMLOCK, RLIM_INFINITY))
		rights |= bit(CAP_IPC_LOCK);
	return rights;
}

/* without CAP_SETPCAP the bounding set stays, but it affects only exec, which is forbidden */
static int drop_capabilities(uint32_t keep)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	for (unsigned long i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	if (syscall(SYS_capget, &head, sets))
		return -errno;
	for (uint32_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		sets[i].permitted &= i == 0 ? keep : 0;
		sets[i].effective &= sets[i].permitted;
		sets[i].inheritable = 0;
	}
	return syscall(SYS_capset, &head, sets) ? -errno : 0;
}

/* grows and shrinks the heap of a thread, because libc reads files at the first change of a heap */
static void *use_heap(void *unused)
{
	void *pieces[HEAP_PIECES];

	for (uint32_t i = 0; i < HEAP_PIECES; i++)
		pieces[i] = malloc(HEAP_PIECE_BYTES);
	for (uint32_t i = 0; i < HEAP_PIECES; i++)
		free(pieces[i]);
	return unused;
}

/*
 * Makes libc do now what it would otherwise do later: check the type of the file behind stdout,
 * read the time zone, count the CPUs for the number of heaps (M_ARENA_MAX), and read files for the
 * heaps of threads.
 */
static void prepare_libc(void)
{
	static char lines[BUFSIZ];
	pthread_t thread;

	fflush(stdout);
	setvbuf(stdout, lines, _IOLBF, sizeof(lines));
	tzset();
	mallopt(M_ARENA_MAX, HEAPS_PER_CPU * get_nprocs());
	if (pthread_create(&thread, NULL, use_heap, NULL) == 0)
		pthread_join(thread, NULL);
}

/*
 * Take capabilities and files away from the calling thread. Threads that this thread starts later
 * inherit the restriction. real_time_priority: the highest SCHED_FIFO priority that a thread
 * requests later.
 */
int vgpu_confine_files(int real_time_priority)
{
	int error;

	task_directory = opendir("/proc/self/task");
	if (!task_directory)
		return fail("cannot list the threads", -errno);
	prepare_libc();
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return fail("cannot give up new privileges", -errno);
	error = drop_capabilities(rights_to_keep(real_time_priority));
	if (error)
		return fail("cannot drop capabilities", error);
	error = vgpu_landlock_restrict();
	return error ? fail("cannot give up files (Landlock)", error) : 0;
}

/* lists the threads whose scheduling policy may change later; leaves out those after MAX_THREADS */
static uint32_t list_threads(int threads[MAX_THREADS])
{
	uint32_t count = 0;
	const struct dirent *entry;

	while ((entry = readdir(task_directory)) && count < MAX_THREADS)
		if (entry->d_name[0] != '.')
			threads[count++] = atoi(entry->d_name);
	closedir(task_directory);
	task_directory = NULL;
	return count;
}

/* Take system calls away from all threads; no thread can be started afterwards. */
int vgpu_confine_calls(const struct vgpu_confine_rules *rules)
{
	int threads[MAX_THREADS];
	uint32_t count = list_threads(threads);
	int error = vgpu_sealed_freeze();

	if (error)
		return fail("cannot seal paths", error);
	error = vgpu_refusal_handle(rules->program);
	if (error)
		return fail("cannot handle refused calls", error);
	error = vgpu_filter_load(rules, threads, count);
	return error ? fail("cannot give up system calls (seccomp)", error) : 0;
}
