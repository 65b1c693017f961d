# SPDX-License-Identifier: MIT
"""Checks that names use the glossary's terms.

A public name stands in the uapi, on D-Bus, in a JSON schema, in vgpuctl's options or in a metric.
Each of its words is a term of docs/glossary.md or a word of ordinary English (PLAIN). A term of the
glossary occurs in a name or a document. A name that the glossary replaced (its section Earlier
names) does not come back, in any name of the product.
"""
import re

CODE = ('.c', '.h', '.cpp', '.def')
PRODUCT = ('pf-driver/', 'daemon/', 'cli/', 'vf-agent/', 'text/')
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.S)
# Names of other projects that contain an earlier name of this project.
FOREIGN = {'kHome', 'kHomeAndClear', 'SCMP_ACT_ALLOW', 'SCMP_ACT_KILL_PROCESS', 'SCMP_ACT_TRAP',
           'SCMP_FLTATR_ACT_BADARCH'}

# Words of ordinary English, units and grammar.
PLAIN = set('''
a absent access accesses acquire action actions active add added additional address adopt
after ago ahead all api arg args argument arrivals at auto available back bad base before begin
begins boot both bulk bus by bytes call can cause change changed changes check checksum class classes
clear client clients code column columns comm command commands compare complete completion compute
config configs connect connected control cookie copy corrupt count create current cut cycle data
date days decision default define defined definitions depth description destroy detach detail
device difference different dir directory disk do done down drift driver dropped dump durable
duration each earlier elapsed empty end ended entries entry error errors even event events exact
exclusive exec exit expires export fail failed failure fd file files find finding findings first
fix flag flags follow for force format forward found free from full get gid given go gpu gpus
guest has head header health held help hide hint holds host hung id ideal idle if illegal in
inactive index info init initial input instructions interval invalid ioc is items joins json keep
kernel kind kinds known label largest last late latency later left length level levels
libvirt limit limits line lines list load log longest lost magic major manager manual mask match
max mb mean median member members memory message messages method min minor misbehaved mismatch
missed missing mode module ms msec name names needs new next no node noheadings none not
now ns number object of off offset ok old on once only op open openmetrics operator option
options order out output own page pages part parts path paths pci pct percent period phase pid
piece pieces policies possible ppm programs progress properties property protocol put qemu quanta
query quiet rate ratio raw read reading ready reason reasons recent record records refused removed
rename render replaces report request requests reserved resolve result results rocr rollback room root row
rows run running sched schema script seconds seed seen select self send sent seq sequence server
service set share shares show since size socket source srcversion start started state states
status stays step steps stop stopped stopping string switch switches switching sysfs system table
target targets test text then threads time timed timeout timeouts times timestamp to token tokens
too total trace true type uid unique unit units unix unknown unreported up update us usage use
used user uuid value values verify version vgpu vgpuctl vgpud wait waits was welcomed
what when why window with within without work worst write written xml yes zero
'''.split())


def words_of(name):
    """The lower-case words of a name in any style."""
    name = re.sub(r'([a-z0-9])([A-Z])', r'\1_\2', name)
    name = re.sub(r'([A-Z])([A-Z][a-z])', r'\1_\2', name)
    return [word for word in re.split(r'[^a-z]+', name.lower()) if len(word) > 1]


def public_names(files, text_of):
    """The public names of the product: (file, name)"""
    for name in files:
        if name == 'pf-driver/uapi/vgpu_pf.h':
            text = COMMENT_OR_STRING.sub('', text_of(name))
            found = re.findall(r'\b(VGPU_PF_\w+)', text) + re.findall(r'\b([a-z]\w*)(?:\[\w+\])*;', text)
        elif name.startswith('schemas/dbus/org.vgpu1'):
            text = re.sub(r'<!--.*?-->', '', text_of(name), flags=re.S)
            found = re.findall(r'<(?:method|signal|property|arg)[^>]* name="(\w+)"', text)
        elif re.fullmatch(r'schemas/[\w-]+\.schema\.json', name):
            found = re.findall(r'"([a-z]\w*)": *\{', text_of(name))
        elif name.startswith('cli/') and name.endswith('.cpp'):
            found = re.findall(r'"--([a-z][\w-]+)"', text_of(name))
        elif name.startswith('daemon/exporter/') and name.endswith('.def'):
            found = re.findall(r'\bvgpu_\w+', text_of(name))
        else:
            continue
        for public in sorted(set(found)):
            yield name, public


def glossary(text):
    """(terms, earlier names) of docs/glossary.md; an earlier name is a list of words."""
    now, _, history = text.partition('\n## Earlier names')
    terms = {word.strip() for row in re.findall(r'^\| \*\*.*', now, re.M)
             for bold in re.findall(r'\*\*(.*?)\*\*', row) for word in re.split(r'[,/]', bold)}
    earlier = [words_of(cell) for row in re.findall(r'^\| (?!-|earlier)(.*?) \|', history, re.M)
               for cell in row.split(', ')]
    return terms, earlier


def stem(word):
    word = re.sub(r'(.)\1(ed|ing)$', r'\1', word)
    return re.sub(r'(m[e]nt|ing|ed|es|e|s)$', '', word)


def contains(words, part):
    return any(words[i:i + len(part)] == part for i in range(len(words) - len(part) + 1))


def earlier_names_used(files, text_of, earlier):
    for name in files:
        if not (name.startswith(PRODUCT) and name.endswith(CODE)):
            continue
        code = COMMENT_OR_STRING.sub('', text_of(name))
        for used in sorted(set(re.findall(r'[A-Za-z_]\w*', code)) - FOREIGN):
            words = words_of(used)
            for part in earlier:
                if contains(words, part):
                    yield f'{name}: {used} has an earlier name, "{" ".join(part)}"; see docs/glossary.md'


def complaints(files, text_of):
    terms, earlier = glossary(text_of('docs/glossary.md'))
    known = PLAIN | {stem(word) for term in terms for word in words_of(term)}
    for name, public in public_names(files, text_of):
        for word in words_of(public):
            if word not in known and stem(word) not in known:
                yield f'{name}: "{word}" of {public} is no term of docs/glossary.md'
    everything = ' '.join(text_of(name).lower() for name in files
                          if name != 'docs/glossary.md' and name.endswith(CODE + ('.md', '.xml', '.json')))
    everything = re.sub(r'[\s_*/]+', ' ', everything)
    for term in sorted(terms):
        if term.lower() not in everything:
            yield f'docs/glossary.md: the term "{term}" is used nowhere'
    yield from earlier_names_used(files, text_of, earlier)
