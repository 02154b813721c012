#!/bin/sh
# Writes one line for each file and folder of this machine to the file $1, to be compared with another time's. Left out:
# logs, caches, what Ansible keeps for itself, and what is large (the image's own; releases are looked at by time).
find / -xdev \( -path /usr -o -path /opt/kimi -o -path /var/log -o -path /root/.cache \
    -o -path '/root/.ansible*' -o -path '/home/*/.ansible*' \
    -o -path '/var/cache/llmfleet/*' -o -path '/opt/sglang/releases/*/*/*' \) -prune \
    -o -type d -printf '%p d %m %U:%G\n' -o -printf '%p %y %m %U:%G %s %T@ %l\n' | sort > "$1"
