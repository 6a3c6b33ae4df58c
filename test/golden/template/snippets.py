"""Small templates that pin down the language: each is rendered by jinja2 as transformers sets it up, and the
output (or that it fails, or what it raises) is the expectation. CONTEXT is what they all see.

Known differences, none of them seen in a chat template: \\N{...} escapes, the name `self`, lipsum, the filters that make
random, HTML or debugging text, and integers of more than 127 bits are errors here; a slice of a constant that has no
slices is an error here and undefined there; a variable that only the filter of a set block reads works here."""

CONTEXT = {
    "s": "Hello World", "empty": "", "u": "naïve ☃ 日本 👩‍👩‍👧 é", "pad": "  \t pad \n ", "html": "<a href='x'>&\"b\"</a>",
    "i": 42, "neg": -7, "zero": 0, "f": 2.5, "big": 12345678901234567890, "t": True, "n": None,
    "l": [3, 1, 2], "words": ["pear", "Apple", "fig", "apple"], "nested": [[1, 2], [3, [4, 5]]], "mixed": [1, "a", None, True, 2.0, [1], {"k": "v"}],
    "d": {"b": 1, "a": 2, "C": 3}, "deep": {"x": {"y": {"z": "end"}}, "items": "own items", "list": [{"n": 1}, {"n": 2}]},
    "users": [{"name": "Bob", "age": 30, "role": "admin"}, {"name": "alice", "age": 25, "role": "user"},
              {"name": "Carol", "age": 30, "role": "user", "address": {"city": "Oslo"}}],
    "text": "one two  three\nfour\r\nfive\n", "x": "outer",
    "tool": {"type": "function", "function": {"name": "get_weather", "description": "Get \"weather\" <now> & 'then'",
             "parameters": {"type": "object", "properties": {"city": {"type": "string", "enum": ["Paris", "Köln"]}}, "required": ["city"]}}},
}

SNIPPETS = r'''
{{ s }}
{{ undefined_name }}
{{ undefined_name.attr }}
{{ undefined_name['item'] }}
{{ d.missing }}
{{ d.missing.more }}
{{ d['missing']['more'] }}
{{ l[10] }}|{{ l[-1] }}|{{ l[-4] }}
{{ s[0] }}{{ s[-1] }}{{ s[99] }}
{{ u[6] }}|{{ u[8:10] }}|{{ u[-1] }}|{{ u|length }}
{{ u[::-1] }}
{{ s[1:4] }}|{{ s[:-3] }}|{{ s[-3:] }}|{{ s[::2] }}|{{ s[::-1] }}|{{ s[8:2:-2] }}|{{ s[5:2] }}
{{ l[1:] }}|{{ l[::-1] }}|{{ l[:100] }}|{{ l[-2:] }}|{{ l[3:0:-1] }}
{{ s[::0] }}
{{ (1,2,3)[1:] }}|{{ (1,)[0] }}
{{ range(10)[2:8:3] }}|{{ range(10)[3] }}|{{ range(5)[-1] }}
{{ n }}|{{ t }}|{{ false }}|{{ None }}|{{ True }}
{{ 1 + 2 * 3 - 4 / 2 }}
{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ -2 ** 2 }}
{{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 7 / 2 }} {{ 6 / 2 }} {{ 1e3 }} {{ 1.5e-7 }} {{ 1e16 }} {{ 123456789012345680.0 }}
{{ 0.1 + 0.2 }} {{ 1/3 }} {{ 1e22 }} {{ 1e-5 }} {{ 0.0001 }} {{ -0.0 }} {{ 100.0 }}
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ 1 % 0 }}
{{ 'a' + 1 }}
{{ 1 + 'a' }}
{{ 'a' + 'b' }}{{ 'ab' * 3 }}{{ 3 * 'ab' }}{{ 'ab' * 0 }}{{ 'ab' * -1 }}
{{ [1] + [2] }}{{ [1, 2] * 2 }}{{ (1,) + (2,) }}
{{ [1] + (2,) }}
{{ 'a' ~ 1 ~ none ~ true ~ 2.0 ~ [1, 'x'] ~ undefined_name }}
{{ 1 ~ 2 }}
{{ true + 1 }}{{ true + true }}
{{ big }} {{ big + 1 }} {{ big * 3 }}
{{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 1_000 }} {{ 1_0.5 }}
{{ 1 == 1.0 }} {{ 1 == true }} {{ 'a' == 'a' }} {{ [1, 2] == [1, 2] }} {{ {'a': 1} == {'a': 1.0} }} {{ (1,) == [1] }}
{{ none == none }} {{ none == false }} {{ undefined_name == undefined_other }} {{ undefined_name == none }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 3 > 2 >= 2 != 1 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ 1 < 1.5 }}
{{ 1 < 'a' }}
{{ none < 1 }}
{{ undefined_name < 1 }}
{{ 'ell' in s }} {{ 'x' in s }} {{ 2 in l }} {{ 'a' in d }} {{ 'z' not in d }} {{ '' in '' }}
{{ 1 in 'abc' }}
{{ 'a' in none }}
{{ 'a' in undefined_name }}
{{ undefined_name in l }}
{{ not t }} {{ not empty }} {{ not l }} {{ not [] }} {{ not 0 }} {{ not none }} {{ not undefined_name }}
{{ t and 'yes' }} {{ empty and 'yes' }} {{ empty or 'no' }} {{ 0 or none }} {{ 1 and 2 and 3 }}
{{ 'a' if t else 'b' }} {{ 'a' if not t else 'b' }} {{ 'a' if false }}|
{{ ('a' if false).x }}
{{ 1 if t else 2 if t else 3 }}
{{ (1, 'a', 2.0, none) }} {{ (1,) }} {{ () }}
{{ 1, 2 }}
{{ [] }} {{ {} }} {{ [[], {}] }}
{{ {'a': 1, "b": [1, 2], 3: none} }}
{{ "it's" }} {{ ["it's"] }} {{ ['say "hi"'] }} {{ ['both \' and "'] }} {{ ['back\\slash'] }} {{ ['new\nline\ttab'] }}
{{ ['é☃', '\x00\x1f\x7f', '\u200b', '日本', '\u00a0', '\U0001f600'] }}
{{ '\n\t\\\'\"\x41\u00e9\101' }}|{{ '\q' }}|{{ "a\
b" }}
{{ 'abc' 'def' "ghi" }}
{{ 'unclosed }}
{{ 1 + }}
{{ }}
{% if %}x{% endif %}
{% unknown %}
{% if t %}x
{% for x in l %}x
{% endif %}
{{ l | nofilter }}
{% if false %}{{ l | nofilter }}{% endif %}ok
{% if false %}{% for q in l %}{{ q | nofilter }}{% endfor %}{% endif %}ok
{{ 1 if true else l|nofilter }}
{{ l is notest }}
{{ l is not defined }} {{ nope is not defined }} {{ l is defined }}
{{ 5 is odd }} {{ 4 is even }} {{ 9 is divisibleby 3 }} {{ 9 is divisibleby(2) }} {{ -3 is odd }}
{{ s is string }} {{ 1 is string }} {{ d is mapping }} {{ l is mapping }} {{ l is iterable }} {{ s is iterable }} {{ 1 is iterable }}
{{ l is sequence }} {{ s is sequence }} {{ d is sequence }} {{ 1 is sequence }} {{ d.items() is sequence }} {{ (1,) is sequence }} {{ range(2) is sequence }}
{{ 1 is number }} {{ 1.5 is number }} {{ true is number }} {{ '1' is number }} {{ 1 is integer }} {{ true is integer }} {{ 1.0 is integer }} {{ 1.0 is float }}
{{ true is boolean }} {{ 1 is boolean }} {{ true is true }} {{ false is false }} {{ 1 is true }} {{ none is none }} {{ 0 is none }}
{{ 'abc' is lower }} {{ 'ABC' is upper }} {{ 'aBC' is upper }} {{ '123' is lower }} {{ 'É' is upper }}
{{ 1 is eq 1 }} {{ 1 is equalto 2 }} {{ 1 is ne 2 }} {{ 1 is lt 2 }} {{ 1 is gt 2 }} {{ 2 is ge 2 }} {{ 2 is le 1 }} {{ 1 is sameas 1 }} {{ none is sameas none }}
{{ 1 is in [1, 2] }} {{ 3 is not in [1, 2] }} {{ 'a' is in 'abc' }} {{ 1 is greaterthan 0 }} {{ 1 is lessthan 0 }}
{{ 'upper' is filter }} {{ 'nope' is filter }} {{ 'odd' is test }} {{ range is callable }} {{ s is callable }} {{ undefined_name is callable }}
{{ undefined_name is string }} {{ undefined_name is iterable }} {{ undefined_name is sequence }} {{ undefined_name is mapping }} {{ undefined_name is none }}
{{ undefined_name is odd }}
{{ s is string and l is iterable }} {{ not s is string }} {{ 1 is odd if t else 2 }}
{{ s is defined is string }}
{{ html|escape }} {{ html|e }} {{ (html|e)|e }} {{ html|safe }} {{ (html|safe)|e }} {{ html|forceescape }}
{{ (html|e) + '<b>' }} {{ (html|e) ~ '<b>' }} {{ '<' ~ ('>'|e) }} {{ ['<'|e] }} {{ ('<'|e)|upper }} {{ ('<'|e) is escaped }} {{ '<' is escaped }}
{{ '%s' | format('<') }} {{ ('%s'|safe) % '<' }}
{{ s|upper }} {{ s|lower }} {{ s|title }} {{ s|capitalize }} {{ 'hello wORLD-foo (bar) [baz]'|title }} {{ "they're"|title }} {{ "they're".title() }}
{{ 'ß ŉ ǆ İ ΑΣ ΑΣΑ'|upper }} {{ 'ß İ ΑΣ ΑΣ. ΟΔΥΣΣΕΥΣ'|lower }} {{ 'ǆ ßx'|capitalize }} {{ 'ǆ ßx ŉ'.title() }} {{ 'Straße'.casefold() }} {{ 'aBcÉ'.swapcase() }}
{{ 5|upper }} {{ none|upper }} {{ undefined_name|upper }}| {{ true|lower }}
{{ pad|trim }}|{{ pad|trim(' \n') }}|{{ '..x..'|trim('.') }}|{{ '\u3000\u2003x\u00a0'|trim }}|{{ '\u200bx'|trim|length }}
{{ s|length }} {{ l|length }} {{ d|length }} {{ u|count }} {{ undefined_name|length }}
{{ 5|length }}
{{ none|length }}
{{ s|replace('o', '0') }} {{ s|replace('o', '0', 1) }} {{ s|replace('', '-') }} {{ 5|replace(5, 6) }} {{ s|replace('l', '') }} {{ none|replace('N','n') }}
{{ s.replace('o', '0', 1) }} {{ 'aaa'.replace('aa', 'b') }} {{ ''.replace('', 'x') }}
{{ l|join(', ') }} {{ l|join }} {{ users|join(', ', attribute='name') }} {{ s|join('-') }} {{ [1, none, true]|join('|') }} {{ d|join('+') }}
{{ 5|join }}
{{ ', '.join(words) }}
{{ ', '.join(l) }}
{{ undefined_name|default('dflt') }} {{ none|default('dflt') }} {{ empty|default('dflt', true) }} {{ empty|d('x') }}| {{ undefined_name|default }}| {{ n|default('x', boolean=true) }} {{ undefined_name|default(default_value=3) }}
{{ undefined_name.x|default('dflt') }}
{{ d.missing|default('dflt') }} {{ l[9]|default(9) }}
{{ l|first }} {{ l|last }} {{ s|first }} {{ s|last }} {{ []|first }}| {{ []|last }}| {{ d|first }} {{ d|last }} {{ range(4)|last }} {{ undefined_name|first }}| {{ undefined_name|last }}|
{{ ([]|first).x }}
{{ 5|first }}
{{ 5|last }}
{{ (l|map('string'))|last }}
{{ l|sort }} {{ l|sort(reverse=true) }} {{ words|sort }} {{ words|sort(case_sensitive=true) }} {{ words|sort(true, true) }}
{{ users|sort(attribute='age')|map(attribute='name')|list }} {{ users|sort(attribute='age,name')|map(attribute='name')|list }} {{ users|sort(attribute='name', reverse=true)|map(attribute='name')|join(' ') }}
{{ mixed|sort }}
{{ d|sort }} {{ 'hello'|sort }} {{ (3,1)|sort }}
{{ d|dictsort }} {{ d|dictsort(true) }} {{ d|dictsort(false, 'value') }} {{ d|dictsort(by='value', reverse=true) }}
{{ d|dictsort(by='x') }}
{{ l|dictsort }}
{{ undefined_name|dictsort }}
{{ d|items|list }} {{ undefined_name|items|list }}
{{ l|items|list }}
{{ l|items is defined }}
{{ d.items() }} {{ d.keys() }} {{ d.values() }} {{ d.keys()|list }} {{ d.items()|list }} {{ d.values()|sum }} {{ d.items()|length }}
{{ deep.items }} {{ deep['items'] }} {{ deep.list[0].n }} {{ deep.x.y.z }} {{ deep['x']['y'].z }}
{{ d.get('a') }} {{ d.get('z') }} {{ d.get('z', 'dd') }} {{ deep.get('items') }}
{{ d.get([]) }}
{{ d[[]] }}|
{{ d[l] }}|
{{ {[]: 1} }}
{{ {'a': 1}['a'] }} {{ {1: 'x'}[1] }} {{ {1: 'x'}[true] }} {{ {1: 'x'}[1.0] }} {{ {none: 'x'}[none] }} {{ {(1, 2): 'x'}[1, 2] }}
{{ {'a': 1, 'a': 2} }} {{ {1: 'a', true: 'b', 1.0: 'c'} }}
{{ d.pop('a') }}
{{ d.pop }}|{{ d.update is defined }}
{{ d.update({'x': 1}) }}
{{ l.append(4) }}
{% set _ = l.append(4) %}
{{ l.append is defined }} {{ l.append }}|
{{ l.index(1) }} {{ l.count(3) }} {{ 'hello'.index('l') }} {{ 'hello'.count('l') }} {{ (1, 2, 1).count(1) }} {{ 'hello'.count('') }}
{{ l.index(9) }}
{{ 'hello'.index('z') }}
{{ 'hello'.find('l') }} {{ 'hello'.rfind('l') }} {{ 'hello'.find('z') }} {{ u.find('日') }} {{ 'hello'.find('l', 3) }} {{ 'hello'.find('l', -2, -1) }} {{ 'abc'.find('', 3) }} {{ 'abc'.find('', 4) }}
{{ 'a,b,,c'.split(',') }} {{ 'a,b,,c'.split(',', 1) }} {{ 'a,b,,c'.rsplit(',', 1) }} {{ ' a  b c '.split() }} {{ ' a  b c '.split(none, 1) }} {{ ' a  b c '.rsplit(none, 1) }} {{ ''.split() }} {{ ''.split(',') }} {{ 'abc'.split('abc') }}
{{ 'a'.split('') }}
{{ 'a--b--c'.split('--', maxsplit=1) }} {{ 'a--b--c'.rsplit('--') }} {{ 'aaaa'.rsplit('aa', 1) }} {{ 'aaa'.split('aa') }} {{ 'aaa'.rsplit('aa') }}
{{ text.splitlines() }} {{ text.splitlines(true) }} {{ 'a\x0bb\x1cc\u2028d'.splitlines() }} {{ ''.splitlines() }} {{ '\n'.splitlines() }}
{{ 'a=b=c'.partition('=') }} {{ 'a=b=c'.rpartition('=') }} {{ 'abc'.partition('x') }} {{ 'abc'.rpartition('x') }}
{{ s.startswith('Hell') }} {{ s.endswith('d') }} {{ s.startswith(('x', 'H')) }} {{ s.startswith('W', 6) }} {{ s.startswith('') }} {{ s.endswith('o', 0, 5) }}
{{ s.startswith(['H']) }}
{{ s.startswith(5) }}
{{ s.startswith(undefined_name) }}
{{ pad.strip() }}|{{ pad.lstrip() }}|{{ pad.rstrip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'xyaxy'.lstrip('yx') }}|{{ '\n\nx\n'.strip('\n') }}|{{ 'x'.strip(none) }}
{{ s.upper() }}{{ s.lower() }}{{ s.capitalize() }}{{ 'a'.center(5) }}|{{ 'ab'.center(5, '*') }}|{{ 'a'.ljust(3, '.') }}|{{ 'a'.rjust(3) }}|{{ '7'.zfill(3) }}|{{ '-7'.zfill(4) }}
{{ 'a\tb'.expandtabs() }}|{{ 'a\tb'.expandtabs(4) }} {{ 'prefix-x'.removeprefix('prefix-') }} {{ 'x.txt'.removesuffix('.txt') }}
{{ 'abc'.isalpha() }} {{ 'ab1'.isalnum() }} {{ '12'.isdigit() }} {{ '²'.isdigit() }} {{ '½'.isnumeric() }} {{ ' '.isspace() }} {{ ''.isalpha() }} {{ 'A b'.istitle() }} {{ 'Ab Cd'.istitle() }} {{ 'a_1'.isidentifier() }} {{ 'AB'.isupper() }} {{ 'é'.isascii() }}
{{ 'abc'.nomethod }}|
{{ 'abc'.nomethod() }}
{{ 'abc'.__class__ }}|
{{ 'abc'.__class__.__mro__ }}
{{ ''.__class__ is defined }}
{{ d._private }}|
{{ '{} {}'.format(1, 'a') }} {{ '{0}{1}{0}'.format('a', 'b') }} {{ '{x}'.format(x=5) }} {{ '{:>5}|{:<5}|{:^5}|{:05d}|{:.2f}|{:,}'.format('a', 'b', 'c', 42, 3.14159, 1234567) }}
{{ '{0[a]} {0.x}'.format({'a': 1, 'x': 2}) }} {{ '{!r:>6}'.format('a') }} {{ '{{}}'.format() }} {{ '{:{}}'.format('a', 3) }} {{ '{:x} {:#x} {:b} {:o} {:e} {:g} {:%}'.format(255, 255, 5, 8, 1234.5, 0.00001, 0.5) }} {{ '{:+d} {: d}'.format(3, 4) }}
{{ '{}'.format() }}
{{ '{'.format(1) }}
{{ '{} {0}'.format(1) }}
{{ '{}'.format(none) }}{{ '{}'.format([1]) }}{{ '{:5}'.format(2.5) }}{{ '{:.3}'.format('abcdef') }}{{ '{:.3}'.format(3.14159) }}{{ '{}'.format(true) }}{{ '{:d}'.format(true) }}
{{ '%s %d %r' % ('a', 3, 'b') }} {{ '%05.1f|%-5s|%5s|%x|%%' % (3.14159, 'ab', 'cd', 255) }} {{ '%s' % 5 }} {{ '%(a)s' % {'a': 1} }} {{ '%s' % [1, 2] }} {{ '%c%c' % (65, 'b') }} {{ '%+d % d %i' % (1, 2, 3.9) }} {{ '%e %g %G' % (1.5, 1e-10, 1e20) }} {{ '%.3d' % 7 }} {{ '%#x' % 255 }} {{ '%-8.3f|' % 2.5 }}
{{ '%s %s' % 'a' }}
{{ '%s' % ('a', 'b') }}
{{ '%d' % 'x' }}
{{ 'abc' % 5 }}
{{ 'abc' % {} }}{{ 'abc' % [] }}
{{ '%s'|format('x') }} {{ '%(a)s'|format(a=1) }} {{ '%s and %s'|format(1, 2) }}
{{ tool|tojson }}
{{ tool|tojson(indent=2) }}
{{ tool|tojson(indent=4) }}
{{ tool|tojson(separators=(',', ':')) }} {{ d|tojson(sort_keys=true) }} {{ u|tojson }} {{ u|tojson(ensure_ascii=true) }}
{{ mixed|tojson }} {{ (1, 2)|tojson }} {{ 1.0|tojson }} {{ 1e100|tojson }} {{ none|tojson }} {{ true|tojson }} {{ {1: 2, none: 3, true: 4, 1.5: 5}|tojson }} {{ ''|tojson }} {{ '\u0001\x7f/\b\f'|tojson }}
{{ []|tojson(indent=2) }} {{ {}|tojson(indent=2) }} {{ [[], {}]|tojson(indent=2) }} {{ [1, [2, {'a': 3}]]|tojson(indent=1) }} {{ [1]|tojson(indent='--') }} {{ [1, 2]|tojson(indent=0) }}
{{ undefined_name|tojson }}
{{ d.items()|tojson }}
{{ d.values()|list|tojson }}
{{ (l|map('string'))|tojson }}
{{ range(3)|tojson }}
{{ (html|e)|tojson }} {{ html|tojson }}
{{ namespace(a=1)|tojson }}
{{ '3.7'|int }} {{ '12'|int }} {{ 'x'|int }} {{ 'x'|int(7) }} {{ '0x1A'|int(base=16) }} {{ '1_000'|int }} {{ 3.9|int }} {{ -3.9|int }} {{ true|int }} {{ none|int }} {{ ' 12 '|int }} {{ ''|int }} {{ '1e3'|int }} {{ 'inf'|int }} {{ []|int(5) }} {{ '101'|int(0, 2) }}
{{ undefined_name|int }}
{{ '3.7'|float }} {{ 'x'|float }} {{ 5|float }} {{ '1e3'|float }} {{ 'nan'|float }} {{ '-inf'|float }} {{ none|float(1.5) }} {{ '1_0.5'|float }} {{ 'infinity'|float }}
{{ 2.5|round }} {{ 3.5|round }} {{ 2.567|round(2) }} {{ 2.567|round(1, 'ceil') }} {{ 2.567|round(1, 'floor') }} {{ 5|round }} {{ 1234.5|round(-2) }} {{ 1250|round(-2) }} {{ 1350|round(-2) }} {{ -2.5|round }} {{ 0.5|round }} {{ 2.675|round(2) }} {{ 7|round(1) }} {{ 7|round(0, 'ceil') }}
{{ 2.5|round(0, 'odd') }}
{{ 'a'|round }}
{{ -5|abs }} {{ 5.5|abs }} {{ (-5.5)|abs }} {{ true|abs }} {{ neg|abs }}
{{ 'a'|abs }}
{{ l|sum }} {{ users|sum(attribute='age') }} {{ []|sum }} {{ l|sum(start=10) }} {{ [1.5, 2]|sum }} {{ [[1], [2]]|sum(start=[]) }}
{{ ['a']|sum }}
{{ l|min }} {{ l|max }} {{ words|min }} {{ words|max }} {{ words|max(case_sensitive=true) }} {{ users|min(attribute='age') }} {{ []|min }}| {{ 'hello'|max }} {{ users|max(attribute='name') }}
{{ l|reverse }}
{{ l|reverse|list }} {{ s|reverse }} {{ u|reverse }} {{ d|reverse|list }} {{ (1, 2)|reverse|list }} {{ l|reverse|join }} {{ range(3)|reverse|list }}
{{ 5|reverse }}
{{ [1, 2, 1, 'a', 'A']|unique|list }} {{ words|unique|list }} {{ words|unique(true)|list }} {{ users|unique(attribute='age')|map(attribute='name')|list }}
{{ [[1], [1]]|unique|list }}
{{ l|map('string')|list }} {{ words|map('upper')|join(' ') }} {{ users|map(attribute='name')|list }} {{ users|map(attribute='address.city', default='-')|list }} {{ users|map(attribute='address')|list }} {{ l|map('float')|list }} {{ words|map('replace', 'a', 'b')|list }} {{ nested|map('first')|list }} {{ nested|map(attribute=0)|list }} {{ nested|map(attribute='1')|list }}
{{ l|map|list }}
{{ l|map('nofilter')|list }}
{{ l|map('nofilter') is defined }}
{{ undefined_name|map('upper')|list }} {{ none|map('upper')|list }} {{ 5|map('upper') is defined }}
{{ 5|map('upper')|list }}
{{ [0, 1, '', 'a', none]|select|list }} {{ [0, 1, '', 'a', none]|reject|list }} {{ l|select('odd')|list }} {{ l|reject('gt', 1)|list }} {{ l|select('in', [1, 2])|list }} {{ mixed|select('string')|list }}
{{ users|selectattr('role', 'equalto', 'user')|map(attribute='name')|list }} {{ users|selectattr('address')|list|length }} {{ users|rejectattr('age', 'eq', 30)|list|length }} {{ users|selectattr('address.city', 'defined')|map(attribute='name')|list }} {{ users|rejectattr('address', 'defined')|list|length }} {{ users|selectattr('age', '>', 26)|list|length }}
{{ users|selectattr|list }}
{{ users|selectattr('age', 'notest')|list }}
{% if users|selectattr('role', 'equalto', 'nobody') %}generators are true{% endif %}
{% set g = l|map('string') %}{{ g|list }}{{ g|list }}
{% set g = l|map('string') %}{{ g|first }}{{ g|first }}{{ g|list }}
{{ (l|map('string'))|length }}
{{ (l|map('string'))[0] }}|
{{ [1, 2, 3, 4, 5]|batch(2)|list }} {{ [1, 2, 3, 4, 5]|batch(2, 0)|list }} {{ [1, 2, 3, 4, 5]|slice(2)|list }} {{ [1, 2, 3, 4, 5]|slice(3, 'x')|list }}
{{ users|groupby('age')|map('first')|list }} {% for age, us in users|groupby('age') %}{{ age }}:{{ us|map(attribute='name')|join('/') }};{% endfor %} {% for g in users|groupby('role') %}{{ g.grouper }}={{ g.list|length }} {% endfor %}
{{ 'line1\nline2\n\nline4'|indent }}|{{ 'a\nb'|indent(2, true) }}|{{ 'a\n\nb'|indent(2, blank=true) }}|{{ 'a\nb'|indent('> ') }}|{{ 'a\n'|indent }}|{{ ''|indent }}|{{ 'a\r\nb'|indent(1) }}
{{ 5|indent }}
{{ 'a long text that is cut'|truncate(10) }}|{{ 'a long text that is cut'|truncate(10, true) }}|{{ 'short'|truncate(10) }}|{{ 'a long text here'|truncate(11, false, '!', 0) }}|{{ 'abcdefghijkl'|truncate(8) }}
{{ 'x'|truncate(2) }}
{{ 'a'|center(5) }}|{{ 'abc def'|wordcount }}|{{ 'a b/c?é'|urlencode }}|{{ {'a b': 1, 'c': 'd&e'}|urlencode }}
{{ 5|string + 'x' }} {{ none|string }} {{ l|string }} {{ 1.50|string }} {{ undefined_name|string }}|
{{ s|list }} {{ d|list }} {{ range(3)|list }} {{ (1, 2)|list }} {{ undefined_name|list }} {{ u[:3]|list }}
{{ 5|list }}
{{ none|list }}
{{ 5|attr('real') }} {{ d|attr('missing') }}| {{ s|attr('upper') is callable }} {{ d|attr('a') }}|
{% for i in l %}{{ i }}{% if not loop.last %}, {% endif %}{% endfor %}
{% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }} {% endfor %}
{% for i in l %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }} {% endfor %}
{% for i in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }} {% endfor %}
{% for i in 'aab' %}{{ loop.changed(i) }} {{ loop.cycle('x', 'y') }} {% endfor %}
{% for i in [] %}x{% else %}none{% endfor %}
{% for i in undefined_name %}x{% else %}none{% endfor %}
{% for i in none %}x{% endfor %}
{% for i in 5 %}x{% endfor %}
{% for c in u %}[{{ c }}]{% endfor %}
{% for k in d %}{{ k }}{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}
{% for k, v in d|dictsort %}{{ k }}={{ v }};{% endfor %}
{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% for a, b in [(1, 2, 3)] %}x{% endfor %}
{% for a, b in [(1,)] %}x{% endfor %}
{% for a, b in [5] %}x{% endfor %}
{% for a, b in ['xy', 'zw'] %}{{ a }}-{{ b }} {% endfor %}
{% for i in l if i > 1 %}{{ i }}{{ loop.index }}{{ loop.length }} {% endfor %}
{% for i in l if i > 5 %}x{% else %}nothing{% endfor %}
{% for i in range(5) if i is odd %}{{ i }}{{ loop.last }}{% endfor %}
{% for i in range(5) %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}
{% for i in range(5) %}{% if i % 2 %}{% continue %}{% endif %}{{ i }}{% endfor %}
{% for i in range(3) %}{% break %}{% else %}else runs{% endfor %}
{% for i in range(3) %}{% continue %}{% else %}else runs{% endfor %}
{% for i in range(2) %}{{ i }}{% else %}no else{% endfor %}
{% break %}
{% for i in l %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}
{% for i in [1, 2] %}{% for j in [3, 4] %}{{ i }}{{ j }}{{ loop.index }}{% endfor %}{{ loop.index }} {% endfor %}
{% for i in [1, 2] %}{% set outer = loop %}{% for j in [3, 4] %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}
{% for i in l|map('string') %}{{ loop.length }}{{ i }}{{ loop.last }} {% endfor %}
{% for i in l|select('odd') %}{{ i }}{{ loop.last }}{{ loop.revindex }} {% endfor %}
{% for n in nested recursive %}{% if n is iterable %}<{{ loop(n) }}>{{ loop.depth }}{% else %}{{ n }}{% endif %}{% endfor %}
{% for i in l %}{{ loop(l) }}{% endfor %}
{{ loop }}|{{ loop.index }}
{% for loop in l %}x{% endfor %}
{% for i in l %}{% set loop = 1 %}{% endfor %}
{% for i in l %}{{ loop.nothing }}|{% endfor %}
{% for i in l %}{{ i }}{% endfor %}{{ i }}
{% for s in l %}{{ s }}{% endfor %}{{ s }}
{% for x in [x, x] %}{{ x }}{% endfor %}{{ x }}
{% set x = 1 %}{{ x }}
{{ x }}{% set x = 1 %}{{ x }}
{% if false %}{% set x = 1 %}{% endif %}{{ x }}
{% if true %}{% set x = 1 %}{% endif %}{{ x }}
{% for i in l %}{{ x }}{% endfor %}{% set x = 1 %}{{ x }}
{% for i in l %}{% set x = i %}{{ x }}{% endfor %}{{ x }}
{% for i in l %}{{ x }}{% set x = i %}{% endfor %}
{% set y = 0 %}{% for i in l %}{{ y }}{% set y = y + i %}{% endfor %}{{ y }}
{% set y = 0 %}{% for i in l %}{% if i == 1 %}{% set y = 5 %}{% endif %}{{ y }}{% endfor %}{{ y }}
{% for i in l %}{% if i == 1 %}{% set z = 5 %}{% endif %}{{ z }}|{% endfor %}
{% if true %}{% set a1 = 1 %}{% else %}{% set a2 = 2 %}{% endif %}{{ a1 }}|{{ a2 }}
{% set ns = namespace(total=0) %}{% for i in l %}{% set ns.total = ns.total + i %}{% endfor %}{{ ns.total }}
{% set ns = namespace() %}{% set ns.a = [1] %}{% set ns.b = ns.a + [2] %}{{ ns.a }}{{ ns.b }}{{ ns.c }}| {{ ns }} {{ ns.c is defined }}
{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns.b }}{{ ns['a'] }}
{% set ns = namespace(_x=1) %}
{% set ns = namespace() %}{% set ns._x = 1 %}
{% set d.a = 1 %}
{% set undefined_name.a = 1 %}
{% set a, b = 1, 2 %}{{ a }}{{ b }}
{% set a, b = 'xy' %}{{ a }}{{ b }}
{% set a, b = [1] %}
{% set (a, b), c = (1, 2), 3 %}{{ a }}{{ b }}{{ c }}
{% set ns = namespace() %}{% set ns.p, ns.q = 1, 2 %}{{ ns.p }}{{ ns.q }}
{% set a = 1, %}{{ a }}
{% set block %}text {{ i }}{% endset %}[{{ block }}] {{ block|length }}
{% set block | upper %}text {{ s }}{% endset %}{{ block }}
{% set block | replace('t', 'T') | trim %} text {% endset %}{{ block }}
{% set true = 1 %}
{% set 'a' = 1 %}
{% set a.b.c = 1 %}
{% macro m(a, b=2, c='x') %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(1, c='z') }} {{ m(b=5, a=4) }} {{ m() }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(z=2) }}
{% macro m(a) %}{{ a is defined }}{{ a }}{% endmacro %}{{ m() }}
{% macro m(a) %}{{ a.x }}{% endmacro %}{{ m() }}
{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, k=3) }}
{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}
{% macro m(a=b, b=1) %}{{ a }}{{ b }}{% endmacro %}{{ m() }}
{% macro m(a=1, b) %}{% endmacro %}
{% macro m(a, a) %}{% endmacro %}
{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% set x = 'changed' %}{{ m() }}
{% macro m() %}{% set x = 'inner' %}{{ x }}{% endmacro %}{{ m() }}{{ x }}
{% macro m() %}{{ later() }}{% endmacro %}{% macro later() %}L{% endmacro %}{{ m() }}
{% macro fact(k) %}{{ 1 if k <= 1 else k * fact(k - 1)|int }}{% endmacro %}{{ fact(5) }}
{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}
{% macro m() %}{{ caller() }}|{{ caller() }}{% endmacro %}{% call m() %}body {{ x }}{% endcall %}
{% macro m() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b) m() %}{{ a }}+{{ b }}{% endcall %}
{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}{% call m() %}{% endcall %}
{% macro m() %}no caller{% endmacro %}{% call m() %}x{% endcall %}
{% macro m(caller=none) %}{{ caller() if caller else 'none' }}{% endmacro %}{{ m() }}{% call m() %}c{% endcall %}
{% macro m() %}x{% endmacro %}{{ m }} {{ m.name }} {{ m.arguments }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(*[1]) }}{{ m(**{'a': 2}) }}
{% macro m(a) %}  {{ a }}  {% endmacro %}[{{ m('x')|trim }}]
{% macro outer() %}{% macro inner() %}in{% endmacro %}{{ inner() }}{% endmacro %}{{ outer() }}{{ inner is defined }}
{% for i in l %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}
{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}
{% with x = x ~ '!' %}{{ x }}{% endwith %}{{ x }}
{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q }}
{% filter upper %}text {{ s }}{% endfilter %}
{% filter replace('l', 'L') | trim %} hello {% endfilter %}|
{% generation %}gen {{ s }}{% set g = 1 %}{% endgeneration %}{{ g }}
{% block content %}in block {{ s }}{% endblock %}
{% set s = 'set' %}{% block content %}{{ s }}{% endblock content %}
{% autoescape false %}{{ html }}{% endautoescape %}
{% print s, 1 %}
{% raw %}{{ not rendered }} {% if %}{% endraw %}
{% raw -%}   a {%- endraw %}  b
{# comment {{ s }} #}a{#- c -#}  b
{# unclosed
{{ s
{% if t
{{ raise_exception('my message') }}
{{ raise_exception('unicode ☃ \'quoted\'') }}
{{ raise_exception(5) }}
{{ raise_exception() }}
{% if false %}{{ raise_exception('no') }}{% endif %}fine
{{ strftime_now('%Y-%m-%d') }} {{ strftime_now('%d %b %Y') }} {{ strftime_now('') }}| {{ strftime_now('%%x') }} {{ strftime_now('%B %-d, %H:%M:%S %j %A') }}
{{ strftime_now(5) }}
{{ range(3) }} {{ range(1, 4)|list }} {{ range(5, 0, -2)|list }} {{ range(0)|list }} {{ range(1, 9, 2) }} {{ 3 in range(5) }} {{ range(3)|length }}
{{ range(1000000) }}
{{ range(0, 5, 0) }}
{{ range('a') }}
{{ dict(a=1, b=2) }} {{ dict({'x': 1}, y=2) }} {{ dict([('a', 1)]) }} {{ dict() }} {{ dict.fromkeys(['a', 'b'], 0) }}
{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.current }}
{% set j = joiner(', ') %}{% for i in l %}{{ j() }}{{ i }}{% endfor %}
{{ s() }}
{{ undefined_name() }}
{{ d.a() }}
{{ none() }}
{{ s.upper }}x
{{ l.0 }} {{ l.2 }} {{ nested.1.0 }} {{ d.0 }}|
{{ (l)[0] }} {{ [1, 2][0] }} {{ 'abc'[1] }} {{ {'a': [1, 2]}.a[1] }} {{ l[0:2][1] }} {{ l[true] }} {{ l['0'] }}| {{ l[1.0] }}|
{{ none[0] }}|{{ none.x }}|{{ 5[0] }}|{{ 5.5.x }}|
{{ n[0:1] }}
{{ undefined_name[0:1] }}
{{ d[0:1] }}
{{ i[0:1] }}
{{ s[1:'a'] }}
{{ -i }} {{ +i }} {{ - -i }} {{ -true }} {{ -f }}
{{ -s }}
{{ -undefined_name }}
{{ -1|abs }} {{ (-1)|abs }} {{ 2 * 3|string }} {{ 1 + 2|int }} {{ not 1 == 2 }} {{ not 1 in l }} {{ 2 ** 3 ** 2 }} {{ -2 ** 2 }} {{ 2 + 3 ~ 4 + 5 }} {{ 'a' ~ 1 + 2 }}
{{ 1 if 0 else 2 + 3 }} {{ 1 or 2 and 3 }} {{ (1 or 2) and 3 }} {{ true if 1 == 1 and 2 > 1 else false }} {{ 'a' in 'abc' and 'b' in 'abc' }} {{ l|length > 2 }} {{ l|length + 1 }} {{ l | first | string ~ 'x' }}
{{ s.upper().lower().title()[0] }} {{ s|upper|lower|first }} {{ (s ~ 'x')|length }} {{ users[0].name[0] }} {{ users[-1]['address'].city }} {{ users[0]['na' ~ 'me'] }}
{{ 1 is odd and 2 is even }} {{ (1 is odd) == true }} {{ 1 is not even or false }}
{{ true and not false }} {{ not true or true }} {{ (not true) or true }}
{{ 'a' 'b' ~ 'c' }} {{ "x" if "" else "y" }} {{ '' or 'z' }} {{ none or [] or {} or 'last' }}
  {% if t %}
  indented
  {% endif %}
after
a
  {%- if t -%}
  b
  {%- endif -%}
  c
a {%+ if t %} b {%+ endif %} c
a   {%- if t %}   b   {%- endif %}   c
   {{ s }}   {{- s }}   {{ s -}}   x
{%- if t %}
x
{%- endif %}

{% for i in l -%}
  {{ i }},
{%- endfor %}
    {% set q = 1 %}
  x{{ q }}
line {# c #}
  {# c #}
next
	{% if t %}	tab{% endif %}	

trailing newline

x{% if t %}

y{% endif %}

z
{% if t +%}
x{% endif %}
{% if t -%}
   x{% endif %}
{{ 'a}}b' }}{{ "%}" }}{{ {'a': {'b': 1}} }}
{{ {'a': 1}}}
{ { s } } {%% }} %} #} {
{{ 'é' }}é{{ é }}
{% set é = 5 %}{{ é + 1 }}
{{ s!r }}
{{ s ? 1 : 2 }}
{{ a b }}
{{ l[ }}
{{ (1 }}
{{ 1) }}
{{ f(a=1, 2) }}
{{ f(**d, *l) }}
{{ dict(**{'a': 1}) }} {{ dict(*[[('a', 1)]]) }}
{{ [1, 2, ] }} {{ {'a': 1, } }} {{ dict(a=1, ) }}
{{ [, ] }}
{{ 1 < 2 == true }} {{ 1 == 1 in [true] }} {{ (1 == 1) in [true] }}
{{ 'x' if undefined_name else 'y' }} {{ 'x' if undefined_name is defined and undefined_name.foo else 'y' }}
{{ undefined_name + 1 }}
{{ undefined_name ~ 'a' }} {{ undefined_name or 'b' }}
{{ 'a' + undefined_name }}
{{ undefined_name|trim }}|{{ undefined_name|join }}|{{ undefined_name|sort }}|{{ undefined_name|sum }}|{{ undefined_name|unique|list }}|{{ undefined_name|title }}|{{ undefined_name|e }}|{{ undefined_name|reverse|list }}
{{ undefined_name|abs }}
{{ undefined_name|indent }}
{{ undefined_name|float }}
{{ undefined_name|truncate }}|{{ undefined_name|replace('a', 'b') }}|{{ undefined_name|min }}|
{{ n.x }}|{{ n.x is defined }}
{{ n + 'a' }}
{{ [undefined_name] }} {{ {'a': undefined_name} }} {{ (undefined_name,) }}
{{ messages }}|{{ messages|length }}
{{ lipsum is defined }} {{ range is defined }} {{ namespace is defined }} {{ raise_exception is defined }} {{ strftime_now is defined }}
{% include 'x' %}
{% import 'x' as y %}
{% extends 'x' %}
{% trans %}x{% endtrans %}
{% do l.append(1) %}
{% if l %}{% elif d %}{% else %}{% endif %}{% if 0 %}a{% elif '' %}b{% elif [] %}c{% else %}e{% endif %}
{% if s and (l or d) and not empty %}yes{% endif %}
{% if s == 'Hello World' and l[0] == 3 or false %}yes{% endif %}
{% if x is string and x|length > 3 %}yes{% endif %}
{% if 'x' in {'x': 1} and 'x' in ['x'] and 'x' in 'xyz' %}yes{% endif %}
{% if l|length is divisibleby 3 %}yes{% endif %}
{% if d.a == 2 %}{% if d.b == 1 %}nested{% endif %}{% endif %}
{{ tool.function.name }} {{ tool['function']['parameters'].properties.city.enum[1] }} {{ tool.function.parameters.required|join }}
{% for k, v in tool.function.parameters.properties.items() %}{{ k }}: {{ v.type }} {{ v.enum|join('|') }}{% endfor %}
{% for name, param in tool.function.parameters.properties|items %}{{ name }}{{ param|tojson }}{% endfor %}
{%- for u in users -%}{{ u.name }}{{ ", " if not loop.last else "" }}{%- endfor -%}
{% for u in users %}{{- u['name'] -}}{% endfor %}
{% set content = users|map(attribute='name')|join('\n') %}{{ content }}
{% set parts = 'a</think>b</think>c'.split('</think>') %}{{ parts[-1].lstrip('\n') }} {{ parts[0].split('<think>')[-1] }} {{ parts|length }}
{% set x = 'a' if t else none %}{{ x }}{% set x = x ~ 'b' %}{{ x }}
{% set ns = namespace(found=false) %}{% for m in users[::-1] %}{% if m.role == 'user' and not ns.found %}{% set ns.found = true %}{{ m.name }}{% endif %}{% endfor %}
{% set l2 = l + [loop] %}{{ l2 }}
{{ l + [4] }}{{ l }}
{{ [x, x ~ '!']|join(' ') }}
{{ mixed }} {{ nested }} {{ users[2] }}
{{ 1.0 }} {{ 1.10 }} {{ 3.0e2 }} {{ 1e5 }} {{ 12345.678 }} {{ 1e15 }} {{ 123456789.123456789 }} {{ 5e-324 }} {{ 1.7976931348623157e308 }}
{{ 'a' < 'B' }} {{ 'é' > 'z' }} {{ '' < 'a' }} {{ 'abc' < 'abd' }} {{ (1, 'a') < (1, 'b') }}
{{ 3|default(1) }} {{ false|default(1) }} {{ false|default(1, true) }} {{ 0|d(7, true) }}
{{ l is sameas l }} {{ d is sameas d }} {{ true is sameas true }} {{ 1 is sameas true }}
{{ users|map(attribute='age')|unique|list }} {{ users|map('attr', 'name')|list }}
{{ users|map(attribute='role')|map('upper')|select('equalto', 'USER')|list|length }}
{{ d|tojson|length }} {{ d|tojson|upper }} {{ (d|tojson)[0] }}
{{ '%s' % none }} {{ '%s' % true }} {{ '%s' % 1.0 }} {{ '%d' % true }} {{ '%5.2f%%' % 12.345 }}
{{ 'abc'|list|join('-') }} {{ 'abc'|map('upper')|join }} {{ ('abc', 'def')|join(' ') }} {{ {'x': 1}|list|first }}
{{ [3, 1, 2]|sort|first }} {{ [[2, 'b'], [1, 'a']]|sort }} {{ [[2, 'b'], [1, 'a']]|sort(attribute=1) }} {{ ['b', 'A', 'c']|sort|join }} {{ [true, false]|sort }} {{ [1.5, 1, 2]|sort }}
{{ [none, 1]|sort }}
{{ [1, 2][-1] }} {{ [1, 2][-3] }}| {{ [[1, 2], [3]][0][1] }} {{ [1, 2, 3][-2:] }} {{ 'abc'[-2:] }} {{ [1, 2, 3][::2] }}
{{ 'a\\nb' }} {{ 'a\nb'|replace('\n', '\\n') }} {{ "a\"b" }} {{ 'tab\there' }} {{ '\é' }} {{ '\u00E9\U0001F600' }}
{{ '\uD83D' }}
{{ '\xZZ' }}
{% set ns = namespace(x=namespace(y=1)) %}{{ ns.x.y }} {% set ns.x.y = 2 %}
{% for a in [1, 2, 3] %}{% for b in [1, 2, 3] %}{% if b == 2 %}{% break %}{% endif %}{{ a }}{{ b }} {% endfor %}{% if a == 2 %}{% break %}{% endif %}{% endfor %}
{% for i in range(3) %}{% set v %}{{ i }}{% if i == 1 %}{% continue %}{% endif %}{% endset %}[{{ v }}]{% endfor %}
{% macro render(items, level=0) %}{% for it in items %}{{ '  ' * level }}- {{ it if it is not iterable else 'list' }}
{% if it is iterable %}{{ render(it, level + 1) }}{% endif %}{% endfor %}{% endmacro %}{{ render(nested) }}
{{ s.split(' ')|map('lower')|map('first')|list }} {{ 'k: v'.split(': ')[1] }} {{ ' '.join(['a', 'b']) }} {{ s.split()|last }}
{{ "Today" ~ ": " ~ strftime_now("%d %b %Y") }}
{{ {'role': 'user'} in users }} {{ users[0] in users }} {{ users[0] == {'name': 'Bob', 'age': 30, 'role': 'admin'} }}
{{ l == [3, 1, 2] }} {{ l != [3, 1] }} {{ [1, [2, 3]] == [1, [2, 3]] }} {{ 1.5 in [1.5] }} {{ 'a' not in ['b'] }}
{{ d is mapping and d is not string }} {{ d.items() is iterable }} {{ d.items() is mapping }}
{{ 'yes' if 'get_weather' in (tool.function.name, 'x') else 'no' }} {{ tool.function is defined and tool.function.name is string }}
'''

# Snippets that hold newlines of their own, or that one line cannot write.
MORE = [
    "\n\nleading newlines\n\n", "ends with newline\n", "ends with two\n\n", "\r\nwindows\r\nlines\r", "", " ", "\n", "{{ s }}\n", "{{ s }}\n\n",
    "{% if t %}\n{% endif %}\n", "{% if t %}\n\n{% endif %}", "a{% if t %}\nb\n{% endif %}\nc", "  {% if t %}\n    x\n  {% endif %}\n  y",
    "x  {% if t %}y{% endif %}", "\t {% set a = 1 %} \n{{ a }}", "{# c #}\nx", "  {# c #}\n  x", "{#- c -#}\n  x", "a\n  {#- c #}\n  x",
    "{% raw %}\n  {{ x }}\n{% endraw %}\ny", "  {% raw %}  x  {% endraw %}  y", "{%- raw -%}  x  {%- endraw -%}  y", "{% raw %}{% endraw %}z",
    "{%- for m in users %}\n    {%- if m.role == 'user' %}\n        {{- m.name }}\n    {%- else %}\n        {{- '[' ~ m.name ~ ']' }}\n    {%- endif %}\n{%- endfor %}\n",
    "{% for m in users %}\n{{ m.name }}\n{% endfor %}\n", "  {%+ if t %}x{% endif %}", "  {%+ if t +%}\nx{% endif +%}\n", "{{ s }}  \n  {%- if t %} x{% endif %}",
    "{% if t %}{{ s }}\n{% endif %}", "{% set a %}\n  b\n{% endset %}[{{ a }}]", "{% macro m() %}\n  x\n{% endmacro %}[{{ m() }}]", "{% macro m() -%}\n  x\n{%- endmacro %}[{{ m() }}]",
    "{{- s -}}\n\n x", "a \n {{- s }}", "{% if t %}a{% else %}\nb{% endif %}", "{%if t%}x{%endif%}", "{%-if t-%} x {%-endif-%}", "{{s}}{{-s-}}", "{{\n s\n}}", "{{ s |\n upper }}",
    "{% set x = [\n  1,\n  2\n] %}{{ x }}", "{%\nif t\n%}x{%\nendif\n%}", "{# multi\nline #}\nx", "x\n   \n{% if t %}y{% endif %}", "\u2028{% if t %}x{% endif %}", "\x0b {% if t %}x{% endif %}",
    "{{ '\n' }}|{{ 'a\r\nb' }}", "{{ s }}\x00y", "a\u00a0 {%- if t %}x{% endif %}", "{%- if t %} \u00a0 {%- endif %}x", "{% if t -%} \u2003 x{% endif %}",
    "{" * 5, "}}" * 3, "{%", "{{", "{#", "{% raw %}", "{% raw %}x{% endraw", "{{ '" , "{{ \"a' }}", "{% if t %}{% for i in l %}{% endif %}{% endfor %}", "{% else %}", "{% endfor %}",
    "{% set %}", "{% set x %}", "{% set x = %}", "{% for %}", "{% for i %}", "{% for i in %}{% endfor %}", "{% macro %}", "{% macro m %}", "{% call %}", "{% call x %}{% endcall %}", "{% filter %}", "{% if t %}{% elif %}{% endif %}",
    "{{ l|map('tojson')|join(',') }}", "{{ u|tojson }}" + "{{ u|upper }}" + "{{ u|list }}", "{{ ('a' * 50)|truncate(20) }}", "{{ 'x' * 1000 }}", "{{ [0] * 20 }}",
    "{{ " + "(" * 30 + "1" + ")" * 30 + " }}", "{{ " + " + ".join(["1"] * 60) + " }}", "{{ " + "-" * 31 + "1 }}", "{{ " + "not " * 21 + "1 }}", "{% if t %}" * 12 + "x" + "{% endif %}" * 12,
]


def all_snippets() -> list:
    """Each line of SNIPPETS is one, and each item of MORE."""
    return SNIPPETS.strip("\n").split("\n") + MORE
