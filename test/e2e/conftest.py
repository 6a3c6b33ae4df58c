"""Fixtures of the end-to-end tests."""
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
