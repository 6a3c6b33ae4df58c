"""The strings that the tokenizer goldens are made of: a fixed, seeded list of more than 10,000.

Many scripts, code, emoji with joiners, runs of blanks, control characters, combining marks, numbers,
special tokens inside text, random Unicode and very long words. Only Python's standard library.
"""
import keyword
import random
import sys
import unicodedata

SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>",
            "<|start_header_id|>", "<|end_header_id|>", "<think>", "</think>", "<tool_call>", "</tool_call>", "<s>",
            "</s>", "<unk>", "[INST]", "[/INST]", "<|reserved_special_token_0|>", "<0x0A>", "<0xE2>", "<|", "|>"]

# First words of the Universal Declaration of Human Rights and the like, in many scripts.
SENTENCES = """All human beings are born free and equal in dignity and rights.
Alle Menschen sind frei und gleich an Würde und Rechten geboren; größer, Straße, ÄÖÜ.
Tous les êtres humains naissent libres et égaux en dignité et en droits — n'est-ce pas ? L’été, où, çà.
Todos los seres humanos nacen libres e iguales en dignidad y derechos. ¿Qué? ¡Señor!
Tutti gli esseri umani nascono liberi ed eguali in dignità e diritti. Perché? Così è.
Todos os seres humanos nascem livres e iguais em dignidade e em direitos. Ação, coração.
Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv. Žluťoučký kůň úpěl ďábelské ódy.
Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Zażółć gęślą jaźń.
Minden emberi lény szabadon születik és egyenlő méltósága és joga van. Árvíztűrő tükörfúrógép.
Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. İstanbul'da ılık ırmak, IŞIK.
Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền. Tiếng Việt rất hay.
Все люди рождаются свободными и равными в своем достоинстве и правах. Съешь же ещё этих мягких булок.
Всі люди народжуються вільними і рівними у своїй гідності та правах. Ґанок, їжак, єнот.
Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. ΟΔΟΣ, οδός.
כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. שָׁלוֹם עֲלֵיכֶם
يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق. السَّلامُ عَلَيْكُمْ ١٢٣٤٥
تمام افراد بشر آزاد به دنیا می‌آیند و از لحاظ حیثیت و حقوق با هم برابرند. ۰۱۲۳۴۵۶۷۸۹
सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है। १२३
সমস্ত মানুষ স্বাধীনভাবে সমান মর্যাদা এবং অধিকার নিয়ে জন্মগ্রহণ করে। ১২৩৪
மனிதப் பிறிவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர். ௧௨௩
ప్రతిపత్తిస్వత్వముల విషయమున మానవులెల్లరును జన్మతః స్వతంత్రులును సమానులును నగుదురు.
ಎಲ್ಲಾ ಮಾನವರೂ ಸ್ವತಂತ್ರರಾಗಿಯೇ ಜನಿಸಿದ್ದಾರೆ. ഡമനുഷ്യരെല്ലാവരും തുല്യാവകാശങ്ങളോടെ ജനിച്ചവരാണ്.
มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ๑๒๓
ມະນຸດທຸກຄົນເກີດມາມີສິດເສລີພາບ. မြန်မာဘာသာ လူတိုင်းသည် တူညီလွတ်လပ်သော ဂုဏ်သိက္ခာဖြင့် မွေးဖွားလာသူများ
មនុស្សទាំងអស់កើតមកមានសេរីភាព។ འགྲོ་བ་མིའི་རིགས་རྒྱུད་ཡོངས་ལ་སྐྱེས་ཙམ་ཉིད་ནས་ཆེ་མཐོངས་དང༌།
人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。
人人生而自由，在尊嚴和權利上一律平等。繁體中文、龍飛鳳舞、㐀㐁𠀀𠀁𪚥。
すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。カタカナ、ｶﾀｶﾅ、が・が。
모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 한글 각 힣 ᄀᄀᄀ
ადამიანები იბადებიან თავისუფალნი. Բոլոր մարդիկ ծնվում են ազատ ու հավասար։ ሁሉም ሰዎች ነጻ ሆነው ተወልደዋል።
ᏂᎦᏓ ᎠᏂᏴᏫ ᏂᎨᎫᏓᎸᎾ. ᐃᓄᓕᒫᑦ ᐊᓂᖅᑎᕆᔪᓕᒫᑦ. ᠬᠦᠮᠦᠨ ᠪᠦᠷ. ⵉⵎⴷⴰⵏⵏ. 𐌰𐌱𐌲 𓀀𓀁 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝒶𝓫𝟙𝟚
Ⅻ Ⅷ ⅷ ½ ¼ ² ³ ¹ ①②③ ㊀ ⁴ ₅ ٣ 〇 一二三 ㍿ ﬁ ﬂ ﬃ ﬀ Å Å Å ñ ñ ǆ ß ẞ ſ K Ω
I'm you're he'll they've we'd it's DON'T I'M YOU'RE HE'LL THEY'VE WE'D IT'S don’t 'sup 'til rock'n'roll ''s 'ſ 'S
3.14159 1,234,567.89 0x1F 1e-9 007 2024-02-29T23:59:59Z +49 (0)30 123456789 10% $9.99 €5 ½ 1st 2nd 100km
f(x)=x^2+3*x-1; a->b && c||d != e; <div class="a">&nbsp;</div> https://example.org/a?b=c&d=%20#e user@example.com
"quoted" 'single' “curly” ‘curly’ «guillemets» „low“ ... … -- – — · • ° § ¶ † ‡ ‰ № ™ © ®""".split("\n")

EMOJI = ["😀", "👍🏽", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪🇫🇷🇯🇵", "❤️", "☎️", "1️⃣", "🧑🏿‍🚀", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🤷🏼‍♀️", "😶‍🌫️", "✈︎", "🫠", "🪿", "🫨", "♟", "🀄"]
SPACES = [" ", "  ", "   ", "    ", "        ", "\t", "\t\t", "\n", "\n\n", "\n\n\n", "\r\n", "\r\n\r\n", "\r", " \n", "\n ",
          " \t \n ", "\u00a0", "\u2003", "\u3000", "\u2028", "\u2029", "\u0085", "\u1680", "\u202f", "\v", "\f",
          "\u180e", "\u200b", "\ufeff", "\u2060", "\u200d", "\u200c"]
PUNCT = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~") + ["…", "—", "。", "、", "，", "؟", "।", "№", "±", "×", "÷", "€", "£", "₹", "∑", "→"]
CODE = ["def f(x: int) -> str:\n    return f\"{x!r}\"\n", "for (int i = 0; i < n; ++i) {\n\tsum += a[i];\n}\n",
        "SELECT * FROM t WHERE a='b' AND c >= 10;", "<html>\n  <body>\n    <p>Hi</p>\n  </body>\n</html>",
        "{\"a\": [1, 2.5, null], \"b\": {\"c\": \"\\u00e9\"}}", "#!/bin/sh\nset -eu\necho \"$HOME\" | sed 's/a/b/g' > /dev/null 2>&1",
        "let v: Vec<_> = xs.iter().map(|x| x * 2).collect();", "\\begin{equation}\n  E = mc^2\n\\end{equation}",
        "| a | b |\n|---|---|\n| 1 | 2 |\n", "```python\nprint('hello')\n```", "template <typename T, int N> struct A;",
        "CamelCaseIdentifier snake_case_name SCREAMING_CASE kebab-case x1y2z3 __init__ $var @attr"]


def assigned(rng, lo, hi):
    while True:
        c = rng.randrange(lo, hi)
        if not 0xD800 <= c <= 0xDFFF:
            return chr(c)


def every_block():
    """A few characters of each 128-point block that has any."""
    for base in range(0, 0x30000, 128):
        chars = [chr(c) for c in range(base, base + 128)
                 if not 0xD800 <= c <= 0xDFFF and unicodedata.category(chr(c)) not in ("Cn", "Co")]
        if chars:
            yield "".join(chars[:48])
            yield " ".join(chars[::5]) + "\n" + " a".join(chars[1::7])


def strings():
    rng = random.Random(20240229)
    words = sorted({w for s in SENTENCES for w in s.split()}) + keyword.kwlist
    out = [""]
    out += [chr(c) for c in range(0x180)]
    out += SPECIALS + SENTENCES + EMOJI + SPACES + PUNCT + CODE
    out += [s.upper() for s in SENTENCES] + [s.replace(" ", "") for s in SENTENCES]
    out += [unicodedata.normalize(f, s) for f in ("NFD", "NFKC", "NFKD") for s in SENTENCES]
    out += list(every_block())
    for n in list(range(1, 40)) + [63, 64, 65, 100, 127, 128, 129, 255, 256, 257, 1000, 5000]:
        out += [" " * n, " " * n + "a", "a" + " " * n, "a" * n, "7" * n, "\n" * n, "\t" * n + "x", "é" * n, "!" * n]
        if n <= 257:
            out += ["\n" * n + "a", "a" + "\n" * n + " b", "ab" * n, "漢" * n, "😀" * n, "e\u0301" * n, "\u0301" * n,
                    " \n" * n, "\r\n" * n, "a\u200d" * n, "\x00" * n, "▁" * n, "'" * n]
    for c in range(0x300, 0x370):  # every combining mark, alone, in NFD order and against it
        out.append("a" + chr(c) + "\u0323\u0301 o\u0308" + chr(c) + chr(c))
    for s in SPECIALS:
        for left in ["", " ", "a", "\n", "  "]:
            for right in ["", " ", "b", "\n", "  "]:
                out.append(left + s + right)
        out += [s + s, s[:-1], s[1:], s.upper(), " ".join(s), "x" + s + "y" + s + "z", s.replace("|", "｜")]
    for _ in range(3000):  # words and blanks of one or several scripts
        parts = []
        for _ in range(rng.randrange(1, 14)):
            parts.append(rng.choice(words))
            parts.append(rng.choice(SPACES[:16]) if rng.random() < 0.2 else " ")
        out.append("".join(parts))
    pools = [words, EMOJI, SPACES, PUNCT, SPECIALS, [str(10 ** k + k) for k in range(12)]]
    for _ in range(3000):  # anything next to anything
        out.append("".join(rng.choice(rng.choice(pools)) for _ in range(rng.randrange(1, 12))))
    for _ in range(1200):  # random code points, dense scripts more often than the rest
        lo, hi = rng.choice([(0, 0x80), (0x80, 0x300), (0x300, 0x370), (0x370, 0x600), (0x600, 0xE00), (0xE00, 0x1200),
                             (0x1100, 0x1200), (0x2000, 0x2C00), (0x3000, 0xA000), (0xA000, 0xE000), (0xF900, 0x10000),
                             (0x10000, 0x20000), (0x1F300, 0x1FB00), (0, 0x110000)])
        out.append("".join(assigned(rng, lo, hi) for _ in range(rng.randrange(1, 24))))
    for _ in range(600):  # code-like soup
        out.append("".join(rng.choice(["a", "B", "_", "1", "23", " ", "  ", "\n", "\t", "(", ")", "{", "}", ";", "'", "\"", "=",
                                       "==", "->", "::", ".", ",", "é", "中"]) for _ in range(rng.randrange(4, 60))))
    for _ in range(300):  # letters with marks in random order
        out.append("".join(rng.choice("aeiouAEnc") + "".join(chr(rng.choice([*range(0x300, 0x340), 0x345, 0x323, 0x327, 0x5B0, 0x64B, 0x94D, 0x3099]))
                   for _ in range(rng.randrange(0, 5))) for _ in range(rng.randrange(1, 10))))
    for _ in range(200):  # Hangul jamo
        out.append("".join(chr(rng.choice([rng.randrange(0x1100, 0x1113), rng.randrange(0x1161, 0x1176), rng.randrange(0x11A7, 0x11C3),
                   0xAC00 + 28 * rng.randrange(399)])) for _ in range(rng.randrange(1, 12))))
    long_word = "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(3000))
    out += [long_word, long_word.upper(), "".join(rng.choice("的一是不了人我在有他这") for _ in range(2000)),
            "supercalifragilisticexpialidocious" * 60, "ha" * 2000, "\U0001F468\u200D" * 200]
    seen = set()
    return [s for s in out if not (s in seen or seen.add(s))]


if __name__ == "__main__":
    s = strings()
    print(len(s), "strings,", sum(len(x.encode()) for x in s), "bytes", file=sys.stderr)
