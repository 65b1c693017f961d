# SPDX-License-Identifier: MIT
"""Report: the files of the archive, and the claims that were checked."""
import json
import os
import subprocess


class Report:
    def __init__(self, directory):
        self.directory = directory
        self.claims = []
        self.notes = []

    @property
    def holds(self):
        return all(claim['holds'] for claim in self.claims)

    def add(self, name, text):
        with open(os.path.join(self.directory, name), 'w', encoding='utf-8') as file:
            file.write(text)

    def add_output(self, name, command):
        """Adds the output of a program as a file. If the exit status is not 0, the file ends with it and with stderr."""
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            self.add(name, f'{error}\n')
            return
        end = f'\nexit status {done.returncode}\n{done.stderr}' if done.returncode else ''
        self.add(name, done.stdout + end)

    def claim(self, text, holds, detail=None):
        self.claims.append({'claim': text, 'holds': bool(holds), 'detail': '' if holds else str(detail)})
        print(f'{"ok    " if holds else "FAILED"} {text}{"" if holds else f": {detail}"}')

    def note(self, text):
        self.notes.append(text)
        print(f'note   {text}')

    def finish(self):
        self.add('claims.json', json.dumps({'claims': self.claims, 'notes': self.notes}, indent=2) + '\n')
