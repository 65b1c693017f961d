// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The seccomp filter: a list of the system calls that a process may still make. Other calls fail
 * with EPERM (refusal.c). exec and calls of another architecture end the process, because only an
 * attacker would make them.
 *
 * The filter limits the arguments of calls that could do harm: sealed paths; priorities and signals
 * of the process's own threads; memory that is outside of the sealed area and not executable.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pf-driver/confine/parts.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static struct scmp_arg_cmp bits_are(unsigned argument, uint64_t mask, uint64_t value)
{
	return (struct scmp_arg_cmp){argument, SCMP_CMP_MASKED_EQ, mask, value};
}

/* compares only the lower half of a register, from which the kernel reads an int */
static struct scmp_arg_cmp int_is(unsigned argument, int value)
{
	return bits_are(argument, UINT32_MAX, (uint32_t)value);
}

static struct scmp_arg_cmp is_not_executable(unsigned argument)
{
	return bits_are(argument, PROT_EXEC, 0);
}

static struct scmp_arg_cmp pointer_is(unsigned argument, const void *value)
{
	return (struct scmp_arg_cmp){argument, SCMP_CMP_EQ, (uintptr_t)value, 0};
}

static struct scmp_arg_cmp is_above_sealed(unsigned argument)
{
	return (struct scmp_arg_cmp){argument, SCMP_CMP_GE, VGPU_SEALED_END, 0};
}

/* the filter being built, and the first error; after an error, further rules are still added */
struct filter {
	scmp_filter_ctx context;
	int error;
};

static void add_rule(struct filter *filter, uint32_t action, int call, uint32_t count,
		     const struct scmp_arg_cmp *arguments)
{
	int error = seccomp_rule_add_array(filter->context, action, call, count, arguments);

	if (!filter->error)
		filter->error = error;
}

#define ALLOW_IF(filter, call, ...)                                                                \
	do {                                                                                       \
		const struct scmp_arg_cmp arguments_[] = {__VA_ARGS__};                            \
		add_rule(filter, SCMP_ACT_ALLOW, call, COUNT_OF(arguments_), arguments_);          \
	} while (0)

static void allow_all(struct filter *filter, const int *calls, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		add_rule(filter, SCMP_ACT_ALLOW, calls[i], 0, NULL);
}

/* these reach only what every process has: its own descriptors, threads and heap, and the clocks */
static const int common_calls[] = {
	/* descriptors */
	SCMP_SYS(read),
	SCMP_SYS(write),
	SCMP_SYS(writev),
	SCMP_SYS(close),
	SCMP_SYS(fstat),
	SCMP_SYS(eventfd2),
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	/* sockets that exist */
	SCMP_SYS(accept4),
	SCMP_SYS(listen),
	SCMP_SYS(shutdown),
	SCMP_SYS(recvfrom),
	SCMP_SYS(recvmsg),
	SCMP_SYS(sendmsg),
	/* time and waiting */
	SCMP_SYS(clock_gettime),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(clock_nanosleep),
	SCMP_SYS(nanosleep),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(sched_yield),
	SCMP_SYS(futex),
	/* beginning and end of a thread, abort() */
	SCMP_SYS(set_robust_list),
	SCMP_SYS(rseq),
	SCMP_SYS(sigaltstack),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(gettid),
	SCMP_SYS(getpid),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	SCMP_SYS(getrandom),
	/* the heap */
	SCMP_SYS(brk),
};

/* memory outside of the sealed area, never executable; address NULL: the kernel chooses it */
static void allow_memory(struct filter *filter)
{
	ALLOW_IF(filter, SCMP_SYS(mmap), pointer_is(0, NULL), is_not_executable(2),
		 bits_are(3, MAP_FIXED, 0));
	ALLOW_IF(filter, SCMP_SYS(mmap), is_above_sealed(0), is_not_executable(2));
	ALLOW_IF(filter, SCMP_SYS(mprotect), is_above_sealed(0), is_not_executable(2));
	ALLOW_IF(filter, SCMP_SYS(munmap), is_above_sealed(0));
	ALLOW_IF(filter, SCMP_SYS(madvise), is_above_sealed(0));
	ALLOW_IF(filter, SCMP_SYS(mremap), is_above_sealed(0), bits_are(3, MREMAP_FIXED, 0));
}

/* not F_SETOWN, which can make the kernel send signals to another process */
static void allow_descriptors(struct filter *filter)
{
	static const int commands[] = {F_DUPFD_CLOEXEC, F_GETFL,     F_SETFL,
				       F_GETFD,		F_ADD_SEALS, F_GET_SEALS};

	for (uint32_t i = 0; i < COUNT_OF(commands); i++)
		ALLOW_IF(filter, SCMP_SYS(fcntl), int_is(1, commands[i]));
}

/* a client's credentials, time limits, the mode of a socket's file, send() without an address */
static void allow_open_sockets(struct filter *filter)
{
	static const int limits[] = {SO_RCVTIMEO, SO_SNDTIMEO};

	for (uint32_t i = 0; i < COUNT_OF(limits); i++)
		ALLOW_IF(filter, SCMP_SYS(setsockopt), int_is(1, SOL_SOCKET), int_is(2, limits[i]));
	ALLOW_IF(filter, SCMP_SYS(getsockopt), int_is(1, SOL_SOCKET), int_is(2, SO_PEERCRED));
	ALLOW_IF(filter, SCMP_SYS(fchmod), int_is(1, S_IRUSR | S_IWUSR));
	ALLOW_IF(filter, SCMP_SYS(sendto), pointer_is(4, NULL));
}

static void allow_socket(struct filter *filter, int type)
{
	ALLOW_IF(filter, SCMP_SYS(socket), int_is(0, AF_UNIX),
		 bits_are(1, 0xffffffffu & ~(uint32_t)(SOCK_CLOEXEC | SOCK_NONBLOCK),
			  (uint32_t)type),
		 int_is(2, 0));
}

static void allow_path(struct filter *filter, const struct vgpu_sealed_slot *slot, uint32_t uses)
{
	const void *address = &slot->address;
	const void *path = slot->address.sun_path;

	if (uses & (VGPU_PATH_SERVE | VGPU_PATH_CONNECT))
		ALLOW_IF(filter, SCMP_SYS(connect), pointer_is(1, address));
	if (uses & VGPU_PATH_SERVE) {
		ALLOW_IF(filter, SCMP_SYS(bind), pointer_is(1, address));
		ALLOW_IF(filter, SCMP_SYS(newfstatat), int_is(0, AT_FDCWD), pointer_is(1, path));
	}
	if (uses & (VGPU_PATH_SERVE | VGPU_PATH_RECORD))
		ALLOW_IF(filter, SCMP_SYS(unlink), pointer_is(0, path));
	if (uses & VGPU_PATH_RECORD)
		ALLOW_IF(filter, SCMP_SYS(openat), int_is(0, AT_FDCWD), pointer_is(1, path),
			 int_is(2, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW));
	if (uses & VGPU_PATH_WATCH)
		ALLOW_IF(filter, SCMP_SYS(inotify_add_watch), pointer_is(1, path));
}

/* priorities and timer slack of the process's threads; signals to the process, for abort() */
static void allow_threads(struct filter *filter, const int *threads, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		ALLOW_IF(filter, SCMP_SYS(sched_setscheduler), int_is(0, threads[i]));
	/* the calling thread (0) may set its nice value to 0 */
	ALLOW_IF(filter, SCMP_SYS(setpriority), int_is(0, PRIO_PROCESS), int_is(1, 0),
		 int_is(2, 0));
	ALLOW_IF(filter, SCMP_SYS(tgkill), int_is(0, getpid()));
	ALLOW_IF(filter, SCMP_SYS(prctl), int_is(0, PR_SET_TIMERSLACK));
}

/*
 * Allows what sanitizers do in addition. When the process ends, a thread that shares the memory
 * stops and traces all other threads, and reads their stacks and maps. UBSan writes memory to a
 * pipe to find out whether the memory is mapped. Reports check whether they go to a terminal.
 */
static void allow_sanitizers(struct filter *filter)
{
	static const int calls[] = {
		SCMP_SYS(ptrace),	   SCMP_SYS(wait4),
		SCMP_SYS(prctl),	   SCMP_SYS(getdents),
		SCMP_SYS(getdents64),	   SCMP_SYS(readlink),
		SCMP_SYS(lseek),	   SCMP_SYS(sched_getaffinity),
		SCMP_SYS(uname),	   SCMP_SYS(getppid),
		SCMP_SYS(arch_prctl),	   SCMP_SYS(mincore),
		SCMP_SYS(getrusage),	   SCMP_SYS(clock_getres),
		SCMP_SYS(rt_sigtimedwait), SCMP_SYS(pipe),
		SCMP_SYS(pipe2),
	};

	allow_all(filter, calls, COUNT_OF(calls));
	ALLOW_IF(filter, SCMP_SYS(clone),
		 bits_are(0, CLONE_VM | CLONE_FILES, CLONE_VM | CLONE_FILES));
	ALLOW_IF(filter, SCMP_SYS(openat),
		 bits_are(2, (uint32_t)(O_ACCMODE | O_CREAT | O_TRUNC), 0));
	ALLOW_IF(filter, SCMP_SYS(open), bits_are(1, (uint32_t)(O_ACCMODE | O_CREAT | O_TRUNC), 0));
	ALLOW_IF(filter, SCMP_SYS(prlimit64), int_is(0, 0));
	ALLOW_IF(filter, SCMP_SYS(ioctl), int_is(1, TCGETS));
}

static void add_all_rules(struct filter *filter, const struct vgpu_confine_rules *rules,
			  const int *threads, uint32_t count)
{
	add_rule(filter, SCMP_ACT_KILL_PROCESS, SCMP_SYS(execve), 0, NULL);
	add_rule(filter, SCMP_ACT_KILL_PROCESS, SCMP_SYS(execveat), 0, NULL);
	allow_all(filter, common_calls, COUNT_OF(common_calls));
	allow_all(filter, rules->calls, rules->call_count);
	allow_memory(filter);
	allow_descriptors(filter);
	allow_open_sockets(filter);
	allow_socket(filter, rules->socket_type);
	if (rules->other_socket_type != rules->socket_type)
		allow_socket(filter, rules->other_socket_type);
	for (uint32_t i = 0; i < vgpu_sealed_count(); i++)
		allow_path(filter, vgpu_sealed_slot(i), vgpu_sealed_uses(i));
	allow_threads(filter, threads, count);
	if (VGPU_IS_SANITIZED)
		allow_sanitizers(filter);
}

/*
 * Load the filter into all threads. threads: those whose scheduling policy may change later.
 * Return: 0 or a negative errno.
 */
int vgpu_filter_load(const struct vgpu_confine_rules *rules, const int *threads, uint32_t count)
{
	struct filter filter = {.context = seccomp_init(SCMP_ACT_TRAP)};

	if (!filter.context)
		return -ENOMEM;
	filter.error = seccomp_attr_set(filter.context, SCMP_FLTATR_CTL_TSYNC, 1);
	if (!filter.error)
		filter.error = seccomp_attr_set(filter.context, SCMP_FLTATR_ACT_BADARCH,
						SCMP_ACT_KILL_PROCESS);
	add_all_rules(&filter, rules, threads, count);
	if (!filter.error)
		filter.error = seccomp_load(filter.context);
	seccomp_release(filter.context);
	return filter.error;
}
