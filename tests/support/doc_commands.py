#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the commands that a document shows and compares their output with the output shown.

usage: tests/support/doc_commands.py DOCUMENT GROUP

A block belongs to GROUP if the line `<!-- run: GROUP -->` stands before it (an empty line may come
between):

    <!-- run: bus -->
    ```console
    $ vgpuctl list --targets
    gpu0
    $ vgpuctl show gpu9; echo $?
    …
    3
    ```

bash runs each line that begins with "$ ". A line that ends with a backslash continues on the next
one. The lines after a command, up to the next command, are the output that it must print (stdout
and stderr). "…" in a line stands for any text, a line "…" alone for any number of lines. A command
that fails without `; echo $?` fails the test. All blocks of a group run one after the other in one
temporary directory. A block of any language behind `<!-- file: NAME -->` is a file of that name in
this directory. The exit status is 0 only if there was a command and all outputs agree.
"""
import os
import re
import subprocess
import sys
import tempfile

LIMIT_S = 60 * float(os.environ.get('VGPU_TEST_TIME_SCALE', '1'))


def blocks_of(text, group):
    pattern = r'^<!-- run: ' + re.escape(group) + r' -->\n\s*?```console\n(.*?)^```$'
    return re.findall(pattern, text, re.M | re.S)


def files_of(text):
    """The files of the document: [(name, content)]"""
    return re.findall(r'^<!-- file: (\S+) -->\n```\w*\n(.*?)^```$', text, re.M | re.S)


def commands_of(block):
    """The commands of a block: [[command, expected output]]"""
    commands, is_going_on = [], False
    for line in block.split('\n')[:-1]:
        if is_going_on:
            commands[-1][0] += '\n' + line
        elif line.startswith('$ '):
            commands.append([line[2:], ''])
        elif commands:
            commands[-1][1] += line + '\n'
        else:
            sys.exit(f'doc_commands.py: output before the first command: {line}')
        is_going_on = line.endswith('\\') and commands[-1][1] == ''
    return commands


def pattern_of(expected):
    lines = []
    for line in expected.splitlines():
        if line.strip() == '…':
            lines.append(r'(?:[^\n]*\n)*?')
        else:
            lines.append('[^\n]*?'.join(re.escape(part) for part in line.split('…')) + '\n')
    return ''.join(lines)


def check(command, expected, directory):
    run = subprocess.run(['bash', '-c', command], cwd=directory, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S)
    out = run.stdout.decode('utf-8', 'replace')
    if out and not out.endswith('\n'):
        out += '\n'
    if run.returncode == 0 and re.fullmatch(pattern_of(expected), out):
        return True
    print(f'$ {command}\nexit status {run.returncode}; it says:\n{out}the document says:\n'
          f'{expected}')
    return False


def main(arguments):
    if len(arguments) != 2:
        sys.exit(__doc__)
    document, group = arguments
    with open(document, encoding='utf-8') as f:
        text = f.read()
    blocks = blocks_of(text, group)
    commands = [one for block in blocks for one in commands_of(block)]
    if not commands:
        sys.exit(f'doc_commands.py: {document} has no command in group {group}')
    with tempfile.TemporaryDirectory() as directory:
        for name, content in files_of(text):
            with open(os.path.join(directory, name), 'w', encoding='utf-8') as f:
                f.write(content)
        results = [check(command, expected, directory) for command, expected in commands]
    print(f'{os.path.basename(document)}, {group}: {sum(results)} of {len(results)} commands agree')
    return 0 if all(results) else 1


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
