#!/usr/bin/env python3
"""On a GPU machine: a rank's thread is stopped while requests run. The others have to find out within the deadline, on
whatever way they talk, and the server has to end. Ranks share the GPUs that are there.

    test/gpu/check_faults.py FOLDER       FOLDER as test/gpu/prepare.py made it
"""
import os
import sys
import time
from pathlib import Path

folder = Path(sys.argv[1]).resolve()
os.environ["LLMC_BUILD_DIR"] = str(folder)
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
from test_faults import stop_rank  # noqa: E402


def main():
    failed = 0
    for layout, rank, way in (("2x1", 1, "auto"), ("2x1", 1, "host"), ("1x2", 0, "auto")):
        start = time.time()
        try:
            why = stop_rank(folder / f"models/llama-tied/float32-{layout}.fb", "--backend", "cuda", "--share-devices",
                            "--collectives", way, rank=rank)
            said = f"not possible here: {why}" if why else "ended as it should"
        except Exception as e:
            failed += 1
            said = f"FAILED: {str(e)[-1500:]}"
        print(f"rank {rank} of {layout} stopped, collectives {way}: {said} ({time.time() - start:.0f} s)", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
