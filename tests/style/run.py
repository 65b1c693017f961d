#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Style as a test suite: each check_* function is one claim about the tree.

usage: tests/style/run.py [CHECK...]     without names: all of them
Every failure names the file, the line and what to do. Exit status 1 if a claim does not hold.
"""
import json
import os
import re
import subprocess
import sys

import advice
import dbus_page
import documentation
import names
import sizes
import terms

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CODE = ('.c', '.h', '.cpp', '.hpp')
GPL_AREAS = ('pf-driver/hw/', 'pf-driver/uapi/', 'pf-driver/process/', 'pf-driver/confine/', 'pf-driver/core/',
             'pf-driver/linux/', 'pf-driver/user/', 'tests/host/bridge/')

# What each layer may include besides itself (docs/architecture.md, dependency law).
LAYERS = {
    'pf-driver/hw': [],
    'pf-driver/uapi': [],
    'pf-driver/process': [],
    'pf-driver/confine': [],
    'pf-driver/core': ['pf-driver/hw', 'pf-driver/uapi'],
    'pf-driver/linux': ['pf-driver/core', 'pf-driver/hw', 'pf-driver/uapi'],
    'pf-driver/user': ['pf-driver/core', 'pf-driver/hw', 'pf-driver/uapi', 'pf-driver/process',
                       'pf-driver/confine'],
    'pf-driver/softgpu/base': ['pf-driver/hw', 'pf-driver/process'],
    'pf-driver/softgpu': ['pf-driver/hw', 'pf-driver/process', 'pf-driver/confine'],
    'text': [],
    'vf-agent': ['pf-driver/hw', 'pf-driver/uapi', 'pf-driver/process', 'text'],
    'daemon/ports': ['pf-driver/uapi', 'text'],
    'daemon/backend': ['daemon/ports', 'pf-driver/uapi', 'text'],
    'daemon/service': ['daemon/backend', 'daemon/ports', 'pf-driver/uapi', 'pf-driver/process', 'text'],
    'daemon/adapters': ['daemon/backend', 'daemon/ports', 'pf-driver/uapi', 'pf-driver/process', 'text'],
    'daemon/dbus': ['daemon/service', 'daemon/backend', 'daemon/ports', 'text'],
    'daemon/simulator': ['daemon/backend', 'daemon/ports', 'daemon/service', 'daemon/adapters', 'pf-driver/core',
                         'pf-driver/hw', 'pf-driver/uapi', 'text'],
    'daemon/libvirt': [],
    'daemon/exporter': ['daemon/adapters', 'daemon/ports', 'daemon/service', 'text'],
    'daemon/engines': ['daemon/adapters', 'daemon/ports', 'text'],
    'cli': ['daemon/exporter', 'daemon/simulator', 'text'],
}
# Inside softgpu: blocks a block may include; base and hw are free for all, gpu.* sees everything.
BLOCKS = {
    'vfio_user': [], 'pci': ['vfio_user'], 'host_view': ['pci', 'vfio_user'], 'regs': [], 'mem': ['regs'], 'isa': ['mem'],
    'ih': ['mem', 'regs'], 'psp': ['mem', 'regs', 'ih'], 'sdma': ['mem', 'regs', 'ih'],
    'video': ['mem', 'regs', 'ih'],
    'cp': ['mem', 'regs', 'isa', 'ih', 'sdma'], 'iov': ['regs', 'mem', 'pci', 'cp', 'ih'],
}

# Inside the PF core, from the bottom up: a folder includes itself and those before it.
CORE_FOLDERS = ['base', 'resource', 'run', 'vf', 'top']

# The same order inside vgpud's service; `words` and `manager` are files beside the folders.
SERVICE_ROOMS = ['words', 'scheduler', 'input', 'vf', 'slicing', 'config', 'state', 'views', 'trace',
                 'gpu', 'manager', 'owners', 'agents', 'jobs']


def tracked():
    out = subprocess.run(['git', '-C', ROOT, 'ls-files', '-co', '--exclude-standard'],
                         capture_output=True, text=True, check=True).stdout.split('\n')
    return sorted(f for f in out if f and os.path.isfile(os.path.join(ROOT, f)))


def text_of(name):
    with open(os.path.join(ROOT, name), encoding='utf-8', errors='replace') as f:
        return f.read()


def layer_of(path):
    fits = [a for a in LAYERS if path.startswith(a + '/')]
    return max(fits, key=len) if fits else None


def includes_of(name):
    for number, line in enumerate(text_of(name).split('\n'), 1):
        m = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if m:
            yield number, m.group(1)


def allowed(layer, target):
    """True if a file of `layer` may include a file of layer `target`."""
    if layer == target or target in LAYERS[layer]:
        return True
    softgpu = 'pf-driver/softgpu'
    return layer.startswith(softgpu) and target.startswith(softgpu)


def check_include_arrows(files):
    """Includes follow the dependency law and are written from the root."""
    for name in files:
        layer = layer_of(name)
        if not name.endswith(CODE) or layer is None:
            continue
        for number, target in includes_of(name):
            to = layer_of(target)
            if to and not allowed(layer, to):
                yield f'{name}:{number}: {layer} must not include {target} ({to})'
            if not os.path.isfile(os.path.join(ROOT, target)) and '/' in target and to:
                yield f'{name}:{number}: no such file from the root: {target}'


def check_softgpu_blocks(files):
    """Blocks of softgpu include only the blocks below them; isa never includes cp."""
    pattern = re.compile(r'pf-driver/softgpu/(\w+)/')
    for name in files:
        m = pattern.match(name)
        if not m or m.group(1) not in BLOCKS:
            continue
        for number, target in includes_of(name):
            to = pattern.match(target)
            if to and to.group(1) not in ('base', m.group(1), *BLOCKS[m.group(1)]):
                yield f'{name}:{number}: block {m.group(1)} must not include {to.group(1)}'


def check_spdx(files):
    """Every source file opens with its SPDX line; kernel-bound areas are dual licensed."""
    kinds = CODE + ('.def', '.cmake', '.sh', '.py', '.cl')
    for name in files:
        if not name.endswith(kinds) and os.path.basename(name) != 'CMakeLists.txt':
            continue
        head = '\n'.join(text_of(name).split('\n')[:3])
        want = 'GPL-2.0-only OR MIT' if name.startswith(GPL_AREAS) and name.endswith(
            CODE + ('.def',)) else 'MIT'
        if not re.search(r'SPDX-License-Identifier: ' + re.escape(want) + r'( \*/)?$', head, re.M):
            yield f'{name}:1: wants the line "SPDX-License-Identifier: {want}"'


def rows(name):
    """(line number, macro, [arguments]) of each row of a .def file."""
    for number, line in enumerate(text_of(name).split('\n'), 1):
        m = re.match(r'([A-Z][A-Z0-9_]*)\((.*)\)\s*$', line)
        if m:
            yield number, m.group(1), [a.strip() for a in re.split(r',\s*(?=(?:[^"]*"[^"]*")*[^"]*$)',
                                                                   m.group(2))]


# file: (columns that must be unique together, column to be sorted by or None), per macro
DEF_RULES = {
    'pf-driver/hw/regs.def': {'REG': ((0, 1), 2), 'REG_ARRAY': ((0, 1), 2)},
    'pf-driver/hw/fields.def': {'FIELD': ((0, 1), None)},
    'pf-driver/hw/pm4.def': {'PM4': ((0,), 1)},
    'pf-driver/hw/sdma.def': {'SDMA': ((0,), 1)},
    'pf-driver/hw/mmsch.def': {'MMSCH': ((0,), 1)}, 'pf-driver/hw/video.def': {'VIDEO': ((0,), 1)},
    'pf-driver/hw/mailbox.def': {'MAILBOX_TO_PF': ((0,), 1), 'MAILBOX_TO_VF': ((0,), 1)},
}


def check_def_rows(files):
    """Rows of hw/*.def are unique, sorted and documented."""
    for name, rules in DEF_RULES.items():
        seen, last = {}, {}
        for number, macro, args in rows(name):
            if macro not in rules:
                continue
            unique, order = rules[macro]
            key = (macro,) + tuple(args[i] for i in unique)
            if key in seen:
                yield f'{name}:{number}: same row as line {seen[key]}'
            seen[key] = number
            if not re.fullmatch(r'"[^"]+"', args[-1]):
                yield f'{name}:{number}: the last column must document the row'
            if order is None:
                continue
            value = int(args[order], 0)
            if value < last.get(macro, -1):
                yield f'{name}:{number}: out of order (0x{value:x} after 0x{last[macro]:x})'
            last[macro] = value


def check_def_overlap(files):
    """No two rows of regs.def claim one register."""
    owner = {}
    for number, macro, args in rows('pf-driver/hw/regs.def'):
        offset, count, stride = int(args[2], 0), 1, 1
        if macro == 'REG_ARRAY':
            count, stride = int(args[3]), int(args[4], 0)
        for i in range(count):
            at = offset + i * stride
            if at in owner:
                yield f'pf-driver/hw/regs.def:{number}: 0x{at:x} is also in line {owner[at]}'
            owner[at] = number


def check_fields_fit(files):
    """Fields of one register or dword do not overlap without need and fit 32 bits."""
    for number, macro, args in rows('pf-driver/hw/fields.def'):
        first, count = int(args[2]), int(args[3])
        if count < 1 or first + count > 32:
            yield f'pf-driver/hw/fields.def:{number}: bits {first}+{count} leave the dword'


def check_formatting(files):
    """C and C++ sources are what clang-format-14 would write."""
    code = [f for f in files if f.endswith(CODE)]
    for i in range(0, len(code), 64):
        run = subprocess.run(['clang-format-14', '--dry-run', '--ferror-limit=1'] + code[i:i + 64],
                             cwd=ROOT, capture_output=True, text=True)
        for m in re.finditer(r'^(\S+?):(\d+):\d+: (?:warning|error)', run.stderr, re.M):
            yield f'{m.group(1)}:{m.group(2)}: not formatted; run clang-format-14 -i {m.group(1)}'


def check_line_length(files):
    """No line of code is longer than 100 columns."""
    for name in files:
        if not name.endswith(CODE):
            continue
        for number, line in enumerate(text_of(name).split('\n'), 1):
            if len(line.expandtabs(8)) > 100:
                yield f'{name}:{number}: {len(line.expandtabs(8))} columns'


def check_columns_of_documents(files):
    """Text of documents has at most 100 columns (not tables and blocks)."""
    for name in files:
        if not name.endswith('.md') or name == 'docs/changelog.md':
            continue
        is_block = False
        for number, line in enumerate(text_of(name).split('\n'), 1):
            is_block ^= line.lstrip().startswith('```')
            if not is_block and not line.startswith('|') and len(line) > 100:
                yield f'{name}:{number}: {len(line)} columns; break the line'


def check_magic_cases(files):
    """Numbers of the hardware stand in hw/ and isa/ops only."""
    for name in files:
        if not name.endswith(CODE) or name.startswith(('tests/', 'pf-driver/hw/')):
            continue
        for number, line in enumerate(text_of(name).split('\n'), 1):
            if re.match(r'\s*case (0x[0-9a-fA-F]+|\d{2,})\s*:', line):
                yield f'{name}:{number}: a number in a case label; give it a name in hw/'


def check_no_reinterpret_cast(files):
    """reinterpret_cast stays in base/bits.h."""
    for name in files:
        if name.endswith(CODE) and not name.endswith('base/bits.h'):
            for number, line in enumerate(text_of(name).split('\n'), 1):
                if 'reinterpret_cast' in line:
                    yield f'{name}:{number}: use load/store/bytes_of of base/bits.h'


def check_no_hosts_or_paths(files):
    """No package mirror's host name and no path of one machine is written down."""
    host = re.compile(r'https?://(?!www\.debian\.org/doc/)[\w.-]*(debian\.(org|net)|ubuntu\.com|nodesource|mirror)')
    path = re.compile(r'(?<![\w$}])/(work|root|home/\w+)/')
    for name in files:
        if name.startswith('tests/style/') or name.endswith(('.svg', '.png')):
            continue
        for number, line in enumerate(text_of(name).split('\n'), 1):
            if host.search(line):
                yield f'{name}:{number}: a mirror host name; derive it from apt'
            if path.search(line):
                yield f'{name}:{number}: a path of one machine'


def check_names_exist(files):
    """Functions, constants and files that comments and documents name are in the tree."""
    yield from names.complaints(files, text_of)


def check_terms(files):
    """Public names use the glossary's terms, and no name uses an earlier one."""
    yield from terms.complaints(files, text_of)


def check_todo_reason(files):
    """A TODO says why it is there."""
    for name in files:
        if not name.endswith(CODE + ('.py', '.sh')) or name.startswith('tests/style/'):
            continue
        for number, line in enumerate(text_of(name).split('\n'), 1):
            if re.search(r'\b(TODO|FIXME|XXX|HACK)\b(?!.{12,})', line):
                yield f'{name}:{number}: a TODO without its reason'


def check_header_story(files):
    """Each header of the product opens with what it is and who calls it."""
    for name in files:
        if not name.endswith('.h') or name.startswith('tests/'):
            continue
        comment = 0
        for line in text_of(name).split('\n')[1:16]:
            if re.match(r'\s*(//|/\*|\*)', line) and len(line.strip()) > 4:
                comment += 1
        if comment < 2:
            yield f'{name}:1: open with 3-15 lines: what this is, how it fits, who calls it'


def check_hardware_contract(files):
    """Registers, fields and numbers that docs/hardware-contract.md names stand in pf-driver/hw."""
    page = 'docs/hardware-contract.md'
    sources = '\n'.join(text_of(f) for f in files
                        if f.startswith('pf-driver/hw/') and f.endswith(('.h', '.def')))
    known = set(re.findall(r'[A-Za-z_][A-Za-z0-9_]*', sources))
    # without its prefixes, too
    known |= {name[at.end():] for name in known for at in re.finditer('_', name)}
    numbers = {int(n, 16) for n in re.findall(r'\b0x([0-9a-fA-F]+)', sources)}
    for number, line in enumerate(text_of(page).split('\n'), 1):
        for quoted in re.findall(r'`([A-Z][A-Z0-9_]*(?:\.[A-Z_]+)?)`', line):
            for name in quoted.split('.'):
                if name not in known:
                    yield f'{page}:{number}: {name} is not in pf-driver/hw'
        hexes = re.findall(r'\b0x([0-9a-f]+)\b', line)
        for pair in re.findall(r'\b([0-9a-f]{4}):([0-9a-f]{4})\b', line):
            hexes += pair
        for value in hexes:
            if int(value, 16) not in numbers:
                yield f'{page}:{number}: 0x{value} is not in pf-driver/hw'


def against_order(files, area, order):
    """Includes of what comes later in `order`: folders of `area`, and files beside them by their stems.

    A file beside the folders that is not in `order` may be included by all.
    """
    pattern = re.compile(re.escape(area) + r'/(?:(\w+)/|(\w+)\.)')

    def place(path):
        m = pattern.match(path)
        folder, stem = m.groups() if m else (None, None)
        return folder or (stem if stem in order else None)

    for name in files:
        part = place(name) if name.endswith(CODE) else None
        if part and part not in order:
            yield f'{name}: {area}/{part} has no place in the order of tests/style/run.py'
            continue
        for number, target in includes_of(name) if part else ():
            to = place(target)
            if to in order and order.index(to) > order.index(part):
                yield f'{name}:{number}: {area}/{part} must not include {area}/{to}'


def check_core_direction(files):
    """Folders of the PF core include only those below them; all may include state.h and pf.h."""
    yield from against_order(files, 'pf-driver/core', CORE_FOLDERS)


def check_service_direction(files):
    """Rooms of vgpud's service include only those below them."""
    yield from against_order(files, 'daemon/service', SERVICE_ROOMS)


def check_core_scheduler_is_private(files):
    """Only core/run uses the scheduler's state; all other code uses core/run/parts.h."""
    for name in files:
        if not name.endswith(CODE) or not name.startswith(('pf-driver/', 'daemon/simulator/')):
            continue
        is_inside = name.startswith('pf-driver/core/run/')
        for number, line in enumerate(text_of(name).split('\n'), 1):
            if not is_inside and re.search(r'\bpf\w*(->|\.)executor\b|core/run/internal\.h', line):
                yield f'{name}:{number}: the state of core/run is private'


def check_folder_pages(files):
    """The README.md of a source folder names each source file beside it; the core's, below it, too."""
    for page in files:
        folder = os.path.dirname(page)
        if os.path.basename(page) != 'README.md' or not folder or folder.startswith('tests/'):
            continue
        named = {os.path.splitext(n)[0] for n in re.findall(r'`([\w./]+)`', text_of(page))}
        for name in files:
            inside = name.removeprefix(f'{folder}/')
            if inside == name or not name.endswith(CODE + ('.def',)) or \
                    ('/' in inside and folder != 'pf-driver/core'):
                continue
            if os.path.splitext(inside)[0] not in named:
                yield f'{page}: does not name {inside}'


def check_data_walks(files):
    """docs/architecture.md has four walks through the code; the files that it names exist."""
    page = 'docs/architecture.md'
    walks = text_of(page).split('## Four walks through the code\n')[-1].split('\n## ')[0]
    sections = re.split(r'^### ', walks, flags=re.M)[1:]
    if len(sections) != 4:
        yield f'{page}: {len(sections)} walks; a packet, a memory access, a switch and a request are 4'
    for section in sections:
        title = section.split('\n')[0]
        steps = re.findall(r'^\d+\. (`?)([^`]*)', section, re.M)
        for quote, name in steps:
            if not quote:
                yield f'{page}: "{title}": a step begins with the name of its file: {name[:40]}'
    for name in re.findall(r'`((?:pf-driver|daemon)/[\w./-]+)`', text_of(page)):
        if not os.path.exists(os.path.join(ROOT, name)):
            yield f'{page}: there is no {name}'


def check_sizes(files):
    """Files have at most 600 lines and functions at most 40, tests included."""
    for name in files:
        if name.endswith(CODE):
            yield from sizes.complaints(name, text_of(name))


def check_advice(files):
    """A test runs every command that a string recommends, in the state that it is for."""
    yield from advice.complaints(files, text_of)


def check_dbus_page(files):
    """docs/dbus-api.md has every method, signal, property and option of vgpud, and no other."""
    yield from dbus_page.complaints()


def check_events(files):
    """Every kind of event is in the table of dbus-api.md, is reported by vgpud, and is expected by a test."""
    events, page = 'schemas/events.def', text_of('docs/dbus-api.md')
    code, tests = ('\n'.join(text_of(f) for f in files if f.startswith(top) and f.endswith(('.cpp', '.py')))
                   for top in ('daemon/service/', 'tests/'))
    kinds = []
    for number, _, (name, kind, severity, cause, meaning) in rows(events):
        kinds.append(kind.strip('"'))
        where = f'{events}:{number}: {kinds[-1]}'
        if f'| `{kinds[-1]}` | {severity.lower()} | {cause.lower()} | {meaning[1:-1]} |' not in page:
            yield f'{where}: not so in the table of docs/dbus-api.md'
        if f'EventKind::{name}' not in code:
            yield f'{where}: vgpud does not report it'
        if not re.search(rf'EventKind::{name}\b|["\']{kinds[-1]}["\']', tests):
            yield f'{where}: no test expects it'
    if kinds != sorted(set(kinds)):
        yield f'{events}: kinds are not unique and sorted'


# Texts that match warnings of other drivers and of the kernel itself.
KERNELS_WORDS = re.compile(r'pci_pm|FLR|config space|pending transaction|failed to|probe|already enabled|'
                           r'released by user')


def check_expected_warnings(files):
    """Every warning that a test of the module expects is one that the PF driver prints."""
    driver = '\n'.join(text_of(f) for f in files if f.startswith('pf-driver/') and f.endswith(('.c', '.h')))
    for name in files:
        if not re.match(r'tests/host/\w+\.py$', name):
            continue
        for block in re.findall(r'expected_warnings = (.*?\),?\))$', text_of(name), re.M | re.S):
            for pattern in re.findall(r"r'([^']*)'", block):
                for part in re.split(r'\|(?![^(]*\))', pattern):
                    words = max(re.split(r'\\.\+?|[$.*+()\[\]|]', part), key=len).strip(' :')
                    words = re.sub(r'^\w*\d\S* | \d ->$', '', words)
                    if words not in driver and not KERNELS_WORDS.search(part):
                        yield f'{name}: the PF driver does not print "{words}"'


def check_spelling(files):
    """No word of the tree is one of codespell's common errors."""
    yield from documentation.spelling(ROOT, files)


def check_kernel_doc(files):
    """The kernel's script kernel-doc has nothing to say about the headers of uapi and PF core."""
    yield from documentation.kernel_doc(ROOT, files)


def check_vgpud_configuration(files):
    """Documents name every key of vgpud's configuration; install.md keeps the shipped `libvirt`."""
    schema, install = 'schemas/vgpud-config.schema.json', 'docs/install.md'
    text = '\n'.join(text_of(f) for f in files
                     if f.startswith('docs/') and f.endswith('.md') and f != 'docs/changelog.md')
    for key in json.loads(text_of(schema))['properties']:
        if f'`{key}`' not in text and f'"{key}"' not in text:
            yield f'{schema}: no document names the key {key}'
    shipped = json.loads(text_of('daemon/data/vgpud.json'))
    written = re.findall(r"^echo '(.*)' >/etc/vgpu/vgpud\.json$", text_of(install), re.M)
    if not written:
        yield f'{install}: no configuration is written to /etc/vgpu/vgpud.json'
    for configuration in written:
        if json.loads(configuration).get('libvirt') != shipped['libvirt']:
            yield f'{install}: {configuration} has another libvirt than daemon/data/vgpud.json'


def anchors_of(text):
    """The anchors that a reader of Markdown makes of the headings."""
    heads = re.findall(r'^#+ (.*)$', text, re.M)
    return {re.sub(r'[^\w -]', '', head.lower()).replace(' ', '-') for head in heads}


def check_markdown_links(files):
    """Links between documents lead to a file, and to a heading of it."""
    for name in files:
        if not name.endswith('.md'):
            continue
        for path, anchor in re.findall(r'\]\(([^)#:]*)(?:#([^)]*))?\)', text_of(name)):
            target = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
            if not os.path.exists(os.path.join(ROOT, target)):
                yield f'{name}: dead link {path}'
            elif anchor and target.endswith('.md') and anchor not in anchors_of(text_of(target)):
                yield f'{name}: {target} has no heading #{anchor}'


DOCUMENT_KINDS = ['Tutorial', 'How-to', 'Reference', 'Explanation']


def check_documents_are_listed(files):
    """docs/README.md lists every page of docs/ under exactly one kind of document."""
    page = 'docs/README.md'
    kind, kinds_of = None, {}
    for line in text_of(page).split('\n'):
        if line.startswith('## '):
            kind = line[3:]
        elif kind and line.startswith('|'):
            for name in re.findall(r'\]\(([\w-]+\.md)\)', line):
                kinds_of.setdefault(name, []).append(kind)
    for kind in sorted({kind for kinds in kinds_of.values() for kind in kinds} - set(DOCUMENT_KINDS)):
        yield f'{page}: "{kind}" is not a kind of document; there are: {", ".join(DOCUMENT_KINDS)}'
    for name in files:
        listed = kinds_of.get(os.path.basename(name), [])
        if re.fullmatch(r'docs/[\w-]+\.md', name) and name != page and len(listed) != 1:
            yield f'{name}: in {len(listed)} lists of {page}; add it to one'


def check_pains_have_tests(files):
    """Every problem in docs/pains.md names tests, and they exist."""
    known = set()
    for name in files:
        if name.startswith('tests/') and name.endswith('_test.cpp'):
            known |= {f'{suite}.{test}' for suite, test in
                      re.findall(r'^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)', text_of(name), re.M)}
    rows = re.findall(r'^\| (?!problem |---)(.*) \|$', text_of('docs/pains.md'), re.M)
    for row in rows:
        tests = re.findall(r'`(\w+\.\w+)`', row.split(' | ')[-1])
        if not tests:
            yield f'docs/pains.md: no test is named for: {row.split(" | ")[0]}'
        for test in tests:
            if test not in known:
                yield f'docs/pains.md: there is no test {test}'
    if len(rows) < 7:
        yield 'docs/pains.md: fewer than 7 problems'


def check_json_parses(files):
    """Every JSON file parses."""
    for name in files:
        if name.endswith('.json') and '/invalid/' not in name:
            try:
                json.loads(text_of(name))
            except ValueError as error:
                yield f'{name}: {error}'


def check_scripts_parse(files):
    """Every Python file and every shell script parses, also those of levels outside the gate."""
    for name in files:
        if name.endswith('.py'):
            try:
                compile(text_of(name), name, 'exec')
            except SyntaxError as error:
                yield f'{name}:{error.lineno}: {error.msg}'
        elif re.match(r'#!.*\b(ba)?sh\b', text_of(name)):
            done = subprocess.run(['bash', '-n', name], capture_output=True, text=True)
            if done.returncode:
                yield f'{name}: {done.stderr.strip()}'


def check_pages_are_packaged(files):
    """Every manual page that is built is in a package (the packages themselves take long to build)."""
    packaged = {line for name in files if name.startswith('debian/') and name.endswith('.install')
                for line in text_of(name).splitlines()}
    for name in files:
        if not name.endswith('CMakeLists.txt'):
            continue
        for page, section in re.findall(r'^vgpu_man_page\((\S+) (\d)', text_of(name), re.M):
            path = f'usr/share/man/man{section}/{page}.{section}'
            if path not in packaged:
                yield f'{name}: {path} is in no debian/*.install'


def check_folders(files):
    """Only the folders of docs/architecture.md exist at the top."""
    known = {'pf-driver', 'vf-agent', 'daemon', 'cli', 'schemas', 'tests', 'docs', 'cmake',
             'debian', 'text', '.ci'}
    for top in sorted({f.split('/')[0] for f in files if '/' in f}):
        if top not in known:
            yield f'{top}/: no such folder in the layout'
    for name in files:
        if re.search(r'(^|/)(utils|helpers|common|misc|third_party)(/|\.)', name):
            yield f'{name}: name the file after its noun'


def main(wanted):
    files = tracked()
    checks = {n[6:]: f for n, f in globals().items() if n.startswith('check_')}
    unknown = [n for n in wanted if n not in checks]
    if unknown:
        sys.exit(f'run.py: no check {unknown[0]}; there are: {" ".join(sorted(checks))}')
    failed = 0
    for name in wanted or checks:
        try:
            complaints = list(checks[name](files))
        except documentation.Skipped as reason:
            print(f'skip {name}: {reason}')
            continue
        print(f'{"FAIL" if complaints else "ok  "} {name}: {checks[name].__doc__}')
        for line in complaints[:40]:
            print('     ' + line)
        if len(complaints) > 40:
            print(f'     … and {len(complaints) - 40} more')
        failed += bool(complaints)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
