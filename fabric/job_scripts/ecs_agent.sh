#!/bin/bash
# Settings of the ECS agent, which starts after cloud-init. Batch adds ECS_CLUSTER to the same
# file, so lines are only ever added.
set -euo pipefail

readonly config=/etc/ecs/ecs.config

mkdir -p "$(dirname "$config")"
touch "$config"
while read -r setting; do
  grep -qxF "$setting" "$config" || echo "$setting" >>"$config"
done <<'SETTINGS'
ECS_AWSVPC_BLOCK_IMDS=true
SETTINGS
