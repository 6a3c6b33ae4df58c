"""Writes unicode_ranges.inc: the properties of every code point as the `tokenizers` package sees them.

Each property is asked of the package itself, one code point at a time, so that our splits equal its
splits whatever Unicode version its regex engine (categories) and its normaliser (composition) carry.

    python runtime/text/make_unicode_ranges.py > runtime/text/unicode_ranges.inc
"""
import string
import unicodedata

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

CATEGORIES = ["Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe",
              "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co", "Cs"]
FROZEN, UNSAFE, ACCENT = 32, 64, 128
POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
EVERYTHING = "".join(map(chr, POINTS))


def matching(regex):
    pieces = pre_tokenizers.Split(Regex(regex), "removed", invert=True).pre_tokenize_str(EVERYTHING)
    return {ord(c) for text, _ in pieces for c in text}


def ranges(points):
    start = prev = None
    for p in sorted(points):
        if start is not None and p == prev + 1:
            prev = p
            continue
        if start is not None:
            yield start, prev
        start = prev = p
    if start is not None:
        yield start, prev


props = [0] * 0x110000
for code, name in enumerate(CATEGORIES[:-1]):
    for p in matching(rf"\p{{{name}}}"):
        props[p] = code
for p in range(0xD800, 0xE000):
    props[p] = CATEGORIES.index("Cs")
letters = matching(r"\p{L}")
numbers = matching(r"\p{N}")
assert letters == {p for p in POINTS if CATEGORIES[props[p]][0] == "L"}
assert numbers == {p for p in POINTS if CATEGORIES[props[p]][0] == "N"}
word = matching(r"\w")
plain_word = {p for p in POINTS if CATEGORIES[props[p]][0] in "LM" or CATEGORIES[props[p]] in ("Nd", "Nl", "Pc")}
assert plain_word <= word
assert matching(r"\d") == {p for p in POINTS if CATEGORIES[props[p]] == "Nd"}
assert matching(r"\s") == {9, 10, 11, 12, 13, 0x85} | {p for p in POINTS if CATEGORIES[props[p]][0] == "Z"}

nfd, nfc, nfkd = normalizers.NFD(), normalizers.NFC(), normalizers.NFKD()
strip = normalizers.StripAccents()
for p in POINTS:
    c = chr(p)
    # A mark moves before U+0334 (class 1) or behind U+0345 (class 240) only if its own class is not zero.
    reorders = lambda form: form("q" + c + "\u0334") != "q" + c + "\u0334" or form("q\u0345" + c) != "q\u0345" + c
    ours = (reorders(nfd.normalize_str), nfd.normalize_str(c), nfkd.normalize_str(c))
    reference = (reorders(lambda s: unicodedata.normalize("NFD", s)), unicodedata.normalize("NFD", c),
                 unicodedata.normalize("NFKD", c))
    if ours != reference or unicodedata.category(c) == "Cn":
        assert ours == (False, c, c), f"U+{p:04X}: the package normalises it, but not as Unicode does"
        props[p] |= FROZEN
    elif unicodedata.combining(c) or not unicodedata.is_normalized("NFC", c):
        props[p] |= UNSAFE
# A starter that joins a starter before it (Hangul vowels and tails, some Indic signs) is unsafe as well.
for p in POINTS:
    d = unicodedata.normalize("NFD", chr(p))
    if len(d) > 1 and unicodedata.normalize("NFC", chr(p)) == chr(p):
        for c in d[1:]:
            props[ord(c)] |= UNSAFE
for p in POINTS:
    if strip.normalize_str("a" + chr(p) + "b") == "ab":
        props[p] |= ACCENT

digits = pre_tokenizers.Digits(individual_digits=True)
extra = [p for p in POINTS if p not in numbers and len(digits.pre_tokenize_str("ab" + chr(p) + "ab")) == 3]

punctuation = pre_tokenizers.Punctuation("isolated")
split_off = {p for p in POINTS if len(punctuation.pre_tokenize_str("a" + chr(p) + "a")) == 3}
like_punctuation = {p for p in POINTS if CATEGORIES[props[p] & 31][0] == "P" or chr(p) in string.punctuation}
lower = normalizers.Lowercase()
# utf8proc has these in its later versions only.
new_lower = [(p, ord(lower.normalize_str(chr(p)))) for p in POINTS
             if chr(p).lower() != lower.normalize_str(chr(p)) and len(lower.normalize_str(chr(p))) == 1]

print(f"// Written by make_unicode_ranges.py from tokenizers {tokenizers.__version__} and Python's Unicode"
      f" {unicodedata.unidata_version}; do not edit.")
print("// {first code point, property byte} until the next entry; the byte is laid out in unicode.h.")
print("static constexpr struct { uint32_t first; uint8_t props; } kRanges[] = {")
row, previous = [], None
for p in range(0x110000):
    if props[p] != previous:
        row.append(f"{{0x{p:X},{props[p]}}},")
        previous = props[p]
    if len(row) == 8:
        print("".join(row))
        row = []
print("".join(row) + "\n};")
print("// Numeric to the Digits pre-tokenizer though not \\p{N} in a regular expression.")
print("static constexpr uint32_t kNumericExtra[][2] = {")
print("".join(f"{{0x{a:X},0x{b:X}}}," for a, b in ranges(extra)) + "\n};")
print("// \\w in a regular expression beyond L, M, Nd, Nl and Pc.")
print("static constexpr uint32_t kWordExtra[][2] = {")
print("".join(f"{{0x{a:X},0x{b:X}}}," for a, b in ranges(word - plain_word)) + "\n};")
print("// What the Punctuation pre-tokenizer splits off: \\p{P} and ASCII's symbols, but for these either way.")
for name, points in (("Extra", split_off - like_punctuation), ("Missing", like_punctuation - split_off)):
    print(f"static constexpr uint32_t kPunctuation{name}[][2] = {{")
    print("".join(f"{{0x{a:X},0x{b:X}}}," for a, b in ranges(points)) + "\n};")
print("// \\p{Han}: newer than PCRE2's.")
print("static constexpr uint32_t kHan[][2] = {")
print("".join(f"{{0x{a:X},0x{b:X}}}," for a, b in ranges(matching(r"\p{Han}"))) + "\n};")
print("// {letter, its lower case} where Python's Unicode has none.")
print("static constexpr uint32_t kNewLower[][2] = {")
print("".join(f"{{0x{a:X},0x{b:X}}}," for a, b in new_lower) + "\n};")
