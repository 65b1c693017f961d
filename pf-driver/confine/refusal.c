// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Handles refused system calls: the kernel sends SIGSYS to the thread, and the handler makes the
 * call fail with EPERM. So a call that nobody foresaw, such as one of a newer libc, leaves a line
 * in the log and does not end the process. An attacker gains nothing by replacing the handler,
 * because the kernel never executes a refused call.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "pf-driver/confine/parts.h"

#define CALLS 1024u

static char program_name[32];
/* by number of the call; the last element is for all numbers of CALLS and above */
static atomic_bool was_reported[CALLS + 1];

static char *append(char *at, const char *end, const char *text)
{
	while (*text && at < end)
		*at++ = *text++;
	return at;
}

static char *append_number(char *at, const char *end, unsigned number)
{
	char digits[12] = "";
	size_t first = sizeof(digits) - 1;

	do {
		digits[--first] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	return append(at, end, digits + first);
}

/* Runs in the signal handler, so it must not use stdio. */
static void log_refusal(unsigned call)
{
	char line[128];
	const char *end = line + sizeof(line);
	char *at = append(line, end, program_name);
	ssize_t ignored;

	if (atomic_exchange(&was_reported[call < CALLS ? call : CALLS], true))
		return;
	at = append(at, end, ": refused system call ");
	at = append_number(at, end, call);
	at = append(at, end, " (this process is confined)\n");
	ignored = write(STDERR_FILENO, line, (size_t)(at - line));
	(void)ignored;
}

static void refuse(int signal_number, siginfo_t *info, void *context)
{
	int saved_errno = errno;

	(void)signal_number;
	log_refusal((unsigned)info->si_syscall);
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = -EPERM;
	errno = saved_errno;
}

int vgpu_refusal_handle(const char *program)
{
	struct sigaction action = {.sa_sigaction = refuse, .sa_flags = SA_SIGINFO | SA_NODEFER};

	strncpy(program_name, program, sizeof(program_name) - 1);
	sigemptyset(&action.sa_mask);
	return sigaction(SIGSYS, &action, NULL) ? -errno : 0;
}
