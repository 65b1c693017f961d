# SPDX-License-Identifier: MIT
"""Checks that a test runs each command that the product recommends.

A recommended command stands between single quotes in a string: 'vgpuctl list'. It has a row in
tests/scenario/dbus/advice_test.cpp, or a row in ELSEWHERE with the test that runs it.
"""
import re

TABLE = 'tests/scenario/dbus/advice_test.cpp'
FOLDERS = ('cli/', 'daemon/', 'vf-agent/', 'text/', 'pf-driver/user/', 'pf-driver/process/')

# (file, command): (file of the test, its name)
ELSEWHERE = {
    ('cli/job_wait.cpp', 'vgpuctl jobs'):
        ('tests/scenario/dbus/jobs_test.cpp', 'AnInterruptedWaitSaysThatTheJobContinues'),
    ('cli/job_wait.cpp', 'vgpuctl jobs --cancel {}'):
        ('tests/scenario/dbus/jobs_test.cpp', 'AnInterruptedApplyIsCancelledAsVgpuctlSays'),
    ('cli/verb_hook.cpp', 'virsh managedsave-remove {}'):
        ('tests/libvirt/test_domains.py', 'test_a_saved_or_migrated_domain_is_refused_by_the_hook'),
    ('cli/libvirt_client.cpp', 'virsh list --all'):
        ('tests/libvirt/test_domains.py',
         'test_attach_xml_names_the_command_that_shows_the_domains'),
    ('daemon/service/jobs/apply_run.cpp', 'vgpuctl plan FILE'):
        ('tests/unit/daemon/jobs_test.cpp',
         'AVfThatWasClaimedMeanwhileStaysWhenAForcedApplyIsTakenBack'),
    ('daemon/service/jobs/apply_recovery.cpp', 'vgpuctl plan FILE'):
        ('tests/unit/daemon/apply_recovery_test.cpp',
         'WhereOldAndNewWouldBothTakeAVfFromItsUserTheRestIsNotifiedAndNobodyDisturbed'),
    ('cli/diagnosis.cpp', 'vgpuctl set {} --name NEW'):
        ('tests/scenario/dbus/error_requests.cpp', 'raise_AmbiguousName'),
    ('cli/diagnosis.cpp', 'systemctl start vgpud'):
        ('tests/scenario/dbus/remedies_test.cpp', '&Remedies::no_vgpud'),
    ('cli/diagnosis.cpp', 'systemctl stop vgpud'):
        ('tests/scenario/dbus/remedies_test.cpp', '&Remedies::damaged_state'),
    ('cli/diagnosis.cpp', 'vgpud --recover-state'):
        ('tests/scenario/dbus/remedies_test.cpp', '&Remedies::damaged_state'),
    ('cli/diagnosis.cpp', 'systemctl restart vgpud'):
        ('tests/package/test_boot.py', 'systemctl restart vgpud'),
}
# Commands that need no row. Most only show something. remedies_test.cpp runs those of doctor's
# findings that repair something. No test machine has vgpu_pf in its kernel's directory: tests/host
# loads the module by its file.
NO_CURE = {
    'cli/diagnosis.cpp': {'vgpuctl list', 'vgpuctl events', 'vgpuctl report', 'vgpuctl doctor',
                          'vgpuctl show {}', 'systemctl status vgpud', 'journalctl -u vgpud',
                          'modprobe vgpu_pf'},
    # Loading a module of a vendor's card: no machine of the tests has one.
    'cli/vendor_checks.cpp': {'modprobe vfio-pci'},
    'cli/man_page.cpp': {'vgpuctl --manual'},
    'cli/bug_report.cpp': {'vgpuctl report'},
}


def strings_of(text):
    """The strings of a source; adjacent strings are joined."""
    text = re.sub(r'^\s*//.*$', '', text, flags=re.M)
    text = re.sub(r'"\s*\n\s*"', '', text)
    return [s.replace('\\n', '\n') for s in re.findall(r'"((?:[^"\\\n]|\\.)*)"', text)]


def commands_of(text):
    for string in strings_of(text):
        yield from re.findall(r"'((?:vgpuctl|vgpud|virsh|systemctl|journalctl|modprobe|dkms) [^'\n]+)'", string)


def rows(text):
    """The rows of the table: {(file, command)}"""
    found = set()
    for row in re.findall(r'\{"((?:cli|daemon)/[\w./]+)",\s*\{([^;]*?)\},\s*&Advice::', text):
        commands = re.sub(r'"\s*\n\s*"', '', row[1])
        found |= {(row[0], command) for command in re.findall(r'"([^"]+)"', commands)}
    return found


def complaints(files, text_of):
    table = rows(text_of(TABLE))
    found = set()
    for name in files:
        if not name.startswith(FOLDERS) or not name.endswith(('.cpp', '.c', '.h')):
            continue
        for command in commands_of(text_of(name)):
            found.add((name, command))
            if (name, command) not in table | ELSEWHERE.keys() \
                    and command not in NO_CURE.get(name, ()):
                yield f"{name}: '{command}' is recommended, and {TABLE} does not do it"
    for name, command in sorted((table | ELSEWHERE.keys()) - found):
        yield f"{TABLE}: {name} does not recommend '{command}'"
    for file, test in ELSEWHERE.values():
        if test not in text_of(file):
            yield f'tests/style/advice.py: there is no {test} in {file}'
