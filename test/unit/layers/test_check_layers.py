"""The check of the include rules can fail: breaches of every kind are planted and seen; what is allowed passes."""

import os
import shutil
import tempfile
import unittest
from pathlib import Path

import check_layers

ROOT = Path(os.environ["LLMC_SOURCE_DIR"])

REFUSED = [
    ("kernels/cpu/gemm.cpp", '#include "runtime/support/error.h"'),
    ("kernels/cpu/gemm.cpp", '#include "kernels/cuda/gemm.h"'),
    ("kernels/cuda/gemm.cu", "#include <llvm/ADT/SmallVector.h>"),
    ("runtime/support/error.h", '#include "runtime/plan/access.h"'),
    ("runtime/kv/pool.h", '#include "runtime/exec/executor.h"'),
    ("runtime/text/jinja/lexer.cpp", '  #  include "runtime/serve/server.h" // no'),
    ("runtime/exec/cuda/world.cpp", '#include "runtime/sched/scheduler.h"'),
    ("runtime/serve/server.cpp", '#include "compiler/support/error.h"'),
    ("runtime/serve/server.cpp", '#include "passes/analysis/Splits.h"'),
    ("runtime/plan/access.cpp", '#include "dialects/exec/ExecOps.h"'),
    ("runtime/plan/access.cpp", "#include <mlir/IR/Builders.h>"),
    ("runtime/plan/access.cpp", "#include <mlir-c/IR.h>"),
    ("dialects/llm/LLMOps.td", 'include "dialects/dist/DistAttrs.td"'),
    ("dialects/llm/LLMOps.cpp", '#include "passes/llm/Passes.h"'),
    ("passes/analysis/Splits.h", '#include "mlir/IR/Builders.h"'),
    ("passes/dist/Mesh.cpp", '#include "compiler/import/topology.h"'),
    ("passes/dist/Mesh.cpp", '#include "passes/exec/Passes.h"'),
    ("compiler/import/topology.cpp", '#include "compiler/import/build_ir.h"'),
    ("compiler/import/topology.cpp", '#include "mlir/IR/Builders.h"'),
    ("compiler/import/topology.cpp", '#include "runtime/text/tokenizer.h"'),
    ("compiler/emit/emit_plan.cpp", '#include "runtime/exec/executor.h"'),
    ("tools/llmrt/run.cpp", '#include "compiler/pipeline/compile.h"'),
    ("tools/llmrt/run.cpp", '#include "llvm/ADT/SmallVector.h"'),
    ("tools/llmrt/run.cpp", '#include "tools/llmc/commands.h"'),
    ("runtime/kv/pool.cpp", '#include "pool.h"'),
    ("runtime/kv/pool.cpp", '#include "../exec/executor.h"'),
    ("runtime/kv/pool.cpp", "#include <../exec/executor.h>"),
    ("runtime/kv/pool.cpp", '#include "runtime/kv/../exec/executor.h"'),
    ("runtime/kv/pool.cpp", '#include "runtime/new/thing.h"'),
    ("runtime/kv/pool.cpp", "#include HEADER"),
    ("runtime/new/thing.cpp", ""),
    ("tools/stray.cpp", ""),
]

ALLOWED = [
    ("kernels/cpu/gemm.cpp", '#include "kernels/cpu/isa/avx2.h"'),
    ("kernels/cpu/gemm.cpp", "#include <linux/futex.h>"),
    ("runtime/serve/server.cpp", '#include "runtime/sched/scheduler.h"'),
    ("runtime/serve/server.cpp", "#include <boost/beast.hpp>"),
    ("runtime/exec/ops.h", '#include "kernels/cpu/gemm.h"'),
    ("runtime/exec/ops.h", '// #include "runtime/serve/server.h"'),
    ("dialects/exec/ExecOps.td", 'include "dialects/llm/LLMAttrs.td"'),
    ("dialects/exec/ExecOps.td", "    #include is no word of TableGen"),
    ("passes/analysis/Splits.h", '#include "llvm/ADT/SmallVector.h"'),
    ("passes/dist/Mesh.cpp", '#include "dialects/dist/DistOps.h"'),
    ("compiler/import/build_ir.cpp", '#include "compiler/import/import.h"'),
    ("compiler/import/build_ir.h", '#include "mlir/IR/BuiltinOps.h"'),
    ("compiler/pipeline/compile.cpp", '#include "compiler/import/build_ir.h"'),
    ("tools/llmrt/run.cpp", '#include "runtime/serve/server.h"'),
]


class CheckLayers(unittest.TestCase):
    def test_refused(self):
        for path, line in REFUSED:
            with self.subTest(path=path, line=line):
                self.assertEqual(len(check_layers.check_text(path, "// A file.\n" + line)), 1)

    def test_allowed(self):
        for path, line in ALLOWED:
            with self.subTest(path=path, line=line):
                self.assertEqual(check_layers.check_text(path, "// A file.\n" + line), [])

    def test_tree(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name in [*check_layers.FOLDERS, "docs"]:
                shutil.copytree(ROOT / name, root / name)
            self.assertEqual(check_layers.check_tree(root), [])

            with open(root / "runtime/support/error.h", "a") as file:
                file.write('#include "runtime/comm/communicator.h"\n')
            shutil.rmtree(root / "compiler/report")
            architecture = root / "docs/architecture.md"
            architecture.write_text(architecture.read_text().replace("`kv/`, `sample/`", "`sample/`, `kv/`"))
            order, include, row = check_layers.check_tree(root)
            self.assertIn("as ['support', 'plan', 'text', 'sample', 'kv'", order)
            self.assertRegex(include, r"^runtime/support/error\.h:\d+ includes runtime/comm/communicator\.h, but")
            self.assertIn("compiler/report", row)


if __name__ == "__main__":
    unittest.main()
