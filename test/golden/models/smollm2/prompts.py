"""The prompts of the SmolLM2 goldens: (name, text). Chat prompts are spelt out in the model's template."""

SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


def chat(*turns: str, system: str = SYSTEM) -> str:
    text = f"<|im_start|>system\n{system}<|im_end|>\n"
    for i, turn in enumerate(turns):
        text += f"<|im_start|>{('user', 'assistant')[i % 2]}\n{turn}<|im_end|>\n"
    return text + "<|im_start|>assistant\n"


LONG = """A compiler is a program that translates a description of what should happen into a description of how a machine makes it happen. The first compilers translated formulas into the instructions of one machine, and people doubted that they could ever be as good as a careful programmer. They were, and so the next generation of programmers thought in formulas and no longer in instructions. The same thing happened again with memory: for a long time a programmer decided which value lives in which register, and today hardly anybody does, because a graph can be coloured faster and better by a machine.

A model server has an unusual workload. Its program is known completely before it runs: every layer has the same shape, every weight has a known size, and the order of the operations never changes. What is not known is how many people will ask a question at the same time, how long the questions are, and how long the answers will be. A good design draws a line between these two kinds of knowledge. Everything on the first side is decided once, checked once, and written down. Everything on the second side is decided again at every step, as quickly as possible, and with as little surprise as possible.

Consider memory. A server that finds out after four minutes of loading that it has no room for a cache has wasted four minutes, and whoever waits for it has wasted more. The sizes were known all along: the weights are listed in the header of a file, the working memory follows from the largest batch, and the rest belongs to the cache. A plan that contains these numbers can be read by a person, compared with another plan, and refused by a machine that does not have what it asks for.

Now consider time."""

PROMPTS = [
    ("chat-capital", chat("What is the capital of France, and what is it known for?")),
    ("chat-turns", chat("My name is Ada and I like bridges.", "Nice to meet you, Ada! Bridges are fascinating structures.",
                        "Which bridge should I visit in London, and why?")),
    ("chat-system", chat("Explain why the sky is blue to a child.", system="You answer in short, simple sentences.")),
    ("plain-english", "The history of the printing press begins in"),
    ("plain-one-token", "Once"),
    ("french", "La Révolution française commence en 1789, lorsque"),
    ("german", "Der Zug nach München fährt um 14:30 Uhr ab. Die Reisenden"),
    ("spanish", "En un lugar de la Mancha, de cuyo nombre no quiero acordarme,"),
    ("russian", "Москва — столица России. В городе"),
    ("chinese", "北京是中国的首都，"),
    ("japanese-emoji", "今日は天気がいいですね 🙂🌞 "),
    ("python", "def quicksort(items):\n    \"\"\"Sort a list of numbers.\"\"\"\n    if len(items) <= 1:\n        return items\n"),
    ("cpp", "#include <vector>\n\n// Returns the sum of all even numbers.\nint sum_even(const std::vector<int>& v) {\n"),
    ("json", "{\"name\": \"llama\", \"layers\": 32, \"heads\": 32, \"kv_heads\": 8, \"vocab\": [\"a\", \"b\","),
    ("digits", "1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89,"),
    ("long-text", LONG),
    ("long-chat", chat("Summarise the following text.\n\n" + LONG)),
]
