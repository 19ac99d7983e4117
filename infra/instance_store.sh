#!/bin/bash
# On instance types with NVMe instance stores (their names have a `d`: m6gd, r5ad, g4dn), keep images and the files that
# containers write there: it is faster than the root volume, costs nothing more, and is wiped with the instance.
# Runs at every boot before Docker starts (cloud-boothook). Whatever goes wrong here, the root volume does instead.
set -uo pipefail
readonly mount_point=/mnt/instance-store label=instance-store

note() {
    echo "instance store: $*"
}

disks() {
    lsblk --nodeps --noheadings --paths --output NAME,MODEL | awk '/Amazon EC2 NVMe Instance Storage/ { print $1 }'
}

# One file system over all of the given disks.
format() {
    local device=$1
    if (($# > 1)) && { command -v mdadm || dnf install --assumeyes --quiet mdadm; } >/dev/null; then
        device=/dev/md/instance-store
        mdadm --create "$device" --run --level=0 --raid-devices=$# "$@" || return
    fi
    mkfs.xfs -q -f -L "$label" "$device"
}

main() {
    local devices folder
    mapfile -t devices < <(disks)
    if ((${#devices[@]} == 0)); then
        note "this instance type has none"
        return
    fi
    if systemctl is-active --quiet docker; then
        note "Docker is already running, so it keeps the root volume"
        return
    fi
    # After a reboot, the file system is there already.
    blkid --label "$label" >/dev/null || format "${devices[@]}" || return
    mkdir -p "$mount_point"
    mount LABEL="$label" "$mount_point" || return
    for folder in docker containerd; do
        mkdir -p "/var/lib/$folder" "$mount_point/$folder"
        cp --archive --no-clobber "/var/lib/$folder/." "$mount_point/$folder/" || return
        mount --bind "$mount_point/$folder" "/var/lib/$folder" || return
    done
    note "images and containers are on ${devices[*]}"
}

main || note "could not be set up, the root volume is used"
