#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares docs/dbus-api.md with the interfaces. Its tables of methods, signals and properties come
from the XML of schemas/dbus; options are compared with the lists that vgpud checks requests with.

usage: tests/style/dbus_page.py --write     writes the tables from the XML into the page
"""
import glob
import os
import re
import sys
import xml.etree.ElementTree as ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = 'docs/dbus-api.md'
EMITS = 'org.freedesktop.DBus.Property.EmitsChangedSignal'
CHANGES = {'true': 'signalled', 'false': 'read it', 'const': 'never'}

# Where vgpud checks the options of a method: file, function or constant, and SETTINGS if the method
# also takes the settings of a VF.
SETTINGS = 'settings'
OPTION_LISTS = {
    'Manager.CreateVf': ('daemon/service/manager.cpp', 'create_request', SETTINGS),
    'Manager.ListVfs': ('daemon/dbus/objects.cpp', 'vfs_to_list'),
    'Manager.ListGpus': ('daemon/dbus/objects.cpp', 'gpus_to_list'),
    'Manager.Capacity': ('daemon/dbus/objects.cpp', 'ManagerObject::Capacity'),
    'Manager.Resolve': ('daemon/dbus/objects.cpp', 'ManagerObject::Resolve'),
    'Manager.RecentEvents': ('daemon/dbus/objects.cpp', 'event_query'),
    'Manager.Plan': ('daemon/service/jobs/jobs.cpp', 'Jobs::plan'),
    'Manager.Apply': ('daemon/service/jobs/jobs.cpp', 'Jobs::apply'),
    'Manager.Export': ('daemon/service/jobs/jobs.cpp', 'Jobs::export_document'),
    'Manager.AutoConfig': ('daemon/service/jobs/jobs.cpp', 'Jobs::automatic_document'),
    'Manager.Assign': ('daemon/service/owners/assignments.cpp', 'Assignments::assign'),
    'Manager.Grant': ('daemon/service/owners/assignments.cpp', 'Assignments::grant'),
    'Manager.Unassign': ('daemon/service/owners/assignments.cpp', 'Assignments::unassign'),
    'Manager.Adopt': ('daemon/service/owners/assignments.cpp', 'Assignments::adopt'),
    'Gpu.Set': ('daemon/service/manager.cpp', 'Manager::set_gpu'),
    'Gpu.Dump': ('daemon/dbus/gpu_object.cpp', 'GpuObject::Dump'),
    'Gpu.GetRunTable': ('daemon/dbus/gpu_object.cpp', 'GpuObject::GetRunTable'),
    'Gpu.ReadTrace': ('daemon/dbus/gpu_object.cpp', 'GpuObject::ReadTrace'),
    'Job.Cancel': ('daemon/dbus/job_object.cpp', 'JobObject::Cancel'),
    'Vf.Set': ('daemon/service/manager.cpp', 'Manager::set_vf', SETTINGS),
    'Vf.Destroy': ('daemon/service/manager.cpp', 'Manager::destroy'),
    'Vf.Claim': ('daemon/service/manager.cpp', 'Manager::claim'),
    'Vf.Release': ('daemon/service/manager.cpp', 'Manager::release'),
}
OPTION_LISTS.update({f'Vf.{name}': ('daemon/service/manager.cpp', names)
                     for name, names in (('Pause', 'kStopOptions'), ('Stop', 'kStopOptions'),
                                         ('Reset', 'kResetOptions'), ('Resume', 'kNoOptions'),
                                         ('ClearQuarantine', 'kNoOptions'))})
OPTION_LISTS.update({f'Vf.{name}': ('daemon/service/agents/agents.cpp', 'Agents::ask')
                     for name in ('SelfTest', 'Quiesce', 'Thaw')})


def text_of(name):
    with open(os.path.join(ROOT, name), encoding='utf-8') as f:
        return f.read()


# --- the XML

class Interface:
    """One interface with its members in the order of the file, each with the comment before it."""

    def __init__(self, element):
        self.name = element.get('name')
        self.methods, self.signals, self.properties = [], [], []
        lists = {'method': self.methods, 'signal': self.signals, 'property': self.properties}
        comment = ''
        for child in element:
            if child.tag is ElementTree.Comment:
                comment = ' '.join(child.text.split())
                continue
            lists[child.tag].append((child, comment))
            comment = ''


def interfaces():
    found = []
    for path in sorted(glob.glob(os.path.join(ROOT, 'schemas/dbus/*.xml'))):
        parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
        found += [Interface(e) for e in ElementTree.parse(path, parser).getroot()
                  if e.tag == 'interface']
    return found


def arguments(member, directions):
    return ', '.join(f'`{arg.get("name")}` {arg.get("type")}' for arg in member.findall('arg')
                     if arg.get('direction') in directions)


def change_of(member):
    for annotation in member.findall('annotation'):
        if annotation.get('name') == EMITS:
            return CHANGES[annotation.get('value')]
    return CHANGES['true']


def cell(comment):
    """A comment as a cell of a table: without '|' and the full stop of a single sentence."""
    text = comment.replace(' | ', ' / ')
    return text[:-1] if text.endswith('.') and '. ' not in text else text


def table(head, rows):
    if not rows:
        return []
    lines = ['| ' + ' | '.join(head) + ' |', '|' + '---|' * len(head)]
    return lines + ['| ' + ' | '.join(row) + ' |' for row in rows] + ['']


def section_of(interface):
    """The text for the page between the marks of this interface."""
    lines = table(('method', 'arguments', 'returns'),
                  [(f'`{m.get("name")}`', arguments(m, ('in',)), arguments(m, ('out',)) or '–')
                   for m, _ in interface.methods])
    lines += table(('signal', 'arguments', 'meaning'),
                   [(f'`{m.get("name")}`', arguments(m, (None, 'out')), cell(comment))
                    for m, comment in interface.signals])
    lines += table(('property', 'type', 'changes', 'meaning'),
                   [(f'`{p.get("name")}`', p.get('type') + (' (may be written)' if
                                                            p.get('access') != 'read' else ''),
                     change_of(p), cell(comment)) for p, comment in interface.properties])
    return '\n' + '\n'.join(lines) + '\n'


def marks(interface):
    return f'<!-- from the XML: {interface.name} -->\n', f'<!-- end of {interface.name} -->\n'


def sections_in(page, interface):
    """(begin, end) of the text between the marks; None if they are not there."""
    first, last = marks(interface)
    begin, end = page.find(first), page.find(last)
    return None if begin < 0 or end < begin else (begin + len(first), end)


def complaints_about_xml():
    page = text_of(PAGE)
    for interface in interfaces():
        for member, comment in interface.signals + interface.properties:
            if not comment:
                yield f'schemas/dbus/{interface.name}.xml: {member.get("name")} says nothing of itself'
        place = sections_in(page, interface)
        if place is None:
            yield f'{PAGE}: no tables of {interface.name} between its marks'
        elif page[place[0]:place[1]] != section_of(interface):
            yield (f'{PAGE}: tables of {interface.name} are not those of its XML; '
                   'run tests/style/dbus_page.py --write')
    known = {interface.name for interface in interfaces()}
    for name in re.findall(r'<!-- from the XML: (\S+) -->', page):
        if name not in known:
            yield f'{PAGE}: there is no XML of {name}'


# --- options

def quoted(text):
    return re.findall(r'"([a-z_]+)"', text)


def setting_names():
    return re.findall(r'^VF_\w+\((\w+),', text_of('schemas/vf_settings.def'), re.M)


def checked_options(method):
    """Names that vgpud accepts as options of `method`; None if the list is not found."""
    name, function, *takes_settings = OPTION_LISTS[method]
    constant = re.search(r'\b' + function + r'\{(.*?)\};', text_of(name), re.S)
    if constant is not None:
        return quoted(constant.group(1))
    body = re.search(r'^[^\n/]*(?<![\w:])' + re.escape(function) + r'\([^;{]*\{\n(.*?)^\}', text_of(name),
                     re.S | re.M)
    if body is None:
        return None
    found = re.search(r'kKnown\{(.*?)\}', body.group(1), re.S) or \
        re.search(r'only\((?:std::array<std::string_view, \d+>)?\{(.*?)\}\)', body.group(1), re.S)
    if found is None:
        return None
    names = quoted(found.group(1))
    return names + (setting_names() if takes_settings else [])


def documented_options(page):
    """{method: options} of the tables with methods in the first, options in the last column."""
    found = {}
    for line in page.split('\n'):
        row = re.match(r'\| ((?:`(?:Manager|Gpu|Job|Vf)\.\w+[^`]*`(?:, )?)+) \|.*\| (.*) \|$', line)
        if row is None:
            continue
        names = re.findall(r'`([a-z_]+)` [a-z]\b', row.group(2))
        for method in re.findall(r'`((?:Manager|Gpu|Job|Vf)\.\w+)', row.group(1)):
            found[method] = names
            if 'as for `Vf.Set`' in row.group(2):
                found[method] = names + setting_names()
    return found


def complaints_about_options():
    documented = documented_options(text_of(PAGE))
    known = {f'{i.name.split(".")[-1]}.{m.get("name")}' for i in interfaces() for m, _ in i.methods}
    for method in sorted(known | set(documented) | set(OPTION_LISTS)):
        if method not in known:
            yield f'{PAGE}: {method} is no method of the XML'
        elif method not in documented:
            yield f'{PAGE}: no table tells the options of {method}'
        elif method not in OPTION_LISTS or checked_options(method) is None:
            yield f'tests/style/dbus_page.py: where are the options of {method} checked?'
        elif set(documented[method]) != set(checked_options(method)):
            differ = set(documented[method]) ^ set(checked_options(method))
            yield f'{PAGE}: options of {method}: vgpud and the page differ in {", ".join(sorted(differ))}'


def complaints():
    yield from complaints_about_xml()
    yield from complaints_about_options()


def write():
    page = text_of(PAGE)
    for interface in interfaces():
        place = sections_in(page, interface)
        if place is None:
            sys.exit(f'{PAGE}: no marks of {interface.name}')
        page = page[:place[0]] + section_of(interface) + page[place[1]:]
    with open(os.path.join(ROOT, PAGE), 'w', encoding='utf-8') as f:
        f.write(page)


if __name__ == '__main__':
    if sys.argv[1:] != ['--write']:
        sys.exit(__doc__.strip().split('\n')[-1])
    write()
