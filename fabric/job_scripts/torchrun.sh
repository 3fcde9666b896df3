#!/bin/bash
# Runs "torchrun ARGUMENTS" on every node of an AWS Batch multi-node job.
# The main node, index 0, decides how the job ends; the others leave once it is gone.
set -u

readonly port=${MASTER_PORT:-29500}
readonly wait_seconds=${TRAINYARD_WAIT_SECONDS:-900}
readonly probe_seconds=${TRAINYARD_PROBE_SECONDS:-5}
readonly grace_seconds=${TRAINYARD_GRACE_SECONDS:-60}
readonly efa_directory=${TRAINYARD_EFA_DIRECTORY:-/dev/infiniband}

say() { echo "trainyard node ${AWS_BATCH_JOB_NODE_INDEX:-?}: $*" >&2; }
fail() {
  say "${@:2}"
  exit "$1"
}

[[ -n ${AWS_BATCH_JOB_NODE_INDEX:-} ]] ||
  fail 64 "not in an AWS Batch multi-node job; submit this command with a multi-node definition"
command -v torchrun >/dev/null ||
  fail 127 "no torchrun in this image; install PyTorch in it and put torchrun on PATH"

if compgen -G "$efa_directory/uverbs*" >/dev/null; then
  PATH=$PATH:/opt/amazon/efa/bin
  fi_info -p efa >/dev/null 2>&1 ||
    fail 69 "the node has EFA devices but fi_info finds no efa provider in this image, so traffic" \
      "would silently use TCP; run AWS's efa_installer.sh -y --skip-kmod when building the image"
fi

# The address that the default route leaves from. It needs no name to resolve and sends nothing;
# 127.0.0.1 would not do, as some trainers hand their MASTER_ADDR to other nodes.
own_address() {
  python3 -c 'import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
    probe.connect(("192.0.2.1", 9))
    print(probe.getsockname()[0])' || echo 127.0.0.1 # no route at all: nobody else is out there
}

start_torchrun() {
  exec torchrun --nnodes="$AWS_BATCH_JOB_NUM_NODES" --node-rank="$AWS_BATCH_JOB_NODE_INDEX" \
    --nproc-per-node="${TRAINYARD_PROCESSES_PER_NODE:-1}" \
    --master-addr="$address" --master-port="$port" --rdzv-conf="timeout=$wait_seconds" "$@"
}

# Batch does not give the main node its own address.
if ((AWS_BATCH_JOB_NODE_INDEX == AWS_BATCH_JOB_MAIN_NODE_INDEX)); then
  address=$(own_address)
  start_torchrun "$@"
fi

readonly address=${AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS:?is not set on this node}
main_answers() { timeout 3 bash -c "exec 3<>/dev/tcp/$address/$port" 2>/dev/null; }

until main_answers; do
  ((SECONDS < wait_seconds)) ||
    fail 74 "main node $address:$port did not answer in $wait_seconds s; read its log, and see" \
      "that the security group of the tasks lets its members talk to each other"
  sleep 1
done

start_torchrun "$@" &
readonly torchrun=$!
trap 'kill -TERM "$torchrun"' TERM INT

runs() { kill -0 "$torchrun" 2>/dev/null; }
ends_within() {
  local second
  for ((second = 0; second < $1; second++)); do
    runs || return 0
    sleep 1
  done
  ! runs
}

missed=0
while runs && ((missed < 3)); do
  sleep "$probe_seconds"
  if main_answers; then missed=0; else missed=$((missed + 1)); fi
done

# A main node that has just finished does not answer either: let torchrun end by itself first.
if ! ends_within "$grace_seconds"; then
  say "main node $address is gone; stopping"
  kill -TERM "$torchrun"
  ends_within 20 || kill -KILL "$torchrun"
  exit 75
fi
wait "$torchrun"
