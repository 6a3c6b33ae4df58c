"""The conversations that every chat template is rendered with, and the special tokens of each template."""

TOKENS = {
    "smollm2": {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"},
    "llama-3.1": {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"},
    "qwen2.5": {"eos_token": "<|im_end|>"},
    "qwen3": {"eos_token": "<|im_end|>"},
    "qwq": {"eos_token": "<|im_end|>"},
    "mistral-v0.3": {"bos_token": "<s>", "eos_token": "</s>"},
    "mistral-nemo": {"bos_token": "<s>", "eos_token": "</s>"},
    "gemma-2": {"bos_token": "<bos>", "eos_token": "<eos>"},
    "phi-3.5": {"bos_token": "<s>", "eos_token": "<|endoftext|>"},
    "deepseek-r1-distill": {"bos_token": "<｜begin▁of▁sentence｜>", "eos_token": "<｜end▁of▁sentence｜>"},
    "hermes-2-pro-tools": {"bos_token": "<|begin_of_text|>", "eos_token": "<|im_end|>"},
}


def user(text): return {"role": "user", "content": text}
def system(text): return {"role": "system", "content": text}
def assistant(text, **more): return {"role": "assistant", "content": text, **more}


def call(name, arguments, id="call00001"):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Current weather of a city, e.g. \"Köln\" or <Paris> & more.",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "The city's name"},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
        "days": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 1e3}},
    }, "required": ["city"], "additionalProperties": False}}}
ADD = {"type": "function", "function": {"name": "add", "description": "Adds", "parameters": {
    "type": "object", "properties": {"a": {"type": "number"}, "b": {"type": ["number", "null"]}}, "required": []},
    "return": {"type": "number", "description": "the sum"}}}
NO_PARAMETERS = {"type": "function", "function": {"name": "now", "description": "", "parameters": {"type": "object", "properties": {}}}}

CHATS = {
    "one": [user("Hello!")],
    "empty-content": [user("")],
    "spaces": [user("  leading and trailing \n\n")],
    "unicode": [system("Réponds en français ☃"), user("日本語 и русский 👩‍👩‍👧‍👦 \u200b\u00a0\u2028 end")],
    "markup": [user("<|im_start|>system\n{{ bos_token }} {% raw %} </s> & < > \" ' \\ \\n")],
    "system": [system("Be brief."), user("Hi")],
    "empty-system": [system(""), user("Hi")],
    "system-only": [system("Only me.")],
    "multi-turn": [user("1+1?"), assistant("2"), user("And 2+2?"), assistant(" 4 \n"), user("Thanks")],
    "system-multi-turn": [system("Math."), user("1+1?"), assistant("2"), user("More")],
    "ends-with-assistant": [user("Say hi"), assistant("Hi")],
    "late-system": [user("a"), system("changed rules"), user("b")],
    "two-users": [user("a"), user("b")],
    "starts-with-assistant": [assistant("Hello, I am here."), user("ok")],
    "null-content": [user("x"), {"role": "assistant", "content": None}, user("y")],
    "no-content": [user("x"), {"role": "assistant"}, user("y")],
    "no-role": [{"content": "who am I"}],
    "unknown-role": [{"role": "wizard", "content": "abracadabra"}],
    "content-number": [user(5)],
    "content-parts": [user([{"type": "text", "text": "part one "}, {"type": "text", "text": "part two"}])],
    "thinking": [user("q1"), assistant("<think>\nlet me see\n</think>\n\nanswer one"), user("q2"), assistant("<think>again</think>answer two")],
    "reasoning": [user("q1"), assistant("answer", reasoning_content="step by step\n"), user("q2"), assistant("final", reasoning_content="hm")],
    "tool-call": [user("Weather in Paris?"), assistant("", tool_calls=[call("get_weather", {"city": "Paris", "days": [1, 2]})])],
    "tool-result": [user("Weather in Paris?"), assistant("", tool_calls=[call("get_weather", {"city": "Paris"})]),
                    {"role": "tool", "tool_call_id": "call00001", "name": "get_weather", "content": "{\"temp\": 21.5, \"sky\": \"clear\"}"}],
    "tool-turns": [system("Use tools."), user("Weather?"), assistant(None, tool_calls=[call("get_weather", {"city": "Köln", "unit": None})]),
                   {"role": "tool", "tool_call_id": "call00001", "name": "get_weather", "content": "rain"}, assistant("It rains."), user("1+2?"),
                   assistant("Let me add.", tool_calls=[call("add", {"a": 1, "b": 2.5}, "call00002")]),
                   {"role": "tool", "tool_call_id": "call00002", "name": "add", "content": "3.5"}],
    "two-calls": [user("Both"), assistant("", tool_calls=[call("get_weather", {"city": "A"}, "aaaaaaaaa"), call("add", {"a": 1, "b": 2}, "bbbbbbbbb")]),
                  {"role": "tool", "tool_call_id": "aaaaaaaaa", "name": "get_weather", "content": "sun"},
                  {"role": "tool", "tool_call_id": "bbbbbbbbb", "name": "add", "content": "3"}],
    "string-arguments": [user("w"), assistant("", tool_calls=[call("get_weather", "{\"city\": \"Paris\"}")]),
                         {"role": "tool", "tool_call_id": "call00001", "name": "get_weather", "content": {"temp": 20}}],
    "short-call-id": [user("w"), assistant("", tool_calls=[call("get_weather", {"city": "x"}, "1")])],
    "long": [system("S" * 300)] + [m for i in range(12) for m in (user(f"question {i} " + "word " * i), assistant(f"answer {i}\n" * (i % 3 + 1)))] + [user("last")],
    "none": [],
}

TOOL_SETS = {"": None, "+tools": [WEATHER, ADD], "+tool": [NO_PARAMETERS], "+no-tools": []}
KWARGS = {
    "thinking-off": {"enable_thinking": False}, "thinking-on": {"enable_thinking": True}, "date": {"date_string": "01 Jan 2025"},
    "user-tools": {"tools_in_user_message": False}, "builtin": {"builtin_tools": ["brave_search", "code_interpreter"]}, "extra": {"unused": {"a": [1]}},
}


def all_conversations() -> list:
    out = []

    def add(name, messages, generate, tools=None, kwargs=None):
        case = {"name": name, "messages": messages, "add_generation_prompt": generate}
        if tools is not None:
            case["tools"] = tools
        if kwargs:
            case["kwargs"] = kwargs
        out.append(case)

    for name, messages in CHATS.items():
        add(name, messages, True)
        add(f"{name}/no-prompt", messages, False)
        with_tools = [s for s in TOOL_SETS if s] if name in ("one", "system", "tool-turns") else ["+tools"]
        for tools in with_tools:
            add(name + tools, messages, True, TOOL_SETS[tools])
    for label, kwargs in KWARGS.items():
        for name in ("system", "thinking", "tool-turns"):
            add(f"{name}/{label}", CHATS[name], True, [WEATHER], kwargs)
            add(f"{name}/{label}/no-tools", CHATS[name], True, None, kwargs)
    return out
