# SPDX-License-Identifier: MIT
"""What a kernel's log says: trouble anywhere, and warnings about PCI and our modules that nobody expects.

    look(vm)              raises AssertionError with what it finds
    CONDITION, warnings()   for those who look themselves
"""
import re

# the headers of WARN: "WARNING: CPU: 0 PID: 1 at FILE:LINE" until 6.16, "WARNING: FILE:LINE at FUNCTION" since
CONDITION = re.compile(r'WARNING:|BUG:|Oops|Call Trace|general protection|refcount_t|UBSAN|'
                     r'possible circular|possible recursive|left SR-IOV enabled|suspected memory leak|'
                     r"hung_task|blocked for more|\[mem.*can't assign")

# subsystems that our modules and the card behind softgpu's host view have to do with
OURS = re.compile(r'vgpu|pci|vfio|vmd|iommu|AER|irq \d+: nobody', re.IGNORECASE)

# of the level "warning" and above: why it may stand in every log
EXPECTED = (
    (r'module verification failed|loading out-of-tree module taints kernel', 'our modules are not signed'),
    (r'pci-pf-stub .*left SR-IOV enabled', 'the stub never disables what was enabled through it'),
)
LOG_BYTES = 4 << 20  # machine.py asks for as much


def conditions(text):
    return [line for line in text.split('\n') if CONDITION.search(line) and 'pci-pf-stub' not in line]


def warnings(raw, expected=()):
    """Lines of `dmesg -r` about what is ours that are at least warnings and that no pair of (pattern, reason) allows."""
    allowed = re.compile('|'.join(pattern for pattern, _ in (*EXPECTED, *expected)))
    return [line for line in raw.split('\n')
            if re.match(r'<[0-4]>', line) and OURS.search(line) and not allowed.search(line)]


def look(vm, expected=()):
    """At all that the machine's kernel has said. `expected`: (pattern, reason) of warnings that the tests provoke."""
    raw = vm.check(f"dmesg -r -s {LOG_BYTES} | grep '^<[0-4]>' || true", 120)
    found = conditions(vm.dmesg()) + warnings(raw, expected)
    if found:
        raise AssertionError('the kernel complains:\n' + '\n'.join(found[:20]))
