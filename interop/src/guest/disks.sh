# Prints one line for each SCSI disk on USB; disk.rs reads it.
for block in /sys/block/sd*; do
    device=$(readlink -f "$block/device" 2>/dev/null) || continue
    interface=${device%%/host[0-9]*}
    usb=${interface%/*}
    [ -e "$usb/speed" ] || continue
    driver=$(readlink "$interface/driver")
    generic=$(ls "$block/device/scsi_generic" 2>/dev/null)
    echo "${block##*/}|${generic:--}|${driver##*/}|$(cat "$device/queue_depth")|$(cat "$block/size")|$(cat "$usb/speed")|${usb##*/}|${device##*:}|$(cat "$usb/serial" 2>/dev/null)"
done
