# SPDX-License-Identifier: MIT
"""Whether names use the glossary's terms.

A public name stands in the uapi, on D-Bus, in a JSON schema, in vgpuctl's options, in a metric or
in sysfs. Each of its words is a term of docs/glossary.md or a word of ordinary English (PLAIN). A
term of the glossary occurs in a name or a document. A name that the glossary replaced (its section
Earlier names) does not come back, in any name of the product.
"""
import re

CODE = ('.c', '.h', '.cpp', '.def')
PRODUCT = ('pf-driver/', 'daemon/', 'cli/', 'vf-agent/', 'text/')
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.S)
# Names of others that contain an earlier name of ours.
FOREIGN = {'kHome', 'kHomeAndClear', 'lock_guard', 'takes_back'}

# Words of ordinary English, units and grammar.
PLAIN = set('''
a absent acquire act ahead arg args create decision gpu gpus policies quanta rocr address additional arrivals bus class classes code comm compare completion control copy definitions detach dropped even exec fd gid held holds hung if illegal instructions ioc items joins largest later longest mb method misbehaved missed node object only operator pci programs qemu rate render replaces resolve room since stays sysfs srcversion switch switches switching then threads true uid unreported use vgpu vgpuctl vgpud welcomed xml openmetrics sched needs access accesses action actions active add added adopt after ago all api args argument at
auto available back bad base begin before begins boot both bulk by bytes call cause change changed
changes check checksum clear client clients column columns command commands complete compute config configs
connect connected cookie corrupt count current cut cycle data date days default define defined
depth destroy detail device different difference dir directory disk do done down drift driver dump
durable duration each earlier elapsed empty end ended entries entry error errors event events
exact exclusive exit expires export fail failed failure file files find finding findings first fix
flag flags follow for force format forward found free from full get given go guest has head header
health help hide hint host id ideal idle in index info init initial input interval invalid
is json keep kept kernel kind kinds known label last late latency left length level levels libvirt
limit limits line lines list load log lost magic major manager manual mask match max mean median member
members memory message messages min minor mismatch missing mode module ms msec name names new
next no none noheadings not note notes now ns number of off offset ok old on once op open option options order
out output page pages own part parts path paths pct percent period phase pid piece pieces ppm pid possible
progress properties property protocol put query quiet ratio raw read reading ready reason reasons
recent record records refused removed rename report request requests reserved result results root
row rows run running schema script seconds seed seen select self send sent seq sequence server
service set share shares show size socket source start started state states status step steps stop
stopped stopping stopped string system table target targets test text time timed timeout timeouts
times timestamp to token tokens too total trace type unique unit units unix unknown up update us
usage used user uuid value values verify version wait waits want wanted was what when why window
with within without work worst write written yes zero
'''.split())


def words_of(name):
    """The lower-case words of a name in any style."""
    name = re.sub(r'([a-z0-9])([A-Z])', r'\1_\2', name)
    name = re.sub(r'([A-Z])([A-Z][a-z])', r'\1_\2', name)
    return [word for word in re.split(r'[^a-z]+', name.lower()) if len(word) > 1]


def public_names(files, text_of):
    """(file, public name)"""
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
