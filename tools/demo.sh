#!/usr/bin/env bash
# From nothing to an answer: sets up, builds, compiles SmolLM2-135M-Instruct for six CPU ranks, serves it,
# asks one question over HTTP and shows the answer as it streams.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
Usage: tools/demo.sh [QUESTION]

Runs tools/setup.sh, builds llmc and llmrt, compiles the model with --tp 3 --pp 2 for examples/topo/cpu-12.json,
verifies the plan, serves it on a free port of 127.0.0.1, asks QUESTION and streams the answer.
TEXT
}

case ${1:-} in
  -h|--help) usage; exit 0 ;;
  -*) echo "demo: unknown argument '$1'; see tools/demo.sh --help" >&2; exit 2 ;;
esac
question=${1:-What is the capital of France, and what is it known for?}

root=$PWD
model=$root/.cache/models/SmolLM2-135M-Instruct
server=
log=

say() { printf '\ndemo: %s\n' "$*"; }
show() { printf '$ %s\n' "$*"; "$@"; }

finish() {
  if [ -n "$server" ] && kill -0 "$server" 2>/dev/null; then
    kill -TERM "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  [ -z "$log" ] || rm -f "$log"
}
trap finish EXIT

tools/setup.sh
say "building llmc and llmrt"
text=$(cmake --preset release 2>&1) || { printf '%s\n' "$text" >&2; exit 1; }
cmake --build --preset release -j "$(nproc)" --target llmc llmrt
export PATH=$root/build/bin:$PATH

cd "$model"
say "compiling for six CPU ranks: three tensor-parallel ranks in each of two pipeline stages"
show llmc compile --topo "$root/examples/topo/cpu-12.json" --tp 3 --pp 2
say "proving the plan"
show llmc verify plan.fb

port=$("$root/.venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
log=$(mktemp)
say "serving it with six ranks in one process"
printf '$ %s\n' "llmrt serve plan.fb --port $port"
llmrt serve plan.fb --port "$port" >"$log" 2>&1 &
server=$!
ready=no
for _ in $(seq 600); do
  if curl -fsS -o /dev/null "http://127.0.0.1:$port/health" 2>/dev/null; then ready=yes; break; fi
  kill -0 "$server" 2>/dev/null || break
  sleep 0.1
done
if [ $ready = no ]; then
  echo "demo: the server did not become healthy within 60 s; its log:" >&2
  cat "$log" >&2
  exit 1
fi
tail -n 12 "$log"

# Prints the text of a stream of server-sent events as it arrives; fails unless it ends with [DONE].
print_stream='
import json, sys
tokens, done, started = None, False, False
for line in sys.stdin:
    if not line.startswith("data:"):
        if line.strip().startswith("{"):
            sys.exit("demo: the server answered: " + line.strip())
        continue
    data = line[5:].strip()
    if data == "[DONE]":
        done = True
        break
    event = json.loads(data)
    if "error" in event:
        sys.exit("demo: the server answered: " + event["error"]["message"])
    if event.get("usage"):
        tokens = event["usage"]["completion_tokens"]
    for choice in event["choices"]:
        text = choice["delta"].get("content") or ""
        started = started or bool(text)
        sys.stdout.write(text)
        sys.stdout.flush()
print()
if not done or not started:
    sys.exit("demo: the stream ended early")
print(f"({tokens} tokens)")
'
say "asking: $question"
body=$("$root/.venv/bin/python" -c '
import json, sys
print(json.dumps({"model": sys.argv[1], "messages": [{"role": "user", "content": sys.argv[2]}], "stream": True,
                  "stream_options": {"include_usage": True}, "temperature": 0, "max_tokens": 160}))' \
  "$(curl -fsS "http://127.0.0.1:$port/v1/models" | "$root/.venv/bin/python" -c 'import json, sys; print(json.load(sys.stdin)["data"][0]["id"])')" \
  "$question")
curl -sSN "http://127.0.0.1:$port/v1/chat/completions" -H 'Content-Type: application/json' -d "$body" \
  | "$root/.venv/bin/python" -u -c "$print_stream"

say "stopping the server"
kill -TERM "$server"
code=0
wait "$server" || code=$?
server=
[ $code = 0 ] || { echo "demo: llmrt serve ended with status $code" >&2; exit 1; }
echo "demo: done"
