# Prints one line for each SCSI disk on USB; disk.rs reads it.
for block in /sys/block/sd*; do
    device=$(readlink -f "$block/device" 2>/dev/null) || continue
    interface=${device%%/host[0-9]*}
    usb=${interface%/*}
    [ -e "$usb/speed" ] || continue
    driver=$(readlink "$interface/driver")
    generic=$(ls "$block/device/scsi_generic" 2>/dev/null)
    depth=$(cat "$device/queue_depth" 2>/dev/null) sectors=$(cat "$block/size" 2>/dev/null)
    speed=$(cat "$usb/speed" 2>/dev/null) serial=$(cat "$usb/serial" 2>/dev/null)
    # What is going away at this moment has lost some of it already; what is coming does not have all of it yet.
    [ -n "$driver" ] && [ -b "/dev/${block##*/}" ] && [ -n "$depth" ] && [ -n "$sectors" ] && [ -n "$speed" ] || continue
    echo "${block##*/}|${generic:--}|${driver##*/}|$depth|$sectors|$speed|${usb##*/}|${device##*:}|$serial"
done
