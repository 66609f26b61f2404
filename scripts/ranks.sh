#!/usr/bin/env bash
# One run in several processes of this machine, compared with the same run in one: three recipes, uneven parts, an end
# that is asked for, ranks that are killed, resumes with other numbers of processes. Prints a line a case and ends with
# 1 if files differ, an exit code is another, or something takes longer than its limit.
#
#     scripts/ranks.sh                          # GPUs, by NCCL (EXMY_NCCL=tcp: without)
#     DEVICE=cpu RANKS=3 scripts/ranks.sh       # processors
#     SPEED=1 scripts/ranks.sh                  # also GPT-2 124M, on one GPU and on all ranks: some minutes
set -uo pipefail
device=${DEVICE:-cuda} ranks=${RANKS:-2} limit=${LIMIT:-120}
exmy=${EXMY:-$(cd "$(dirname "$0")/.." && pwd)/target/release/exmy}
folder=$(mktemp -d)
trap 'kill -KILL $(jobs -p) 2> /dev/null; rm -rf "$folder"' EXIT
cd "$folder"
export LOCAL_RANK MASTER_ADDR=127.0.0.1 MASTER_PORT=${MASTER_PORT:-29400}
failed=0 pids=() codes=""

# The processes of one run.
begin() {
    pids=()
    for ((rank = 0; rank < ranks; rank++)); do
        RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=$ranks \
            "$exmy" train --ranks --device "$device" --quiet "$@" > "rank.$rank" 2>&1 &
        pids+=($!)
    done
}

# Waits for them, at most so long; their exit codes.
finish() {
    (sleep "$limit"; kill -KILL "${pids[@]}") 2> /dev/null &
    local dog=$! all=()
    for pid in "${pids[@]}"; do
        wait "$pid" 2> /dev/null
        all+=($?)
    done
    kill "$dog" 2> /dev/null
    codes="${all[*]}"
}

# The same run in one process.
alone() {
    timeout -s KILL "$limit" "$exmy" train --quiet --device "$1" "${@:2}" > alone 2>&1
    same "in one process, exit code" 0 $?
}
one=$device
[ "$device" = cuda ] && one=cuda:0

# The contents of all files that do not tell the time.
digest() { (cd "$1" 2> /dev/null && find . -type f ! -name timing.jsonl | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -c1-16); }

# A case: what it is, what there should be, what there is.
same() {
    if [ "$2" = "$3" ]; then echo "ok      $1: $3"; else
        echo "FAILED  $1: $3, not $2"
        tail -n 3 alone rank.* 2> /dev/null
        failed=1
    fi
}
repeat() { printf "$1%.0s " $(seq "$ranks") | sed 's/ $//'; }

# Waits until a run has come to a step.
until_step() {
    for ((i = 0; i < 10 * limit; i++)); do
        grep -qs "\"step\":$2," "$1"/*/metrics.jsonl && return
        sleep 0.1
    done
}

compare() {
    local name=$1
    shift
    alone "$one" "$@" --out "$name-1"
    begin "$@" --out "$name"
    finish
    same "$name, exit codes" "$(repeat 0)" "$codes"
    same "$name, files" "$(digest "$name-1")" "$(digest "$name")"
}
steps=(--steps "${STEPS:-12}")
compare mxfp4-sr8 --preset micro --recipe mxfp4@sr8 "${steps[@]}" --set train.batch=20 --set train.accumulate=5
compare chon --preset gla-micro --recipe chon "${steps[@]}" --set train.batch=12 --set train.accumulate=3
compare msamp-o1 --preset micro --recipe msamp-o1 "${steps[@]}" --set train.batch=16 --set train.accumulate=4
if [ "$device" = cuda ]; then
    compare hopper --preset micro --recipe mxfp8-e4m3+sums=hopper:bf16 "${steps[@]}" \
        --set train.batch=24 --set train.accumulate=6
fi

long=(--preset "${LONG:-mini}" --recipe mxfp8-e4m3 --steps "${LONG_STEPS:-1200}" --set train.batch=16
    --set train.accumulate=4 --set record.checkpoint_every=200)
alone "$one" "${long[@]}" --out whole
whole=$(digest whole)
last=$((ranks - 1))

begin "${long[@]}" --out asked
until_step asked 60
kill -TERM "${pids[last]}"
finish
same "the last rank is asked to end, exit codes" "$(repeat 143)" "$codes"
alone "$one" --resume asked
same "resumed by one, files" "$whole" "$(digest asked)"

begin "${long[@]}" --out killed
until_step killed 220
kill -KILL "${pids[last]}"
finish
same "the last rank is killed, exit codes" "$(for ((i = 0; i < last; i++)); do printf '2 '; done)137" "$codes"
begin --resume killed
finish
same "resumed by all, files" "$whole" "$(digest killed)"

begin "${long[@]}" --out led
until_step led 220
kill -KILL "${pids[0]}"
finish
same "rank 0 is killed, exit codes" "137$(for ((i = 0; i < last; i++)); do printf ' 2'; done)" "$codes"
alone "$one" --resume led
same "resumed by one, files" "$whole" "$(digest led)"

if [ "${SPEED:-0}" != 0 ]; then
    limit=300
    python3 -c 'import array, random
random.seed(1)
for name, count in ("train", 4_000_000), ("val", 200_000):
    with open(name + ".bin", "wb") as file:
        array.array("H", [min(int(random.paretovariate(0.3)), 50257) - 1 for _ in range(count)]).tofile(file)'
    speed=(--preset gpt2-124m --recipe mxfp8-e4m3+sums=hopper:bf16 --data train.bin --steps 25 --set train.batch=128
        --set train.accumulate=16 --set record.eval_windows=0)
    alone "$one" "${speed[@]}" --out speed-1
    grep tokens/s -A1 alone
    begin "${speed[@]}" --out speed
    finish
    grep tokens/s -A1 rank.0
    same "GPT-2 124M, exit codes" "$(repeat 0)" "$codes"
    same "GPT-2 124M, files" "$(digest speed-1)" "$(digest speed)"
fi
exit "$failed"
