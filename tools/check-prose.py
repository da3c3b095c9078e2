#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the prose of documents, comments and messages against the writing rules.

Layout rules and internal terms have no allowance: one breach fails. Sentence rules are heuristics,
so a few hits are accepted: BUDGET hits for each 10,000 lines.

usage: check-prose.py [--all] [PATH...]
- --all: print every hit, even within the budget
- PATH: check only these files and folders (default: the whole repository)
"""
import ast
import collections
import io
import os
import re
import sys
import tokenize

BUDGET = 15
COLUMNS_MAX = 100
PARAGRAPH_LINES_MAX = 6
README_LINES_MAX = 120
SENTENCE_WORDS_MAX = 25
MESSAGE_WORDS_MIN = 4 # shorter strings in code are not prose

SUFFIXES = ('.md', '.1', '.c', '.h', '.cpp', '.cu', '.def', '.css', '.ts', '.tsx', '.mjs', '.py',
            'xtrace-dump', '.sh', '.inc', '.cmake', 'CMakeLists.txt')
PLACES = ('CMakeLists.txt', 'cmake', 'include', 'src', 'tools', 'samples', 'bench', 'tests', 'docs', 'README.md',
          'CONTRIBUTING.md', 'CHANGELOG.md')
SKIPPED = re.compile(r'(^|/)(expected|traces|corpus|node_modules)/')

# Terms that the user guide must not contain, and what to write instead.
INTERNAL_TERMS = {
    r'ring( buffer)?s?': 'buffer',
    r'crash buffers?': 'recovery file',
    r'interners?|intern(s|ed|ing)': 'name table',
    r'thread buffers?|lanes?': 'buffer',
    r'stack cache|memo': 'leave it out',
    r'(?<!\.)spools?': 'recovery file',
    r'event filters?|sieves?': 'selection',
    r'reorder buffers?': 'leave it out',
    r'thread timelines?': 'history of a thread',
    r'trampolines?': 'leave it out',
    r'byte shuffle|planes|varints?': 'encoding',
    r'worker pool|crew': 'threads',
    r'hand-?offs?': 'leave it out',
    r'hash tables?': 'table',
}
USER_DOCUMENT = re.compile(r'^(README\.md|docs/[^/]*\.md|docs/man/.*\.1)$')

SENTENCE_RULES = [
    ('begins with a clause', r'^(Of|What|Who|Whose|Whoever|Whatever|So that|As|Nobody|Nor)\b(?!.*\?$)'),
    ('old-fashioned', r"\b(anew|afresh|likewise|of late|of ours|thereof|therein|hereby|nobody('s)?|whosoever)\b"),
    ('vague passive', r'\b(is|are|was|were|be) (told|said|mended|meant|wished|looked (at|for)|given back|taken for'
                      r'|thought)\b'),
    ('vague verb', r'\b(is|are) to be\b|\bstands? (for|in|there|below|beside|above|behind)\b'
                   r'|\blies? (in|beside|behind|together|below)\b'),
    ('idiom', r'\b(goes on|go on|come to mean|makes? do|have it that|at work|what it is|by and large|at one go'
              r'|as it were|makes? of it)\b'),
]
SENTENCE_RULES = [(name, re.compile(rule, re.I if name != 'begins with a clause' else 0))
                  for name, rule in SENTENCE_RULES]

Paragraph = collections.namedtuple('Paragraph', 'line text')
Hit = collections.namedtuple('Hit', 'path line rule text')

C_TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|`(?:\\.|[^`\\])*`', re.S)


def paragraphs_of(lines):
    """Joins (number, text) pairs to paragraphs. A list item or an indented line starts a new one."""
    current, start = [], 0
    for number, text in lines:
        bare = text.strip()
        starts_item = re.match(r'([-*•@]|\d+[.)]|\|)\s|\\', bare) or text.startswith(('\t', '    '))
        if (not bare or starts_item) and current:
            yield Paragraph(start, ' '.join(current))
            current = []
        if bare:
            if not current:
                start = number
            current.append(re.sub(r'^([-*•]|\d+[.)])\s+', '', bare))
    if current:
        yield Paragraph(start, ' '.join(current))


def prose_of_c(text):
    """Comments, and strings of several words that adjacent literals make up."""
    line_comments = []
    for match in C_TOKEN.finditer(text):
        found, line = match.group(0), text.count('\n', 0, match.start()) + 1
        if found.startswith('//'):
            line_comments.append((line, found[2:]))
            continue
        if line_comments and line > line_comments[-1][0] + 1:
            yield from paragraphs_of(line_comments)
            line_comments = []
        if found.startswith('/*'):
            body = re.sub(r'\n[ \t]*\*?(?=[ \t/\n])[ ]?', '\n', found[2:-2])
            yield from paragraphs_of((line + i, part) for i, part in enumerate(body.split('\n')))
        elif found[0] == '"':
            yield Paragraph(line, found)
    yield from paragraphs_of(line_comments)


def join_strings(paragraphs, text):
    """Joins neighbouring string literals; drops those too short to be prose."""
    lines = text.split('\n')
    held = None
    for paragraph in paragraphs:
        if paragraph.text[:1] != '"':
            yield paragraph
            continue
        body = paragraph.text[1:-1]
        previous = lines[paragraph.line - 2].rstrip() if paragraph.line > 1 else ''
        if held and previous.endswith('"'):
            held = Paragraph(held.line, held.text + body)
            continue
        if held:
            yield from message(held)
        held = Paragraph(paragraph.line, body)
    if held:
        yield from message(held)


def message(paragraph):
    for part in re.split(r'(?:\\n)+', paragraph.text):
        if len(re.findall(r'[A-Za-z]{2,}', part)) >= MESSAGE_WORDS_MIN:
            yield Paragraph(paragraph.line, part.replace('\\t', ' ').strip())


def prose_of_python(text):
    """Comments and the strings that document a module, a class or a function."""
    comments = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith('#!'):
            if comments and token.start[0] > comments[-1][0] + 1:
                yield from paragraphs_of(comments)
                comments = []
            comments.append((token.start[0], token.string.lstrip('#')[1:]))
    yield from paragraphs_of(comments)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            first = node.body[0].lineno
            lines = ast.get_docstring(node).split('\n')
            yield from paragraphs_of((first + i, line) for i, line in enumerate(lines))


def prose_of_shell(text):
    comments = []
    for number, line in enumerate(text.split('\n'), 1):
        found = re.match(r'\s*#(?!!) ?(.*)', line) or re.search(r'\s# (.*)', line)
        if found:
            comments.append((number, found.group(1)))
        elif comments:
            yield from paragraphs_of(comments)
            comments = []
    yield from paragraphs_of(comments)


def prose_of_man(text):
    lines = []
    for number, line in enumerate(text.split('\n'), 1):
        if line.startswith(('.B', '.I', '.R')) and not line.startswith('.RS') and not line.startswith('.RE'):
            line = line.split(' ', 1)[-1]
        elif line.startswith(('.', "'")):
            line = ''
        lines.append((number, re.sub(r'\\f.|\\-|\\&', lambda found: '-' if found.group(0) == '\\-' else '', line)))
    yield from paragraphs_of(lines)


def prose_of_markdown(text):
    """Paragraphs and list items, without code, tables and headings."""
    lines, fenced, in_list = [], False, False
    for number, line in enumerate(text.split('\n'), 1):
        if line.lstrip().startswith('```'):
            fenced = not fenced
            line = ''
        if line[:1].strip():
            in_list = re.match(r'[-*] |\d+\. ', line)
        is_code = line.startswith('    ') and not in_list
        is_prose = (not fenced and not is_code
                    and not re.match(r'\s*(\||#|<|!\[|---|\[[^]]*\]:)', line))
        lines.append((number, (line[2:] if line.startswith('  ') else line) if is_prose else ''))
    yield from paragraphs_of(lines)


def prose_of(path, text):
    if path.endswith('.md'):
        return prose_of_markdown(text)
    if path.endswith('.1'):
        return prose_of_man(text)
    if path.endswith(('.py', 'xtrace-dump')):
        return prose_of_python(text)
    if path.endswith(('.sh', '.inc', '.cmake', '.txt')):
        return prose_of_shell(text)
    strings = join_strings(prose_of_c(text), text)
    if path.startswith('tests/') or path.endswith(('.ts', '.tsx', '.mjs')):
        return (paragraph for paragraph in prose_of_c(text) if paragraph.text[:1] != '"')
    return strings


def sentences_of(text):
    text = re.sub(r'\]\([^)]*\)', ']', text)
    text = re.sub(r'`[^`]*`', 'CODE', text)
    text = re.sub(r'\b(e\.g|i\.e|etc|vs|cf)\.', r'\1', text)
    return re.split(r'(?<=[.!?])["\')]*\s+(?=["\'(`]?[A-Z]|[\w.]+[/_(])|(?<=[;:])\s+(?=[A-Z])', text)


def sentence_hits(path, paragraphs):
    for paragraph in paragraphs:
        if 'SPDX-License' in paragraph.text:
            continue
        for sentence in sentences_of(paragraph.text):
            words = len(re.findall(r"[A-Za-z0-9_'’./<>=%-]*[A-Za-z0-9][A-Za-z0-9_'’./<>=%-]*", sentence))
            reasons = ['%d words' % words] if words > SENTENCE_WORDS_MAX else []
            reasons += [name for name, rule in SENTENCE_RULES if rule.search(sentence)]
            if reasons:
                yield Hit(path, paragraph.line, ', '.join(reasons), sentence)


def prose_columns(line):
    return len(line.expandtabs(8))


def layout_hits(path, text):
    """Rules without an allowance."""
    lines = text.split('\n')
    if path == 'README.md' and len(lines) - 1 > README_LINES_MAX:
        yield Hit(path, 1, 'more than %d lines' % README_LINES_MAX, '%d lines' % (len(lines) - 1))
    comment = {'.md': r'(?!\s*(\||\[[^]]*\]:|<|!\[))', '.1': r'', '.py': r'\s*#|(?!.*[\'"(=])', '.sh': r'\s*#'}
    mark = comment.get(os.path.splitext(path)[1], r'\s*#' if path.endswith(('.cmake', '.txt')) else r'\s*(/\*|\*|//)')
    fenced, length = False, 0
    for number, line in enumerate(lines, 1):
        fenced ^= line.lstrip().startswith('```')
        if re.match(mark, line) and prose_columns(line) > COLUMNS_MAX and not re.search(r'https?://\S{60}', line):
            if not (path.endswith('.md') and fenced):
                yield Hit(path, number, 'more than %d columns' % COLUMNS_MAX, line.strip())
        if not path.endswith('.md'):
            continue
        is_text = line.strip() and not fenced and not re.match(r'\s*(\||#|<|!\[|```|    |\[[^]]*\]:)', line)
        starts_item = re.match(r'\s*([-*]|\d+\.)\s', line)
        length = 1 if starts_item else length + 1 if is_text else 0
        if length == PARAGRAPH_LINES_MAX + 1:
            yield Hit(path, number, 'paragraph of more than %d lines' % PARAGRAPH_LINES_MAX, line.strip())


def term_hits(path, paragraphs):
    if not USER_DOCUMENT.match(path):
        return
    for paragraph in paragraphs:
        text = re.sub(r'`[^`]*`', 'CODE', paragraph.text)
        for term, instead in INTERNAL_TERMS.items():
            found = re.search(r'\b(%s)\b' % term, text, re.I)
            if found:
                yield Hit(path, paragraph.line, 'internal term "%s": %s' % (found.group(0), instead), text)


def files_in(places):
    for place in places:
        if os.path.isfile(place):
            yield place
        for folder, folders, names in os.walk(place):
            folders[:] = sorted(name for name in folders if name != '__pycache__')
            for name in sorted(names):
                yield os.path.join(folder, name)


def main(arguments):
    prints_all = '--all' in arguments
    chosen = [os.path.relpath(path) for path in arguments if path != '--all']
    if not chosen:
        os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
    hits, breaches, line_count = [], [], 0
    for path in files_in(chosen or PLACES):
        if not path.endswith(SUFFIXES) or SKIPPED.search(path):
            continue
        with open(path, encoding='utf-8') as file:
            text = file.read()
        line_count += text.count('\n')
        paragraphs = list(prose_of(path, text))
        hits += sentence_hits(path, paragraphs)
        breaches += list(layout_hits(path, text)) + list(term_hits(path, paragraphs))
    rate = 10000 * len(hits) / max(line_count, 1)
    is_over = bool(chosen and hits) or rate > BUDGET
    for hit in breaches + (hits if prints_all or is_over else []):
        print('%s:%d: %s: %s' % (hit.path, hit.line, hit.rule, hit.text[:160]))
    print('check-prose: %d breaches; %d sentences in %d lines, %.1f for each 10,000 (at most %d)' %
          (len(breaches), len(hits), line_count, rate, BUDGET))
    return 1 if breaches or rate > BUDGET else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
