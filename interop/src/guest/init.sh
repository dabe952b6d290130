#!/bin/busybox sh
# The first program of the guest: mounts what tools expect, loads the modules that the kernel command line
# names (uaskit.modules=a,b,c), and keeps the agent alive.
/bin/busybox --install -s /bin
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp
mount -t devtmpfs dev /dev
exec </dev/console >/dev/console 2>&1
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t debugfs debug /sys/kernel/debug
mount -t tmpfs tmp /tmp
mount -t tmpfs run /run
for word in $(cat /proc/cmdline); do
    case $word in
        uaskit.modules=*) modules=$(echo "${word#*=}" | tr , ' ') ;;
    esac
done
# One at a time: a module that this kernel lacks must not keep the others out.
for module in $modules; do
    modprobe "$module" || echo "interop: no module $module"
done
while :; do
    sh /usr/share/interop/agent.sh
    sleep 0.1
done
