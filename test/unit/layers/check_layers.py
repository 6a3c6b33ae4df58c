"""Holds the include rules of docs/architecture.md: every #include of the project is judged by one table of who may use
what. A file or an include that the table does not know is refused too, so that new folders get a row.

Usage: check_layers.py SOURCE_ROOT
"""

import re
import sys
from pathlib import Path

# The layers of runtime/, lowest first: each may include those before it. architecture.md lists them in this order.
RUNTIME = ["support", "plan", "text", "kv", "sample", "comm", "exec", "sched", "serve"]

MLIR = ["mlir", "llvm"]
FOREIGN_COMPILERS = ["mlir", "mlir-c", "llvm", "llvm-c", "clang", "clang-c", "lld"]

# Who (a folder, or a file without its suffix; the longest match counts) may include what besides itself. Names without
# a row are headers of the system and of other libraries, which anybody may include, but for FOREIGN_COMPILERS.
MAY_INCLUDE = {
    "kernels/cpu": [],
    "kernels/cuda": [],
    **{
        f"runtime/{layer}": [f"runtime/{lower}" for lower in RUNTIME[:i]] + ["kernels"]
        for i, layer in enumerate(RUNTIME)
    },
    "dialects/llm": MLIR,
    "dialects/dist": ["dialects/llm", *MLIR],
    "dialects/exec": ["dialects/llm", "dialects/dist", *MLIR],
    "passes/analysis": ["llvm/ADT"],
    "passes/llm": ["passes/analysis", "dialects", *MLIR],
    "passes/dist": ["passes/analysis", "dialects", *MLIR],
    "passes/exec": ["passes/analysis", "dialects", *MLIR],
    "compiler/support": [],
    "compiler/import": ["compiler/support", "runtime/text/gguf_tokenizer", "runtime/support/error",
                        "runtime/support/memory_limit"],
    "compiler/import/build_ir": ["compiler/import", "compiler/support", "dialects", *MLIR],
    "compiler/emit": ["compiler/import", "compiler/support", "dialects", "runtime/plan", *MLIR],
    "compiler/report": ["compiler/support", "runtime/plan"],
    "compiler/pipeline": ["compiler", "passes", "dialects", "runtime/plan", *MLIR],
    "tools/llmc": ["compiler", "passes", "dialects", "runtime", *MLIR],
    "tools/llmc-opt": ["compiler", "passes", "dialects", *MLIR],
    "tools/llmrt": ["runtime", "kernels"],
}

FOLDERS = sorted({row.split("/")[0] for row in MAY_INCLUDE})
SOURCES = {".h", ".hpp", ".c", ".cc", ".cpp", ".cu", ".cuh", ".inc", ".inl", ".td"}
INCLUDE = re.compile(r"^\s*#\s*include(?:_next)?\b\s*(.*)$")
TABLEGEN_INCLUDE = re.compile(r'^\s*include\s+(".*)$')
NAME = re.compile(r'^(?:"([^"]+)"|<([^>]+)>)')


def is_in(path, row):
    return path == row or path.startswith((row + "/", row + "."))


def row_of(path):
    return max((row for row in MAY_INCLUDE if is_in(path, row)), key=len, default=None)


def refusal(path, argument):
    """Why the file at `path` may not have `#include argument`, or None."""
    name = NAME.match(argument)
    if not name:
        return f"includes {argument or 'nothing'}: name the file, so that its layer can be told"
    quoted, angled = name.groups()
    target = quoted or angled
    first = target.split("/")[0]
    if "." in target.split("/") or ".." in target.split("/"):
        return f"includes {target}: write the path from the source root"
    if first not in FOLDERS and first not in FOREIGN_COMPILERS:
        return quoted and f'includes "{target}": write the path from the source root, or <> for a library\'s header'
    row = row_of(path)
    if row_of(target) == row or any(is_in(target, allowed) for allowed in MAY_INCLUDE[row]):
        return None
    besides = ", ".join(MAY_INCLUDE[row]) or "nothing else of the project"
    return f"includes {target}, but {row} may use only itself and {besides}"


def check_text(path, text):
    """All refusals of one file, as sentences."""
    if row_of(path) is None:
        return [f"{path} lies in no layer: give its folder a row in MAY_INCLUDE and in docs/architecture.md"]
    pattern = TABLEGEN_INCLUDE if path.endswith(".td") else INCLUDE
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        include = pattern.match(line)
        if include and (why := refusal(path, include.group(1))):
            found.append(f"{path}:{number} {why}")
    return found


def check_documented_order(architecture):
    cells = re.search(r"^\| `runtime/` \|([^|]*)\|", architecture, re.MULTILINE)
    documented = re.findall(r"`(\w+)/`", cells.group(1)) if cells else []
    if documented == RUNTIME:
        return []
    return [f"docs/architecture.md lists the layers of runtime/ as {documented}, MAY_INCLUDE as {RUNTIME}"]


def check_tree(root):
    found = check_documented_order((root / "docs/architecture.md").read_text())
    unused = set(MAY_INCLUDE)
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in SOURCES:
                path = file.relative_to(root).as_posix()
                found += check_text(path, file.read_text())
                unused.discard(row_of(path))
    return found + [f"MAY_INCLUDE has a row for {row}, where there is no source: take it out" for row in sorted(unused)]


def main():
    found = check_tree(Path(sys.argv[1]))
    for line in found:
        print(line)
    if found:
        sys.exit(f"breaches of the include rules in docs/architecture.md: {len(found)}")


if __name__ == "__main__":
    main()
