//! Cases as the swarm printed them when they were red. They are green from then on.
//!
//! Values that a line lacks are as they were when it was printed. Faults that struck then and have no opportunity any more are left
//! out.

use super::*;

/// Cases, whole, and what was wrong.
const REGRESSIONS: [(&str, &str); 33] = [
    (
        "the glue cancelled a transfer of the device by a number that another had by then",
        "seed=284 wire=uas rate=gen1 controller=none hubs=0 drives=1 translated=none nap=never early=no parts=plain costs=no \
         commands=usual stack=no streams=16 depth=4 transfer=4096 block=512 blocks=4 latency-us=10 at-once=4 cache=no requests=116 longest=4 reads=40 \
         through=5 flushes=0 zeroes=0 aborts=5 again=0 finale=power-loss faults=none",
    ),
    (
        "a stream that the host had started counted as refused, and was never proposed again",
        "seed=347 wire=uas rate=gen2x2 controller=none hubs=0 drives=1 translated=none nap=never early=no parts=plain costs=no \
         commands=usual stack=no streams=64 depth=1 transfer=4096 block=512 blocks=4 latency-us=1000 at-once=1 cache=no requests=46 longest=1 reads=60 \
         through=0 flushes=3 zeroes=0 aborts=0 again=0 finale=unplug faults=status-twice@55",
    ),
    (
        "a pipe that halted before it heard the end of a stream took it for that of no stream",
        "seed=7915 wire=uas rate=gen2x2 controller=none hubs=0 drives=1 translated=none nap=never early=no parts=plain costs=no \
         commands=usual stack=no streams=64 depth=16 transfer=4096 block=512 blocks=8 latency-us=0 at-once=1 cache=no requests=120 longest=8 reads=40 \
         through=5 flushes=10 zeroes=5 aborts=0 again=0 finale=power-loss faults=stall@53,stall@65,header-damaged@338,stall@97,\
         header-damaged@562,stall@105,stall@114,header-damaged@944,header-damaged@1108,stall@175,stall@177,packet-lost@1654,\
         packet-lost@1760,packet-lost@2176,stall@318,stall@386,packet-lost@3089,stall@432",
    ),
    (
        "requests that had waited for all their time but a moment were begun, and took the drive for dead",
        "seed=1045 wire=turbo rate=high controller=none hubs=0 drives=1 translated=none nap=never early=no parts=plain costs=no \
         commands=usual stack=no streams=4 depth=30 transfer=16384 block=512 blocks=32 latency-us=1000 at-once=2 cache=yes requests=120 longest=32 \
         reads=40 through=5 flushes=0 zeroes=0 aborts=0 again=0 finale=power-loss faults=slow@13,packet-lost@1959,\
         packet-lost@2543,packet-lost@3143,packet-lost@3186,packet-lost@4838,packet-lost@4918,packet-lost@6017,packet-lost@6822,\
         packet-lost@7876,packet-lost@8711,packet-lost@8810,packet-lost@9195,packet-lost@9634,packet-lost@9941,packet-lost@11112,\
         packet-lost@11840,packet-lost@13304,packet-lost@13926,packet-lost@14100,packet-lost@15484,packet-lost@15866",
    ),
    (
        "an endpoint that was reset for another try stayed halted on the link",
        "seed=740 wire=uas rate=gen1 controller=card hubs=0 drives=1 translated=none nap=never early=no parts=plain costs=no \
         commands=usual stack=no streams=4 depth=2 transfer=16384 block=512 blocks=4 latency-us=60 at-once=1 cache=no requests=4 longest=1 reads=20 \
         through=0 flushes=0 zeroes=0 aborts=5 again=0 finale=power-loss faults=status-twice@8,packet-lost@207",
    ),
    (
        "a device answered Prime with STALL, which ended no transfer, so that the halt was never cleared",
        "seed=2145 wire=uas rate=gen2x2 controller=chipset hubs=0 drives=1 translated=none nap=never early=no parts=plain \
         costs=no commands=usual stack=no streams=4 depth=4 transfer=65536 block=4096 blocks=32 latency-us=0 at-once=1 cache=no requests=22 longest=32 \
         reads=20 through=0 flushes=3 zeroes=0 aborts=0 again=0 finale=unplug faults=stall@124",
    ),
    (
        "what waited behind a slow request had its time run out, and the device was taken for dead",
        "seed=8583 wire=turbo rate=gen2x2 controller=none hubs=0 drives=1 translated=none nap=never early=no parts=plain \
         costs=no commands=usual stack=no streams=2 depth=15 transfer=4096 block=512 blocks=256 latency-us=1000 at-once=1 cache=no requests=42 longest=1 \
         reads=60 through=0 flushes=0 zeroes=0 aborts=0 again=0 finale=power-loss faults=slow@23,slow@27,slow@37",
    ),
    (
        "behind hubs a status that was sent twice was not known to be possibly that of an earlier command",
        "seed=6314 wire=uas rate=gen2 controller=card hubs=2 drives=1 translated=none nap=never early=no parts=plain costs=no \
         commands=usual stack=no streams=64 depth=1 transfer=65536 block=512 blocks=4 latency-us=1 at-once=1 cache=no requests=1 longest=1 reads=60 \
         through=0 flushes=0 zeroes=0 aborts=0 again=70 finale=power-loss faults=status-twice@10,status-twice@11",
    ),
    (
        "the response to an abort that was given up was taken for that to the reset that had its tag, and what the drive still did came late",
        "seed=24012 wire=uas rate=gen2x2 controller=none hubs=0 drives=1 translated=none nap=never early=no parts=plain costs=no \
         commands=usual stack=no streams=4 depth=2 transfer=4096 block=512 blocks=4 latency-us=1 at-once=32 cache=no requests=21 longest=4 reads=40 \
         through=10 flushes=0 zeroes=0 aborts=0 again=70 finale=power-loss faults=slow@0,slow@19",
    ),
    (
        "what was meant for the next command under a tag went where the last one wanted it, which a status of an earlier one had ended",
        "seed=38670 wire=uas rate=gen1 controller=none hubs=0 drives=1 translated=none nap=never early=no parts=plain costs=no \
         commands=usual stack=no streams=16 depth=15 transfer=512 block=512 blocks=32 latency-us=1 at-once=4 cache=no requests=8 longest=32 reads=60 \
         through=5 flushes=10 zeroes=0 aborts=0 again=0 finale=power-loss faults=status-lost@0,stall@13,status-tag@16,\
         status-lost@18,stall@63,packet-lost@318,status-lost@24,not-ready@56,status-twice@30,stall@115,stall@129,stall@156,\
         packet-lost@640,not-ready@108,stall@166,stall@169,medium-error@48,stall@192,status-twice@53,status-lost@59,\
         packet-lost@1025,packet-lost@1040,stall@241,status-lost@64,packet-lost@1120,stall@256,medium-error@67,status-twice@60,\
         status-lost@68,stall@304,stall@324,not-ready@197,status-twice@108,status-twice@110,slow@119",
    ),
    (
        "an endpoint that was configured again kept the sequence number of the previous one, so that an answer was missed",
        "seed=39895 wire=bot rate=gen1 controller=chipset hubs=1 drives=3 translated=none nap=idle early=no parts=plain costs=no \
         commands=usual stack=no streams=16 depth=1 transfer=4096 block=4096 blocks=32 latency-us=60 at-once=1 cache=no requests=51 longest=32 reads=20 \
         through=10 flushes=10 zeroes=5 aborts=0 again=40 finale=power-loss faults=packet-lost@715/2,status-twice@70/2,\
         status-twice@115/2,status-twice@182/2,status-twice@207/2,status-twice@274/2,status-twice@450/2,status-twice@551/2,\
         status-twice@592/2,status-twice@668/2,status-twice@681/2,status-twice@682/2,status-twice@693/2,status-twice@714/2,\
         slow@715/2,packet-lost@12379/2,status-twice@794/2,status-twice@799/2",
    ),
    (
        "the response to an abort whose status transfer had failed was taken for that to the reset that had its tag",
        "seed=99872 wire=uas rate=gen1 controller=none hubs=0 drives=1 translated=none nap=at-work early=no parts=plain costs=no \
         commands=usual stack=no streams=4 depth=4 transfer=4096 block=4096 blocks=4 latency-us=1000 at-once=1 cache=no requests=29 longest=4 reads=60 \
         through=10 flushes=3 zeroes=0 aborts=5 again=70 finale=unplug faults=medium-error@25,status-lost@38,stall@139,\
         status-tag@51,status-tag@66,stall@203",
    ),
    (
        "a write whose last acknowledgement was lost while its endpoint was being stopped completed with GOOD and short, and was not sent again",
        "seed=99844 wire=uas rate=gen2x2 controller=card hubs=0 drives=1 translated=none nap=never early=no parts=plain costs=no \
         commands=usual stack=no streams=32 depth=30 transfer=65536 block=4096 blocks=4 latency-us=1 at-once=1 cache=no requests=20 longest=1 reads=20 \
         through=5 flushes=3 zeroes=0 aborts=5 again=0 finale=power-loss faults=not-ready-storm@75,payload-damaged@130,\
         packet-lost@525",
    ),
    (
        "a device answered NoStream of a stopped endpoint with STALL, which halted it for good",
        "seed=85002 wire=uas rate=gen1 controller=card hubs=0 drives=1 translated=none nap=never early=no parts=plain costs=no \
         commands=usual stack=no streams=64 depth=4 transfer=4096 block=4096 blocks=4 latency-us=10 at-once=32 cache=no requests=53 longest=4 reads=20 \
         through=0 flushes=3 zeroes=0 aborts=5 again=0 finale=unplug faults=stall@44,stall@46,payload-damaged@87,stall@123,\
         payload-damaged@215,stall@133,medium-error@31,stall@144,payload-damaged@239,medium-error@47,stall@216,stall@232,\
         stall@242,stall@284,payload-damaged@514,stall@322,stall@331,stall@405,stall@419,stall@444,stall@464,unplug@3159",
    ),
    (
        "an endpoint with streams ran again before its halt was cleared, and the request that was to clear it was lost",
        "seed=91302 wire=uas rate=gen2x2 controller=card hubs=2 drives=3 translated=none nap=never early=no parts=plain costs=no \
         commands=usual stack=no streams=64 depth=4 transfer=4096 block=512 blocks=8 latency-us=10 at-once=1 cache=no requests=60 longest=8 reads=20 \
         through=0 flushes=10 zeroes=0 aborts=5 again=40 finale=power-loss faults=stall@6,status-lost@2,power-loss@1667,\
         status-lost@5,packet-lost@211,packet-lost@776,status-lost@64,stall@210,packet-lost@1145",
    ),
    (
        "the glue left a transfer of the host without an end, since a packet that was never taken was thought to be in a translator",
        "seed=2567 wire=uas rate=high controller=chipset hubs=2 drives=3 translated=each nap=never early=no parts=plain costs=no \
         commands=usual stack=no streams=2 depth=2 transfer=65536 block=4096 blocks=32 latency-us=0 at-once=1 cache=no requests=27 longest=32 reads=20 \
         through=10 flushes=0 zeroes=0 aborts=0 again=0 finale=unplug faults=status-tag@4/3",
    ),
    (
        "a disk that waited out its patience was taken for stuck, by the events that others' requests made meanwhile",
        "seed=2026 wire=uas rate=high controller=early-card hubs=1 drives=3 translated=one nap=idle early=no parts=plain \
         costs=no commands=usual stack=no streams=16 depth=8 transfer=4096 block=4096 blocks=256 latency-us=60 at-once=2 cache=yes requests=120 \
         longest=32 reads=20 through=10 flushes=10 zeroes=0 aborts=0 again=0 finale=unplug faults=status-lost@19/2,\
         packet-lost@571/2,packet-lost@643/2,not-ready@72/2,packet-lost@1147/2,packet-lost@2255/2,packet-lost@2474/2,\
         packet-lost@2964/2,status-lost@94/2,not-ready@236/2,not-ready@288/2,packet-lost@5311/2,not-ready@325/2,\
         packet-lost@6033/2,not-ready@343/2,not-ready@351/2,packet-lost@7861/2,packet-lost@8435/2,not-ready@479/2,\
         not-ready@496/2,status-lost@265/2,packet-lost@9922/2,not-ready@545/2,packet-lost@11762/2,status-lost@331/2,\
         not-ready@667/2,status-lost@353/2,not-ready@754/2,not-ready@847/2,not-ready@882/2,status-lost@468/2,not-ready@947/2,\
         not-ready@967/2,not-ready@1007/2,not-ready@1055/2,packet-lost@20362/2,packet-lost@20636/2,packet-lost@20804/2,\
         packet-lost@21221/2,packet-lost@21538/2,not-ready@1165/2,packet-lost@22741/2,packet-lost@23093/2,packet-lost@23318/2,\
         status-lost@614/2,packet-lost@23623/2,not-ready@1256/2,packet-lost@24365/2,packet-lost@24457/2,packet-lost@24989/2,\
         not-ready@1318/2,not-ready@1377/2,packet-lost@26827/2,not-ready@1421/2,packet-lost@27589/2,status-lost@737/2,\
         packet-lost@29024/2,packet-lost@30329/2,packet-lost@30488/2,packet-lost@30979/2,packet-lost@31596/2,packet-lost@31658/2,\
         packet-lost@33174/2,packet-lost@33373/2",
    ),
    (
        "a transfer for the response to an abort was taken for one that is lost, since the request had ended before it was answered",
        "seed=1284 wire=uas rate=gen2x2 controller=chipset hubs=0 drives=1 translated=none nap=never early=no parts=plain \
         costs=no commands=usual stack=no streams=64 depth=16 transfer=16384 block=4096 blocks=4 latency-us=1 at-once=1 cache=no requests=14 longest=1 \
         reads=20 through=0 flushes=0 zeroes=0 aborts=5 again=40 finale=power-loss faults=none",
    ),
    (
        "behind a controller what was to end a transfer that an abort was about stayed on its pipe when that had ended by itself",
        "seed=6135 wire=uas rate=gen1 controller=chipset hubs=0 drives=1 translated=none nap=never early=no parts=plain costs=no \
         commands=usual stack=no streams=4 depth=2 transfer=65536 block=512 blocks=4 latency-us=1 at-once=1 cache=no requests=52 longest=1 reads=40 \
         through=0 flushes=0 zeroes=0 aborts=5 again=0 finale=unplug faults=none",
    ),
    (
        "a status whose last acknowledgement was lost was taken for one that a drive ought not to offer",
        "seed=3967 wire=uas rate=gen1 controller=chipset hubs=0 drives=1 translated=none nap=never early=yes parts=plain \
         costs=no commands=usual stack=no streams=4 depth=4 transfer=512 block=512 blocks=32 latency-us=1000 at-once=1 cache=no requests=20 longest=32 \
         reads=60 through=5 flushes=0 zeroes=0 aborts=0 again=70 finale=unplug faults=header-damaged@100,header-damaged@441,\
         header-damaged@508,header-damaged@572,header-damaged@764,header-damaged@769,header-damaged@831,packet-lost@828,\
         header-damaged@974,header-damaged@1125,header-damaged@1143,header-damaged@1679,packet-lost@1755,header-damaged@1795,\
         header-damaged@1943,header-damaged@2122,packet-lost@2161,header-damaged@2220,header-damaged@2239,header-damaged@2457,\
         header-damaged@2567,header-damaged@2628,header-damaged@2773,header-damaged@2867,packet-lost@2944,header-damaged@3057,\
         header-damaged@3135,packet-lost@3380,packet-lost@3699",
    ),
    (
        "after a reset a bridge with a buffer full of data that no host would read waited for free space, and its drive waited for the bridge",
        "seed=215 wire=bot rate=gen2 controller=early-card hubs=1 drives=3 translated=none nap=never early=no parts=single-flash \
         costs=no commands=usual stack=no streams=16 depth=1 transfer=65536 block=4096 blocks=32 latency-us=0 at-once=1 cache=no requests=17 longest=32 \
         reads=40 through=10 flushes=0 zeroes=0 aborts=0 again=40 finale=unplug faults=status-twice@35/2",
    ),
    (
        "the same after an abort",
        "seed=1418 wire=uas rate=gen1 controller=chipset hubs=2 drives=3 translated=none nap=idle early=no parts=sending-flash \
         costs=yes commands=usual stack=no streams=64 depth=1 transfer=65536 block=512 blocks=32 latency-us=10 at-once=1 cache=no requests=8 longest=32 \
         reads=60 through=5 flushes=0 zeroes=0 aborts=5 again=40 finale=unplug faults=not-ready@2/3",
    ),
    (
        "a drive behind a bridge waited for the rest of a write of which a block could not be written",
        "seed=172 wire=bot rate=gen2x2 controller=card hubs=1 drives=2 translated=none nap=idle early=no parts=sending-flash \
         costs=no commands=usual stack=no streams=4 depth=1 transfer=16384 block=4096 blocks=32 latency-us=1 at-once=1 cache=no requests=82 longest=32 \
         reads=20 through=10 flushes=0 zeroes=0 aborts=0 again=0 finale=power-loss faults=controller-halt@26558,\
         medium-error@116/2,status-twice@252/2",
    ),
    (
        "the same in a drive that was pulled out, which was waited for to come to rest",
        "seed=1081 wire=turbo rate=gen2 controller=chipset hubs=2 drives=1 translated=none nap=idle early=yes parts=single-flash \
         costs=no commands=usual stack=no streams=64 depth=16 transfer=65536 block=4096 blocks=64 latency-us=1 at-once=1 cache=no requests=36 longest=32 \
         reads=60 through=10 flushes=10 zeroes=0 aborts=0 again=0 finale=power-loss faults=power-loss@906,hub-reset@3789",
    ),
    (
        "a disk of which others waited for the least to be read was asked for ever at the time when it passed",
        "seed=9581 wire=uas rate=gen2x2 controller=card hubs=1 drives=1 translated=none nap=idle early=no parts=pieces-disk \
         costs=yes commands=usual stack=no streams=4 depth=4 transfer=512 block=512 blocks=16 latency-us=0 at-once=1 cache=no requests=109 longest=8 \
         reads=40 through=5 flushes=10 zeroes=0 aborts=0 again=70 finale=power-loss faults=medium-error@35,status-tag@57,\
         medium-error@115,hub-reset@1876,medium-error@196,medium-error@208,medium-error@254,medium-error@320,medium-error@362",
    ),
    (
        "the same at full speed",
        "seed=6561 wire=uas rate=full controller=chipset hubs=0 drives=1 translated=none nap=never early=no parts=pieces-disk \
         costs=yes commands=usual stack=no streams=32 depth=16 transfer=16384 block=512 blocks=256 latency-us=1000 at-once=1 cache=no requests=46 \
         longest=4 reads=60 through=5 flushes=3 zeroes=5 aborts=0 again=70 finale=power-loss faults=not-ready-storm@120",
    ),
    (
        "an interrupt that a slow driver had kept waiting was due before its time",
        "seed=125 wire=uas rate=gen1 controller=card hubs=0 drives=1 translated=none nap=never early=no parts=plain costs=yes commands=usual stack=no \
         streams=64 depth=8 transfer=16384 block=4096 blocks=16 latency-us=10 at-once=1 cache=no requests=1 longest=1 reads=20 \
         through=5 flushes=0 zeroes=0 aborts=0 again=0 finale=unplug faults=none",
    ),
    (
        "a stream that was proposed between a reset and the end of the halt was taken for one that no device proposes",
        "seed=12056 wire=uas rate=gen1 controller=chipset hubs=1 drives=1 translated=each nap=idle early=no parts=plain \
         costs=yes commands=usual stack=no streams=32 depth=4 transfer=4096 block=4096 blocks=16 latency-us=1 at-once=2 cache=no requests=120 longest=1 \
         reads=20 through=5 flushes=0 zeroes=0 aborts=0 again=70 finale=power-loss faults=stall@38,status-twice@13,slow@7,\
         status-twice@20,status-twice@24,packet-lost@539,stall@83,header-damaged@1121,packet-lost@571,status-lost@26,\
         status-lost@27,medium-error@16,header-damaged@1375,stall@125,status-lost@39,header-damaged@2105,packet-lost@1138,\
         packet-lost@1168,header-damaged@2471,stall@176,header-damaged@2509,header-damaged@2557,header-damaged@2571,stall@187,\
         status-twice@57,header-damaged@2760,header-damaged@3227,payload-damaged@468,medium-error@66,packet-lost@1790,\
         packet-lost@1861,packet-lost@2155,header-damaged@4366,header-damaged@4376,packet-lost@2338,header-damaged@4710,\
         stall@359,status-twice@120,header-damaged@5474,medium-error@114,header-damaged@5738,slow@121,packet-lost@3036,\
         medium-error@126",
    ),
    (
        "statuses that were sent twice were not noticed of a drive behind a translator, whose data were others' from then on",
        "seed=27452 wire=uas rate=high controller=card hubs=1 drives=3 translated=one nap=idle early=yes \
         parts=queueing-flash costs=no commands=usual stack=no streams=64 depth=8 transfer=4096 block=512 blocks=16 latency-us=1000 at-once=1 \
         cache=no requests=14 longest=4 reads=60 through=0 flushes=0 zeroes=0 aborts=5 again=70 finale=power-loss \
         faults=status-twice@14,header-damaged@23/3,header-damaged@45/3,header-damaged@132/3,header-damaged@811/3,\
         header-damaged@915/3,header-damaged@962/3,header-damaged@1028/3,header-damaged@2441/3,payload-damaged@177/3,\
         header-damaged@3605/3,packet-lost@4188/3,header-damaged@4050/3,packet-lost@4427/3,header-damaged@4100/3,\
         packet-lost@5538/3,packet-lost@5545/3,header-damaged@5357/3",
    ),
    (
        "commands that a unit's reset had ended left their statuses waiting, which are the next commands' where commands take turns",
        "seed=16175 wire=uas rate=full controller=card hubs=1 drives=3 translated=none nap=at-work early=no parts=plain \
         costs=no commands=usual stack=no streams=64 depth=16 transfer=16384 block=512 blocks=4 latency-us=60 at-once=1 cache=no requests=113 \
         longest=1 reads=60 through=5 flushes=0 zeroes=0 aborts=5 again=40 finale=unplug faults=slow@0/2,slow@49/2,\
         slow@77/2,slow@139/2,slow@158/2,slow@168/2",
    ),
    (
        "a read that had ended with TASK SET FULL was checked by what an earlier command had left in its memory",
        "seed=329 wire=uas rate=gen2x2 controller=chipset hubs=0 drives=1 translated=none nap=at-work early=no parts=plain \
         costs=no commands=2 stack=yes streams=64 depth=4 transfer=65536 block=4096 blocks=32 latency-us=60 at-once=1 cache=no \
         requests=23 longest=32 reads=40 through=0 flushes=0 zeroes=0 aborts=0 again=0 finale=power-loss faults=none",
    ),
    (
        "a write that had ended with TASK SET FULL was given to the drive for the next command of its length",
        "seed=217 wire=uas rate=gen1 controller=card hubs=0 drives=1 translated=none nap=idle early=no parts=queueing-flash \
         costs=no commands=2 stack=no streams=64 depth=4 transfer=16384 block=4096 blocks=4 latency-us=0 at-once=1 cache=no \
         requests=5 longest=1 reads=20 through=5 flushes=0 zeroes=0 aborts=0 again=0 finale=unplug faults=none",
    ),
    (
        "a device had no answer to a stream that it proposed before the transfers of that were withdrawn, and waited for it",
        "seed=237 wire=uas rate=gen2 controller=none hubs=0 drives=1 translated=none nap=idle early=no parts=plain costs=no \
         commands=8 stack=no streams=32 depth=15 transfer=512 block=512 blocks=64 latency-us=60 at-once=2 cache=no requests=1 \
         longest=1 reads=60 through=5 flushes=0 zeroes=0 aborts=0 again=0 finale=unplug faults=none",
    ),
];

/// A script that does not strike any more tests nothing of what it was written for, and a line that leaves something to the dice of
/// the day does not say what it tests.
#[test]
fn cases_that_were_red_are_green() {
    for (what, line) in REGRESSIONS {
        let case = case(line);
        assert_eq!(case.to_string(), line, "{what}");
        let report = run(&case, None);
        assert_eq!(report.verdict, Ok(()), "{what}");
        assert!(case.faults.is_some(), "{what}: dice");
        assert_eq!(report.missed(&case).to_string(), "none", "{what}");
    }
}

/// The acknowledgement of a COMMAND IU is lost, and the command ends before the controller asks again.
#[test]
fn a_status_before_the_end_of_its_iu_costs_no_time_out() {
    let (_, line) = REGRESSIONS.iter().find(|(_, line)| line.starts_with("seed=3967 ")).expect("it was red");
    let FaultStats { failed, timeouts, resets, .. } = run(&case(line), None).stats;
    assert_eq!((failed, timeouts, resets), (0, 0, 0));
}
