"""Fixtures of the end-to-end tests."""
import os
import subprocess

import pytest

import harness


def pytest_configure(config):
    missing = [str(p) for p in harness.PROGRAMS.values() if not p.exists()]
    if missing:
        pytest.exit(f"{' and '.join(missing)} missing: build first, or set LLMC_BUILD_DIR", 3)


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """name -> folder of a golden checkpoint, made on first use."""
    root = str(tmp_path_factory.mktemp("models"))
    return lambda name: harness.checkpoint(name, root)


@pytest.fixture(scope="session")
def plans(models, tmp_path_factory):
    """(name, tp, pp, *options) -> a verified plan; "smollm2" is the real model."""
    root, made = tmp_path_factory.mktemp("plans"), {}

    def get(name, tp=1, pp=1, *more, **keywords):
        key = (name, tp, pp, more, tuple(sorted(keywords.items())))
        if key not in made:
            folder = harness.SMOLLM2 if name == "smollm2" else models(name)
            made[key] = harness.compile_plan(folder, root / f"{name}-{tp}x{pp}-{len(made)}.fb", tp, pp, *more, **keywords)
        return made[key]

    return get


class NullGpus:
    """Environments of processes that see GPUs which null_gpus.c makes up."""
    H200 = "Made-up H200,90,140000,143771"

    def __init__(self, folder, headers):
        self.library, self.failing_library = (str(folder / f"lib{name}.so") for name in ("null_gpus", "failing_device"))
        for library, source in (self.library, "e2e/null_gpus.c"), (self.failing_library, "gpu/failing_device.c"):
            subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", f"-I{headers}", "-o", library, harness.ROOT / "test" / source,
                            "-ldl", "-lpthread"], check=True)

    def machine(self, *gpus, **more):
        return {"LD_PRELOAD": self.library, "NULL_GPUS": ";".join(gpus), **more}

    def failing(self, *gpus):
        """The same where a device fails, as test/gpu/failing_device.c is told to."""
        return self.machine(*gpus, LD_PRELOAD=f"{self.failing_library} {self.library}")


@pytest.fixture(scope="session")
def null_gpus(tmp_path_factory):
    headers = [p for p in ("/usr/local/cuda/include", "/usr/include") if os.path.exists(f"{p}/cublasLt.h")]
    if not headers or not (harness.BUILD / "lib/libllmrt_cuda.so").exists() or harness.SANITIZED:
        pytest.skip("this build has no CUDA, or is sanitized, which suffers no library preloaded in front of it")
    return NullGpus(tmp_path_factory.mktemp("null"), headers[0])
