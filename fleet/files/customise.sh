#!/bin/sh
# Runs once in the base image, as root in a chroot: what makes it a host as a provider would hand it over.
set -eu
export LC_ALL=C
useradd --create-home --shell /bin/bash ops
echo 'ops ALL=(ALL:ALL) NOPASSWD: ALL' > /etc/sudoers.d/ops
chmod 0440 /etc/sudoers.d/ops
groupadd --system --gid 891 sglang-build
useradd --system --uid 891 --gid 891 --create-home --home-dir /var/lib/sglang-build \
    --shell /usr/sbin/nologin sglang-build
cat > /etc/ssh/sshd_config.d/fleet.conf <<'CONF'
PasswordAuthentication no
PermitRootLogin no
UseDNS no
HostKey /etc/ssh/ssh_host_ed25519_key
CONF
rm -f /etc/ssh/ssh_host_*
# Names come from /etc/hosts alone: a resolver that cannot be reached costs Gloo 100 s.
sed -i 's/^hosts:.*/hosts: files/' /etc/nsswitch.conf
: > /etc/resolv.conf
# Every node gets an identity of its own at its first boot.
: > /etc/machine-id
rm -f /var/lib/dbus/machine-id
mkdir -p /var/log/journal /etc/systemd/journald.conf.d
printf '[Journal]\nStorage=persistent\nSystemMaxUse=64M\nRateLimitIntervalSec=0\n' \
    > /etc/systemd/journald.conf.d/fleet.conf
# Nothing on a node has a terminal, a clock of its own or a package mirror.
systemctl mask --quiet console-getty.service getty@.service apt-daily.timer apt-daily-upgrade.timer \
    dpkg-db-backup.timer e2scrub_all.timer fstrim.timer systemd-timesyncd.service systemd-networkd.socket
systemctl enable --quiet ssh.service
systemctl set-default --quiet multi-user.target
apt-get clean
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/log/bootstrap.log /var/log/dpkg.log /var/log/apt \
    /usr/share/doc/* /usr/share/man/* /usr/share/locale/*
