# SPDX-License-Identifier: MIT
"""Finds problems in a kernel's log, and unexpected warnings about PCI and the project's modules.

    look(vm)                  raises AssertionError with the lines that it finds
    conditions(), warnings()  return such lines of a text
"""
import re

# the headers of WARN: "WARNING: CPU: 0 PID: 1 at FILE:LINE" until 6.16, "WARNING: FILE:LINE at FUNCTION" since
CONDITION = re.compile(r'WARNING:|BUG:|Oops|Call Trace|general protection|refcount_t|UBSAN|'
                     r'possible circular|possible recursive|left SR-IOV enabled|suspected memory leak|'
                     r"hung_task|blocked for more|\[mem.*can't assign")

# words of the subsystems that the project's modules and the card behind softgpu's host view use
OURS = re.compile(r'vgpu|pci|vfio|vmd|iommu|AER|irq \d+: nobody', re.IGNORECASE)

# (pattern, reason): lines of the level "warning" and above that may be in every log
EXPECTED = (
    (r'module verification failed|loading out-of-tree module taints kernel', 'our modules are not signed'),
    (r'vfio-pci .*: (resetting|reset done)$', 'Linux 7 reports each reset of a function'),
    (r'pci-pf-stub .*left SR-IOV enabled', 'the stub never disables what was enabled through it'),
)
LOG_BYTES = 4 << 20  # machine.py boots with a log buffer of this size


def conditions(text):
    return [line for line in text.split('\n') if CONDITION.search(line) and 'pci-pf-stub' not in line]


def warnings(raw, expected=()):
    """Lines of `dmesg -r` that are at least warnings, match OURS, and that no pair of (pattern,
    reason) allows."""
    allowed = re.compile('|'.join(pattern for pattern, _ in (*EXPECTED, *expected)))
    return [line for line in raw.split('\n')
            if re.match(r'<[0-4]>', line) and OURS.search(line) and not allowed.search(line)]


def look(vm, expected=()):
    """Checks the whole log of the machine's kernel. `expected`: (pattern, reason) of warnings that
    the tests provoke."""
    raw = vm.check(f"dmesg -r -s {LOG_BYTES} | grep '^<[0-4]>' || true", 120)
    found = conditions(vm.dmesg()) + warnings(raw, expected)
    if found:
        raise AssertionError('the kernel complains:\n' + '\n'.join(found[:20]))
