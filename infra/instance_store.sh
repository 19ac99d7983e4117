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

# Whether a service runs or is about to: it has files open then, and must not lose sight of them.
runs() {
    case $(systemctl is-active "$1") in inactive | failed) return 1 ;; esac
}

# Put a folder of /var/lib on the file system, with what is in it.
move() {
    mkdir -p "/var/lib/$1" "$mount_point/$1" &&
        cp --archive --no-clobber "/var/lib/$1/." "$mount_point/$1/" &&
        mount --bind "$mount_point/$1" "/var/lib/$1"
}

main() {
    local devices
    mapfile -t devices < <(disks)
    if ((${#devices[@]} == 0)); then
        note "this instance type has none"
        return
    fi
    if runs docker; then
        note "Docker is already running, so it keeps the root volume"
        return
    fi
    # After a reboot, the file system is there already.
    blkid --label "$label" >/dev/null || format "${devices[@]}" || return
    mkdir -p "$mount_point"
    mount LABEL="$label" "$mount_point" || return
    move docker || return
    if runs containerd; then
        note "containerd is already running, so its own folder keeps the root volume"
    else
        move containerd || { umount /var/lib/docker; return 1; }
    fi
    note "images and containers are on ${devices[*]}"
}

main || note "could not be set up, the root volume is used"
