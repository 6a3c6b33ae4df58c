#!/usr/bin/env python3
"""Renders chat templates and language snippets with jinja2 as transformers sets it up, and writes what they give:
chats.json (templates of this folder × conversations) and snippets.json. Run it again after changing either list:

    python test/golden/template/make_golden.py

Needs transformers and jinja2; their versions are recorded in the files. Time is fixed at NOW."""
import argparse
import datetime
import json
import sys
from pathlib import Path

import jinja2
import transformers
from transformers.utils import chat_template_utils as utils

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import conversations  # noqa: E402
import snippets  # noqa: E402

HERE = Path(__file__).parent
NOW = datetime.datetime(2024, 7, 26, 9, 5, 3)


class FixedTime(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


utils.datetime = FixedTime


def outcome(render) -> dict:
    """{"out": text}, {"raised": message} for raise_exception, or {"error": kind}."""
    try:
        text = render()
        text.encode()  # a lone surrogate is no text that a prompt can hold
        return {"out": text}
    except jinja2.exceptions.TemplateError as e:
        if type(e) is jinja2.exceptions.TemplateError:
            return {"raised": str(e.message)}
        return {"error": type(e).__name__}
    except RecursionError:
        return {"error": "RecursionError"}
    except Exception as e:  # whatever Python raises inside of a template
        return {"error": type(e).__name__}


def snippet_cases() -> list:
    cases = []
    for source in snippets.all_snippets():
        result = outcome(lambda: utils._compile_jinja_template(source).render(**snippets.CONTEXT))
        if " at 0x" in result.get("out", ""):
            result = {"any": True}  # an address: no two runs agree
        cases.append({"source": source, **result})
    return cases


def chat_cases(folder: Path, names: list) -> list:
    cases = []
    for name in names:
        source = (folder / f"{name}.jinja").read_text()
        tokens = conversations.TOKENS.get(name, {})
        for conversation in conversations.all_conversations():
            def render():
                messages = utils._normalize_chat_messages(conversation["messages"])
                kwargs = {**tokens, **conversation.get("kwargs", {})}
                rendered, _ = utils.render_jinja_template(
                    [messages], tools=conversation.get("tools"), chat_template=source,
                    add_generation_prompt=conversation["add_generation_prompt"], **kwargs)
                return rendered[0]
            cases.append({"template": name, "conversation": conversation["name"], **outcome(render)})
    return cases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--templates", type=Path, default=HERE, help="folder of *.jinja files")
    parser.add_argument("--out", type=Path, default=HERE)
    args = parser.parse_args()
    versions = {"jinja2": jinja2.__version__, "transformers": transformers.__version__, "now": NOW.isoformat()}
    names = sorted(p.stem for p in args.templates.glob("*.jinja"))

    def write(name: str, content: dict) -> None:
        text = json.dumps({"versions": versions, **content}, ensure_ascii=False, indent=1)
        (args.out / name).write_text(text + "\n")

    write("snippets.json", {"context": snippets.CONTEXT, "cases": snippet_cases()})
    chats = chat_cases(args.templates, names)
    write("chats.json", {"tokens": conversations.TOKENS, "conversations": conversations.all_conversations(), "cases": chats})
    kinds = [next(k for k in ("out", "raised", "error") if k in c) for c in chats]
    print(len(names), "templates,", {k: kinds.count(k) for k in sorted(set(kinds))})


if __name__ == "__main__":
    main()
