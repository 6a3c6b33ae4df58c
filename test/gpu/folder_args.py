"""The command line that checks over a prepared folder share: FOLDER [WORD …], and options of their own. To be imported before
harness, which then runs the folder's binaries."""
import argparse
import os
import sys
from pathlib import Path


def parse(doc, **options):
    """Parses the command line; `options`: what argparse takes for each, by name. Returns .folder, .words, and those."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=lambda f: Path(f).resolve(), help="as test/gpu/prepare.py made it")
    parser.add_argument("words", nargs="*", help="only what has one of these in its name")
    for name, option in options.items():
        parser.add_argument(f"--{name}", **option)
    args = parser.parse_intermixed_args()
    os.environ["LLMC_BUILD_DIR"] = str(args.folder)
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
    return args
