# SPDX-License-Identifier: MIT
"""Checks that the names in comments and documents are names of something in the tree.

It checks only forms that cannot be English words: functions with brackets, members behind `::`,
constants (kName, VGPU_NAME), files with an extension of code, and, in documents, paths from the
root. In documents, such a name stands between backticks. The changelog and decisions may use former
names.
"""
import fnmatch
import itertools
import re

CODE = ('.c', '.h', '.cpp', '.hpp')
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/', re.S)
STRING_OR_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.S)
WORD = re.compile(r'[A-Za-z_]\w*')
IDENTIFIER = re.compile(r'(?<![\w./-])(?:[A-Za-z_]\w*(?:::~?\w+)*\(\)|[A-Za-z_]\w*(?:::\w+)+|'
                        r'k[A-Z][a-z]\w*|VGPU_[A-Z0-9_]*[A-Z0-9])(?![\w*/-])')
FILE = re.compile(r'(?<![\w./*{-])[\w./*{},-]*\w\.(?:cpp|hpp|def|c|h)(?![\w-]|\.\w)')
PATH = re.compile(r'(?:pf-driver|vf-agent|daemon|cli|schemas|tests|docs|cmake|debian|'
                  r'text)/[\w./*{},-]*')

# Names of other projects: Linux and its amdgpu, AMD's GIM, Mesa, ROCr, systemd, VirtualBox, QEMU,
# libvirt.
FOREIGN = re.compile(
    r'(.*/)?(amdgpu|amdkfd|drivers|linux|libgv|block)/.*|libvirt/libvirt\.h|include/v9_structs\.h|'
    r'(amdgpu|kfd|amdgv|mxgpu|vega10|soc15|psp|aco|hsa_ext|atom|mi300|gc)_?\w*\.\w+|\w+_v\d+_\d+\.[ch]|'
    r'(v9_structs|stdint|VDICore)\.h|amd_aql_queue\.cpp|bus-objects\.c|'
    r'io_submit\(\)|pcie_do_recovery\(\)|event_interrupt_wq_v9\(\)|nlohmann::.*')
# Names of no project: examples, units.
EXAMPLES = {'verb_NAME.cpp', 'verb_noun()', 'kConstants', 'kField', 'kHz', 'text/plain'}


class Tree:
    """The names of the tree: words of code outside of comments; beginnings and ends of paths."""

    def __init__(self, files, text_of):
        self.words, self.ends = set(), set()
        for name in files:
            if name.endswith(CODE):
                self.ends.add(name.rsplit('.', 1)[0])
            parts = name.split('/')
            for first, last in itertools.combinations(range(len(parts) + 1), 2):
                if last == len(parts) or first == 0:
                    self.ends.add('/'.join(parts[first:last]))
            if name.endswith(('.md', '.svg', '.png', '.txt')):
                continue
            text = text_of(name)
            self.words |= set(WORD.findall(COMMENT.sub('', text) if name.endswith(CODE) else text))

    def has_identifier(self, name):
        return all(word in self.words for word in WORD.findall(name)) or self.is_register(name)

    def is_register(self, name):
        """VGPU_X is row X of block VGPU; X_LO and X_HI are halves of VGPU_X."""
        row = name.removeprefix('VGPU_')
        return row != name and bool({row, row + '_LO'} & self.words)

    def has_path(self, pattern):
        alternatives = [part.strip('{}').split(',') if part.startswith('{') else [part]
                        for part in re.split(r'(\{[^}]*\})', pattern.rstrip('/'))]
        return all(self.has_one(''.join(parts)) for parts in itertools.product(*alternatives))

    def has_one(self, path):
        if '*' not in path:
            return path in self.ends
        return any(fnmatch.fnmatchcase(end, path) for end in self.ends)


def comments_of(text):
    """The lines of all comments: (line number, line)"""
    for match in STRING_OR_COMMENT.finditer(text):
        if match.group(0).startswith('"'):
            continue
        first = text.count('\n', 0, match.start()) + 1
        yield from enumerate(match.group(0).split('\n'), first)


def quotes_of(text):
    """The texts between backticks, outside of blocks of a document: (line number, text)"""
    is_block = False
    for number, line in enumerate(text.split('\n'), 1):
        is_block ^= line.startswith('```')
        if not is_block:
            yield from ((number, quoted) for quoted in re.findall(r'`([^`]+)`', line))


def missing(tree, text, is_document):
    """Names in a comment, or between backticks, that the tree does not have."""
    if is_document and PATH.fullmatch(text):
        return [] if tree.has_path(text) else [text]
    names = [name for name in IDENTIFIER.findall(text)
             if not name.startswith('std::') and not tree.has_identifier(name)]
    return names + [name for name in FILE.findall(text) if not tree.has_path(name)]


def complaints(files, text_of):
    tree = Tree(files, text_of)
    for name in files:
        if name.endswith(CODE + ('.def',)):
            places = comments_of(text_of(name))
        elif name.endswith('.md') and name != 'docs/changelog.md' and 'decisions/' not in name:
            places = quotes_of(text_of(name))
        else:
            continue
        for number, text in places:
            for what in missing(tree, text, name.endswith('.md')):
                if what not in EXAMPLES and not FOREIGN.fullmatch(what):
                    yield f'{name}:{number}: {what} is not in the tree'
