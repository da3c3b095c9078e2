#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds circles between source files, and uses between folders that the tables below forbid.

A file foo.c and its header foo.h count as one. File A uses file B if a function of A names a
function or a global variable that B defines. The check needs no build.

usage: check-cycles.py [--summary | --edges | --objects BUILD]
- --summary: print only the number of circles and files in each area
- --edges: print every use between two files
- --objects BUILD: compare the circles with those of the object files in a build folder
"""
import collections
import os
import re
import subprocess
import sys

# The areas that may refer to each other's symbols, and so include each other's headers.
# An area is a folder, or a part of one that is linked separately.
USES = {
    'src/log': ['include', 'src/cuda_abi'],
    # Ends the process if memory runs out, which injected and long-running code must not do.
    'src/base': ['src/log'],
    'src/page': ['src/log', 'src/base'],
    'src/cli': ['src/log'],
    'src/inject': ['include', 'src/log', 'src/cuda_abi', 'src/python'],
    'src/idle': ['include', 'src/log'],
    'src/live': ['include', 'src/log', 'src/idle'],
    'src/sampler': ['include', 'src/log', 'src/python'],
    'src/attach': ['include', 'src/log', 'src/sampler'],
    'src/python': [],
    'src/merge': ['include', 'src/log', 'src/base', 'src/idle', 'src/cli', 'src/page', 'src/cuda_abi'],
    'src/diff': ['include', 'src/log', 'src/base', 'src/cli', 'src/page'],
    'tools/xtrace': ['include', 'src/log', 'src/base', 'src/cli', 'src/page', 'src/merge', 'src/diff',
                     'src/idle', 'src/live', 'src/sampler', 'src/attach', 'src/cuda_abi'],
    'tools/xtrace-mpi': ['src/log', 'src/base', 'src/cli', 'src/merge'],
    'src/simgpu:cuda': ['src/cuda_abi'],
    'src/simgpu:cupti': ['src/cuda_abi'],
    'src/simgpu:nvml': ['src/cuda_abi'],
    'include': [],
    'src/cuda_abi': [],
}

# Folders of an area from the bottom to the top: each uses itself and those before it. Files
# directly in the area are above all its folders.
LAYERS = {
    'src/inject': ['runtime', 'memory', 'unwind', 'python', 'torch', 'cupti', 'capture', 'nvtx',
                   'writer', 'lifecycle'],
    'src/log': ['base', 'read', 'write', 'recover'],
    'src/merge': ['base', 'read', 'symbolize', 'naming', 'tables', 'sums', 'steps',
                  'profile', 'ranks', 'lines', 'findings', 'tracks', 'export'],
    'src/diff': ['base', 'load', 'pair', 'stats', 'compare', 'rules', 'output', 'history'],
}

WORD = re.compile(r'[A-Za-z_]\w*')
NOISE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
DIRECTIVE = re.compile(r'^[ \t]*#[ \t]*(\w+)((?:\\\n|[^\n])*)', re.M)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)
ATTRIBUTE = re.compile(r'__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)')
TAGS = {'struct', 'union', 'enum', 'goto'}
NOT_TYPES = {'return', 'else', 'case', 'sizeof', 'do', 'in', 'goto'}


def area_of(path):
    """The area of a file: the longest matching key of USES."""
    if path.startswith('src/simgpu/'):
        name = os.path.basename(path)
        part = 'cupti' if name.startswith('tracer') else 'nvml' if name.startswith('nvml') else 'cuda'
        return 'src/simgpu:' + part
    return next((area for area in USES if path.startswith(area + '/')), None)


def strip_noise(text):
    """Removes comments and the contents of strings; keeps the line breaks."""
    def blank(match):
        found = match.group(0)
        return ' ' + '\n' * found.count('\n') if found[0] == '/' else found[0] + found[0]
    return NOISE.sub(blank, text)


def split_top_level(text):
    """Yields (head, body) of each declaration; body is None where there are no braces."""
    depth, start, open_at = 0, 0, 0
    for match in re.finditer(r'[{};]', text):
        at, sign = match.start(), match.group(0)
        if sign == '{':
            if depth == 0:
                open_at = at
            depth += 1
        elif sign == '}':
            depth -= 1
            if depth == 0 and is_function(text[start:open_at]):
                yield text[start:open_at], text[open_at:at + 1]
                start = at + 1
        elif depth == 0:
            yield text[start:at], None
            start = at + 1


def is_function(head):
    return head.rstrip().endswith(')') and not re.search(r'[^=!<>]=[^=]', head)


def declared_name(head):
    """The name in the head of a function's definition."""
    depth = 0
    for at in range(len(head.rstrip()) - 1, -1, -1):
        depth += {')': 1, '(': -1}.get(head[at], 0)
        if depth == 0:
            found = re.search(r'([A-Za-z_]\w*)\s*$', head[:at])
            return found.group(1) if found else None
    return None


def variable_names(head):
    """The names of the global variables that a declaration defines."""
    if re.search(r'\b(extern|typedef)\b', head):
        return
    head = re.sub(r'^(?:\s*[A-Z_]+\([^()]*\))+\s*(?=\w)', '', re.sub(r'_Atomic\([^()]*\)', '_Atomic int', head))
    target = re.split(r'(?<![=!<>])=(?!=)', head)[0]
    target = re.sub(r'\{.*\}', ' ', target, flags=re.S)
    if re.search(r'[({]', target) or re.search(r'\b(struct|union|enum)\s+\w+\s*$', target):
        return
    for part in target.split(','):
        found = re.search(r'[\w*,]\s+\**([A-Za-z_]\w*)\s*(\[[^\]]*\]\s*)*$', ', ' + part)
        if found and found.group(1) not in TAGS:
            yield found.group(1)


class Source:
    """The definitions of one file, and the words in its functions and initialisers."""

    def __init__(self, path, tree, expands_inline):
        self.path = path
        self.expands_inline = expands_inline and path.endswith('.h')
        with open(path, encoding='utf-8') as file:
            text = file.read()
        self.includes = INCLUDE.findall(text)
        self.defined, self.private, self.macros = set(), set(), {}
        self.declared = set() # functions
        self.made_by_macro = set() # arguments of macros outside functions: they may define one
        self.words = collections.defaultdict(list) # word: the functions that use it
        text = self.with_tables(strip_noise(text), tree)
        code = ATTRIBUTE.sub(' ', DIRECTIVE.sub(self.take_directive, text))
        for head, body in split_top_level(code):
            self.take_declaration(head, body)

    def with_tables(self, text, tree):
        """Inserts the .def files that the source includes."""
        for name in self.includes:
            if name.endswith('.def'):
                near = os.path.join(os.path.dirname(self.path), name)
                found = near if os.path.exists(near) else tree.get(name)
                if found:
                    with open(found, encoding='utf-8') as file:
                        table = DIRECTIVE.sub('', strip_noise(file.read()))
                    text += '\nstatic void table_(void)\n{' + table + ';}\n'
        return text

    def take_directive(self, match):
        if match.group(1) == 'define':
            found = re.match(r'\s*(\w+)(\([^)]*\))?(.*)', match.group(2), re.S)
            self.macros[found.group(1)] = used_words(found.group(3).replace('\\\n', ' '))
        return '\n'

    def take_words(self, text, parameters):
        for word in used_words(text):
            self.words[word].append(parameters + text)

    def uses(self, word):
        """Does a function use the word, other than as a name of its own?"""
        return any(not is_local(word, scope) for scope in self.words.get(word, ()))

    def take_declaration(self, head, body):
        is_static = bool(re.search(r'\bstatic\b', head))
        if body is not None:
            name = declared_name(head)
            names = [name] if name else []
            if self.expands_inline:
                self.macros[name] = {word for word in used_words(body) if not is_local(word, head + body)}
                return
            self.take_words(body, head[head.find('('):])
            is_shared = not is_static or self.path.endswith('.h')
        else:
            names = list(variable_names(head))
            is_shared = not is_static
            macro = re.match(r'\s*[A-Z_]+\(([^(){}]*)\)\s*$', head)
            self.made_by_macro |= used_words(macro.group(1)) if macro else set()
            if is_function(head):
                self.declared.add(declared_name(head))
            if '=' in head:
                self.take_words(head.split('=', 1)[1], '')
        (self.defined if is_shared else self.private).update(names)


def used_words(text):
    """The words of a text that may name a function or a variable."""
    found = set()
    for match in WORD.finditer(text):
        before = text[max(match.start() - 24, 0):match.start()].rstrip()
        if before.endswith(('.', '->')) and not before.endswith('...'):
            continue
        tag = re.search(r'(\w+)$', before)
        if not tag or tag.group(1) not in TAGS:
            found.add(match.group(0))
    return found


def is_local(word, scope):
    """Does a function declare the word as a parameter or a variable of its own?"""
    for match in re.finditer(r'\(\s*\*\s*%s\s*\)|([A-Za-z_]\w*)[\s*]+%s\s*[,;=)\[:]' % (word, word), scope):
        if is_declaration(match.group(0), word):
            return True
    return False


def is_declaration(text, word):
    """Tells `struct name *word` and `int word = 1` from uses such as `return word;` and `a * word)`."""
    if text.startswith('('):
        return True
    first = WORD.match(text).group(0)
    return first not in NOT_TYPES and not re.search(r'\w\s\*\s%s$' % word, text.rstrip(',;=)[: '))


def node_of(path):
    """A file and its header are one node; a public header belongs to the file of that name."""
    return os.path.splitext(path)[0]


class Graph:
    """The uses between files. With expands_inline, the uses of an inline function in a header count
    for the files that call it, which is what object files show."""

    def __init__(self, paths, expands_inline=False):
        tree = {os.path.relpath(path, root): path for path in paths for root in ('src', 'include', 'tools')
                if path.startswith(root + '/')}
        self.tree = tree
        self.files = {path: Source(path, tree, expands_inline) for path in paths if path.endswith(('.c', '.h'))}
        self.owner = collections.defaultdict(dict)
        for path, source in self.files.items():
            for name in source.defined:
                self.owner[area_of(path)].setdefault(name, node_of(path))
        for path, source in self.files.items():
            header = self.files.get(node_of(path) + '.h')
            for name in source.made_by_macro & header.declared if header else ():
                self.owner[area_of(path)].setdefault(name, node_of(path))
        self.macros = {name: words for path, source in self.files.items() if path.endswith('.h')
                       for name, words in source.macros.items()}
        self.edges = collections.defaultdict(lambda: collections.defaultdict(set))
        for path, source in self.files.items():
            self.add_uses(path, source)

    def add_uses(self, path, source):
        areas = [area_of(path)] + USES[area_of(path)]
        words, queue, from_macros = set(), set(source.words), set()
        while queue:
            word = queue.pop()
            words.add(word)
            inner = source.macros.get(word, self.macros.get(word, set()))
            from_macros |= inner
            queue |= inner - words
        for word in words - source.private - source.defined:
            owner = next((self.owner[area][word] for area in areas if word in self.owner[area]), None)
            if owner and owner != node_of(path) and (word in from_macros or source.uses(word)):
                self.edges[node_of(path)][owner].add(word)

    def include_edges(self):
        """#include between headers."""
        edges = collections.defaultdict(lambda: collections.defaultdict(set))
        for path, source in self.files.items():
            for name in source.includes if path.endswith('.h') else ():
                found = self.resolve(path, name)
                if found and found.endswith('.h'):
                    edges[path][found].add('#include')
        return edges

    def resolve(self, path, name):
        near = os.path.normpath(os.path.join(os.path.dirname(path), name))
        return near if near in self.files else self.tree.get(name)


def strong_components(edges):
    """Tarjan's algorithm; returns the components of more than one node, largest first."""
    index, low, stack, on_stack, result = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for other in edges.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on_stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            component = []
            while not component or component[-1] != node:
                component.append(stack.pop())
                on_stack.discard(component[-1])
            if len(component) > 1:
                result.append(sorted(component))
    sys.setrecursionlimit(10000)
    for node in sorted(edges):
        if node not in index:
            visit(node)
    return sorted(result, key=lambda component: (-len(component), component))


def print_circle(component, edges):
    print('circle of %d files:' % len(component))
    for node in component:
        for other, names in sorted(edges[node].items()):
            if other in component:
                shown = sorted(names)
                more = ' and %d more' % (len(shown) - 4) if len(shown) > 4 else ''
                print('  %s -> %s: %s%s' % (node, other, ', '.join(shown[:4]), more))


def layer_of(area, path):
    """The index of the folder of a file in LAYERS, or None if the folder is not there."""
    folders = path[len(area) + 1:].split('/')[:-1]
    if not folders:
        return len(LAYERS[area])
    return LAYERS[area].index(folders[0]) if folders[0] in LAYERS[area] else None


def is_above(path, target):
    """Is the target in a layer above the file of the same area?"""
    area = area_of(path)
    if area not in LAYERS or area_of(target) != area:
        return False
    own, used = layer_of(area, path), layer_of(area, target)
    return own is None or used is None or used > own


def folder_breaches(graph):
    """Includes and uses that USES and LAYERS forbid."""
    for path, source in sorted(graph.files.items()):
        area = area_of(path)
        for name in source.includes:
            target = graph.resolve(path, name)
            other = target and area_of(target)
            if not other:
                continue
            if other.split(':')[0] != area.split(':')[0] and other not in USES[area]:
                yield '%s: includes %s, which %s may not use' % (path, target, area)
            elif is_above(path, target):
                yield '%s: includes %s, which is in a layer above' % (path, target)
    for node, uses in sorted(graph.edges.items()):
        for target, names in sorted(uses.items()):
            if is_above(node, target):
                yield '%s: uses %s of %s, which is in a layer above' % (node, sorted(names)[0], target)


def object_edges(build):
    """The uses between object files, by nm; nodes as in Graph."""
    defined, wanted = collections.defaultdict(dict), collections.defaultdict(set)
    for root, _, names in os.walk(build):
        for name in names:
            source = os.path.join(os.path.relpath(root, build), name)
            source = re.sub(r'CMakeFiles/[^/]+\.dir/', '', source)
            if not name.endswith('.c.o') or not os.path.exists(source[:-2]) or not area_of(source):
                continue
            path = source[:-2]
            output = subprocess.run(['nm', os.path.join(root, name)], capture_output=True, text=True,
                                    check=True).stdout
            for line in output.splitlines():
                kind, symbol = line.split()[-2:]
                symbol = symbol.split('.')[0]
                if kind in 'TDBRWVC':
                    defined[area_of(path)].setdefault(symbol, node_of(path))
                elif kind in 'Uw':
                    wanted[path].add(symbol)
    edges = collections.defaultdict(lambda: collections.defaultdict(set))
    for path, symbols in wanted.items():
        for symbol in symbols:
            for area in [area_of(path)] + USES[area_of(path)]:
                owner = defined[area].get(symbol)
                if owner:
                    edges[node_of(path)][owner].add(symbol)
                    break
    return edges


def print_difference(graph, build):
    """Compares with the object files; returns 1 if the circles differ."""
    objects = object_edges(build)
    for one, other, text in ((objects, graph.edges, 'only nm'), (graph.edges, objects, 'only the source')):
        for node in sorted(one):
            for target, names in sorted(one[node].items()):
                missing = names - other.get(node, {}).get(target, set())
                if missing:
                    print('%s: %s -> %s: %s' % (text, node, target, ', '.join(sorted(missing))))
    ours, theirs = strong_components(graph.edges), strong_components(objects)
    differing = [c for c in ours if c not in theirs] + [c for c in theirs if c not in ours]
    print('components: %d in the source, %d in the objects, %d differ' %
          (len(ours), len(theirs), len(differing)))
    for component in differing:
        print('  ' + ' '.join(component))
    return 1 if differing else 0


def sources():
    for root in ('src', 'include', 'tools/xtrace'):
        for folder, _, names in sorted(os.walk(root)):
            for name in sorted(names):
                path = os.path.join(folder, name)
                if name.endswith(('.c', '.h', '.def')) and area_of(path):
                    yield path


def main(arguments):
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
    if arguments[:1] == ['--objects']:
        return print_difference(Graph(list(sources()), expands_inline=True), arguments[1])
    graph = Graph(list(sources()))
    if arguments == ['--edges']:
        for node in sorted(graph.edges):
            for other, names in sorted(graph.edges[node].items()):
                print('%s -> %s: %s' % (node, other, ', '.join(sorted(names))))
        return 0
    circles = strong_components(graph.edges)
    header_edges = graph.include_edges()
    header_circles = strong_components(header_edges)
    breaches = list(folder_breaches(graph))
    for circle in circles if arguments != ['--summary'] else ():
        print_circle(circle, graph.edges)
    for circle in header_circles if arguments != ['--summary'] else ():
        print_circle(circle, header_edges)
    for breach in breaches:
        print(breach)
    count = collections.Counter(area_of(c[0] + '.c') for c in circles)
    for area in sorted(count):
        files = sum(len(c) for c in circles if area_of(c[0] + '.c') == area)
        print('%s: %d circles, %d files' % (area, count[area], files))
    print('check-cycles: %d files, %d circles, %d circles of headers, %d forbidden uses' %
          (len(graph.files), len(circles), len(header_circles), len(breaches)))
    return 1 if circles or header_circles or breaches else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
