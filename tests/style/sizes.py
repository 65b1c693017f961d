# SPDX-License-Identifier: MIT
"""Checks how long files and functions of C and C++ are.

It finds functions by their shape, which clang-format keeps: the head begins in the column in which
the closing brace stands alone. Lambdas and blocks inside of a function count as part of it.
"""
import re

MOST_LINES_OF_FILE = 600
MOST_LINES_OF_FUNCTION = 40

# Files and functions that are longer and may not grow. Remove an entry when its file is split.
LONGER = {
    # These are being restructured as a family: one machine in core/run, one VF in softgpu's root,
    # folders instead of one GpuModel.
    'daemon/service/gpu/host.cpp:GpuHost::iterate': 44,
    'daemon/service/slicing/gpu_schedule.cpp:GpuSchedule::ideal_share': 56,
    # kernel-doc: one line for each member, in the one file that clients copy.
    'pf-driver/uapi/vgpu_pf.h': 749,
    # Tables of data: one row a line.
    'tests/scenario/gpu/boot_order.cpp:boot_milestones': 46,
    'tests/unit/cli/fake_service.h:vf_properties': 66,
    'tests/unit/isa/reference_vector.cpp': 647,
    # One noun or one job with a few lines too many.
    'tests/bench/operator_figures.cpp:run': 56,
    'tests/guest/programs/enqueue.c:main': 47,
    'tests/guest/programs/opencl.c:main': 82,
    'tests/unit/cp/cp_rig.cpp:CpRig::run_list': 41,
    'tests/unit/isa/encoding_test.cpp:words_for': 52,
    'tests/scenario/dbus/polkit_test.cpp:Polkit.TextsWithoutEndAreRefusedBeforeAPersonIsAsked': 43,
    'tests/unit/core/run_contract_test.cpp:Contracts.AnyMixtureKeepsTheEngineAtWork': 46,
    'tests/unit/core/run_contract_test.cpp:Reservation.ManyServersMeetTheirDeadlinesUpToNineTenthsOfTheEngine': 46,
    'tests/unit/cp/remap_test.cpp:Remap.GoesOnWhereItWas': 53,
    'tests/unit/cp/scheduler_test.cpp:Scheduler.KernelsOfProcessesThatTakeTurnsAreBitExact': 46,
    'tests/unit/isa/semantics_test.cpp:Semantics.ShiftsAndFieldsOnEdgeValues': 46,
    'tests/unit/isa/semantics_test.cpp:Semantics.DivisionSequenceGivesTheRoundedQuotient': 55,
}

OPENING = re.compile(r'^(\s*)(?!\s|//|\*|/\*|#)(.*?)\{(\s*//.*)?$')
NO_FUNCTION = re.compile(
    r'^\s*(namespace|extern(?! "C" \w)|class|struct|union|enum|if|else|for|while|switch|do|case|default|try|'
    r'return|using|typedef|INSTANTIATE_TEST_SUITE_P|template\s*<[^()]*>\s*(class|struct))\b|[^=!<>]=[^=]|^\W*$')
NAME = re.compile(r'([\w:~]+|operator\W+)\s*\(')


def head_of(lines, number):
    """The line in which the statement begins that opens a brace in line `number`."""
    indent = len(lines[number]) - len(lines[number].lstrip())
    first = number
    while first > 0 and lines[first - 1].strip() and re.search(r'[,(&|:]$|\)$|\w$|>$', lines[first - 1].rstrip()) \
            and not lines[first - 1].lstrip().startswith(('//', '#', '*', '/*', 'public:', 'private:', 'protected:')):
        first -= 1
        if len(lines[first]) - len(lines[first].lstrip()) < indent:
            indent = len(lines[first]) - len(lines[first].lstrip())
    return first, indent


def functions(text):
    """(name, first line, lines) of each function that is defined in `text`."""
    lines = text.expandtabs(8).split('\n')
    number = 0
    while number < len(lines):
        if not lines[number].rstrip().endswith('{') or not OPENING.match(lines[number]):
            number += 1
            continue
        first, indent = head_of(lines, number)
        head = ' '.join(line.strip() for line in lines[first:number + 1])
        name = NAME.search(re.sub(r'\b(alignas|__attribute__|noexcept|requires)\s*\(\(?[^()]*\)?\)', '', head))
        if NO_FUNCTION.search(head.split('(')[0]) or not name:
            number += 1
            continue
        end = number
        closing = ' ' * indent + '}'
        while end + 1 < len(lines) and lines[end].rstrip() not in (closing, closing + ';'):
            end += 1
        test = re.match(r'TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)', head)
        yield '.'.join(test.groups()) if test else name.group(1), first + 1, end - first + 1
        number = end + 1


def complaints(name, text):
    """Files and functions of `name` that are too long, and its unused entries of LONGER."""
    unused = {key for key in LONGER if key.split(':')[0] == name}

    def is_too_long(key, lines, most):
        if lines > most:
            unused.discard(key)
        return lines > LONGER.get(key, most)

    lines = text.count('\n')
    if is_too_long(name, lines, MOST_LINES_OF_FILE):
        yield f'{name}: {lines} lines; more than {MOST_LINES_OF_FILE} are two nouns: split it'
    for function, first, count in functions(text):
        if is_too_long(f'{name}:{function}', count, MOST_LINES_OF_FUNCTION):
            yield (f'{name}:{first}: {function} has {count} lines; more than '
                   f'{MOST_LINES_OF_FUNCTION} are two jobs: split it')
    for key in sorted(unused):
        yield f'tests/style/sizes.py: {key} is short enough now; take its entry out'
