# lit over the compiler: *.mlir and *.test files, checked with FileCheck.
import os

import lit.formats

config.name = "llmc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.build_dir, "test", "lit")
config.excludes = ["Inputs"]

path = [os.path.join(config.build_dir, "bin"), config.llvm_tools_dir, os.environ.get("PATH", "")]
config.environment["PATH"] = os.pathsep.join(path)
config.substitutions.append(("%source_dir", config.source_dir))
config.substitutions.append(("%topo", os.path.join(config.source_dir, "examples", "topo")))
config.substitutions.append(("%python", config.python))
# `lit -Dverify_roundtrip=1` repeats the suite with every module printed and parsed again.
opt = "llmc-opt"
if lit_config.params.get("verify_roundtrip"):
    opt += " --verify-roundtrip"
config.substitutions.append(("%opt", opt))
