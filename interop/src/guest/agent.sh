# The agent: reads requests from the virtio serial port "agent" and answers there; reply.rs has the answers.
#
#   start ID LENGTH        a script of LENGTH bytes follows; it runs on its own
#   wait ID SECONDS        answers when the script has ended, or when the time is over
#   kill ID                kills the script and what it started; no answer
#   put ID LENGTH PATH     LENGTH bytes follow for that file
#   append ID LENGTH PATH  the same, at its end
#   get ID 0 PATH          answers with the file

for port in /sys/class/virtio-ports/*; do
    [ "$(cat "$port/name")" = agent ] && exec 3<>"/dev/${port##*/}"
done
jobs=/run/jobs
mkdir -p $jobs

size() { stat -c %s "$1"; }

receive() { # LENGTH bytes of the port
    [ "$1" = 0 ] || dd bs="$1" count=1 iflag=fullblock <&3 2>/dev/null
}

start() { # JOB: runs its script; the status file appears when it has ended, then the fifo wakes the agent
    mkfifo "$1/over"
    (
        exec 3>&-
        setsid sh "$1/script" </dev/null >"$1/stdout" 2>"$1/stderr" &
        echo $! >"$1/pid"
        wait $!
        echo $? >"$1/ended"
        mv "$1/ended" "$1/status"
        echo 4<>"$1/over" >&4
    ) &
}

finish() { # ID SECONDS
    job=$jobs/$1
    [ -d "$job" ] || { echo "absent $1" >&3; return; }
    exec 4<>"$job/over"
    [ -e "$job/status" ] || read -r -t "$2" _ <&4
    exec 4>&-
    [ -e "$job/status" ] || { echo "running $1" >&3; return; }
    echo "over $1 $(cat "$job/status") $(size "$job/stdout") $(size "$job/stderr")" >&3
    cat "$job/stdout" "$job/stderr" >&3
    rm -r "$job"
}

send() { # ID PATH
    [ -f "$2" ] || { echo "absent $1" >&3; return; }
    length=$(size "$2")
    echo "file $1 $length" >&3
    head -c "$length" "$2" >&3
}

echo "ready $(uname -r)" >&3
while read -r verb id number path <&3; do
    case $verb in
        start)
            mkdir "$jobs/$id"
            receive "$number" >"$jobs/$id/script"
            start "$jobs/$id"
            ;;
        wait) finish "$id" "$number" ;;
        kill) kill -KILL -- "-$(cat "$jobs/$id/pid")" 2>/dev/null ;;
        put)
            receive "$number" >"$path"
            echo "stored $id" >&3
            ;;
        append)
            receive "$number" >>"$path"
            echo "stored $id" >&3
            ;;
        get) send "$id" "$path" ;;
    esac
done
