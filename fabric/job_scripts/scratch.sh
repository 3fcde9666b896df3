#!/bin/bash
# Joins the node's instance store disks to one file system on /scratch.
set -euo pipefail

readonly expected=@INSTANCE_STORE_DISKS@
readonly mount_point=/scratch
readonly array=/dev/md/scratch
readonly console=/dev/console

fail() {
  echo "trainyard: no $mount_point: $*" | tee "$console" >&2
  exit 1
}
trap 'fail "line $LINENO failed: $BASH_COMMAND"' ERR

if mountpoint -q "$mount_point"; then
  exit 0
fi

# With no file system on it the directory refuses every write, also root's and after a reboot, so
# that a job never fills the root volume believing that it is on fast disks.
mkdir -p "$mount_point"
chattr +i "$mount_point"

# By model, so that an EBS volume is never taken. Each disk has several links, hence the sort.
udevadm settle
shopt -s nullglob
links=(/dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_*)
disks=()
if ((${#links[@]})); then
  mapfile -t disks < <(readlink -f "${links[@]}" | sort -u)
fi
((${#disks[@]} == expected)) ||
  fail "found ${#disks[@]} instance store disks, this instance type has $expected"

device=${disks[0]}
if ((expected > 1)); then
  # The repositories are in S3: without a NAT this works through the S3 gateway endpoint.
  command -v mdadm >/dev/null || dnf install -y -q mdadm
  device=$array
  if [[ ! -e $device ]]; then
    mdadm --create "$device" --run --level=0 --name=scratch --homehost=any \
      --raid-devices="$expected" "${disks[@]}"
    udevadm settle
  fi
fi

# -K: the disks come trimmed, https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ssd-instance-store.html
blkid -t LABEL=scratch "$device" >/dev/null || mkfs.xfs -q -K -f -L scratch "$device"

# By label: the array's number can change at a reboot. nofail: the node then still starts.
grep -q "[[:space:]]${mount_point}[[:space:]]" /etc/fstab ||
  echo "LABEL=scratch $mount_point xfs noatime,nofail 0 0" >>/etc/fstab
mount "$mount_point"
chmod 1777 "$mount_point"
