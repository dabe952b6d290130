use super::*;
use crate::drive::disk::{Disk, DiskPart, Seek, Zone};
use crate::drive::{Mechanism, Order, OrderKind, SECTOR_BYTES, Said, Tag};
use proptest::prelude::*;
use std::collections::VecDeque;
use units::{Duration, Extent, Instant};

/// A drive that takes no time.
#[derive(Debug, Default)]
struct Prompt {
    left: [u32; 32],
    said: VecDeque<Said>,
}

impl Mechanism for Prompt {
    fn submit(&mut self, _: Instant, Order { tag, kind, extent }: Order) {
        let sectors = extent.blocks.0 as u32;
        match kind {
            OrderKind::Read => self.said.extend([Said::Ready(tag, sectors), Said::Done(tag)]),
            OrderKind::Write { .. } => {
                self.left[usize::from(tag.0)] = sectors;
                self.said.push_back(Said::Room(tag, sectors));
            }
            OrderKind::Flush | OrderKind::Trim => self.said.push_back(Said::Done(tag)),
        }
    }

    fn handle_sectors(&mut self, _: Instant, tag: Tag, sectors: u32) {
        let left = &mut self.left[usize::from(tag.0)];
        *left -= sectors;
        if *left == 0 {
            self.said.push_back(Said::Done(tag));
        }
    }

    fn poll_said(&mut self) -> Option<Said> {
        self.said.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn sectors(&self) -> u64 {
        1 << 30
    }
}

/// One surface of tracks of 1,000 sectors at 7,200 turns a minute.
fn part() -> DiskPart {
    DiskPart {
        surfaces: 1,
        zones: vec![Zone { cylinders: 10, sectors_per_track: 1000 }],
        rotation: Duration::from_us(8333),
        head_switch: Duration::from_us(800),
        seek: Seek { next: Duration::from_ms(1), average: Duration::from_ms(8), full: Duration::from_ms(16) },
        write_settle: Duration::from_us(500),
        overhead: Duration::from_us(100),
        segments: 8,
        segment_sectors: 0,
        write_sectors: 4096,
        write_cache: true,
        age_limit: Duration::from_secs(1),
    }
}

/// A host port that takes and supplies at once.
#[derive(Debug)]
struct Host<M> {
    cable: Attachment<M>,
    now: Instant,
    told: Vec<(Instant, Told)>,
    takes: bool,
}

const LATENCY: Duration = Duration::from_ns(100);

impl<M: Mechanism> Host<M> {
    fn new(mechanism: M) -> Self {
        let cable = Attachment::new(mechanism, Rate::Gen3, LATENCY, 64);
        Self { cable, now: Instant::ZERO, told: Vec::new(), takes: true }
    }

    fn submit(&mut self, tag: u8, kind: OrderKind, (lba, sectors): (u64, u64), queueing: Queueing) {
        let order = Order { tag: Tag(tag), kind, extent: Extent::new(lba, sectors) };
        self.cable.submit(self.now, Command { order, queueing });
        self.listen();
    }

    fn listen(&mut self) {
        while let Some(told) = self.cable.poll_told() {
            self.told.push((self.now, told));
            match told {
                Told::Came(_, sectors) if self.takes => {
                    self.cable.take(self.now, sectors);
                }
                Told::Wants(tag, sectors) => self.cable.supply(self.now, tag, sectors),
                _ => {}
            }
        }
    }

    fn step(&mut self) -> bool {
        let Some(at) = self.cable.poll_timeout() else { return false };
        assert!(at >= self.now, "nothing happens before now");
        self.now = at;
        self.cable.handle_timeout(at);
        self.listen();
        true
    }

    fn rest(&mut self) {
        for _ in 0..1_000_000 {
            if !self.step() {
                return;
            }
        }
        panic!("it never rests: {:?}", self.cable);
    }

    fn ended(&self) -> usize {
        self.told.iter().filter(|(_, told)| matches!(told, Told::Ended(_))).count()
    }
}

/// What a frame of so many double words takes to arrive, and until the next may go: three and four times the latency.
fn frame(dwords: u64) -> (u64, u64) {
    let ps = dwords * 40_000 / 6;
    (ps + 300_000, ps + 400_000)
}

#[test]
fn a_queued_read_takes_its_five_frames() {
    let mut host = Host::new(Prompt::default());
    host.submit(0, OrderKind::Read, (0, 8), Queueing::Queued);
    host.rest();
    // 20, 20, 28 bytes, 4 + 4,096, 8; three double words more each, and two to align in each 254.
    let (command, accepted, set_up) = (frame(8 + 2), frame(8 + 2), frame(10 + 2));
    let (data, bits) = (frame(1025 + 3 + 10), frame(5 + 2));
    let came = command.1 + accepted.1 + set_up.1 + data.0;
    let ended = command.1 + accepted.1 + set_up.1 + data.1 + bits.0;
    assert_eq!(
        host.told,
        [(Instant::from_ps(came), Told::Came(Tag(0), 8)), (Instant::from_ps(ended), Told::Ended(Tag(0))),]
    );
    assert_eq!(host.cable.books().frames, 5);
    assert_eq!(host.cable.books().payload_bytes, 4096);
}

#[test]
fn a_read_alone_needs_no_set_up_and_ends_with_registers() {
    let mut host = Host::new(Prompt::default());
    host.submit(0, OrderKind::Read, (0, 8), Queueing::Alone);
    host.rest();
    assert_eq!(host.cable.books().frames, 3);
}

#[test]
fn a_write_alone_is_activated_for_each_frame() {
    let mut host = Host::new(Prompt::default());
    host.submit(0, OrderKind::Write { through: false }, (0, 40), Queueing::Alone);
    host.rest();
    assert_eq!(host.cable.books().frames, 1 + 3 * 2 + 1);
    assert_eq!(host.told[0].1, Told::Wants(Tag(0), 40));
}

#[test]
fn a_port_that_pauses_does_so_for_each_frame_of_a_write_that_is_alone() {
    let pause = Duration::from_us(7);
    let takes = |kind, queueing, pause| {
        let mut host = Host::new(Prompt::default());
        host.cable = host.cable.pausing(pause);
        host.submit(0, kind, (0, 40), queueing);
        host.rest();
        assert_eq!(host.ended(), 1);
        host.now
    };
    let write = OrderKind::Write { through: false };
    // 40 sectors are three frames.
    for (kind, queueing, pauses) in
        [(write, Queueing::Alone, 3), (write, Queueing::Queued, 0), (OrderKind::Read, Queueing::Alone, 0)]
    {
        let longer = takes(kind, queueing, pause) - takes(kind, queueing, Duration::ZERO);
        // The next frame may go a latency after leave has come, which a pause costs nothing.
        let pauses = pauses * (pause.as_ps() - LATENCY.as_ps());
        assert_eq!(longer, Duration::from_ps(pauses), "{kind:?} {queueing:?}");
    }
}

#[test]
fn a_queued_write_is_activated_for_each_frame_but_the_first() {
    let mut host = Host::new(Prompt::default());
    host.submit(0, OrderKind::Write { through: false }, (0, 40), Queueing::Queued);
    host.rest();
    assert_eq!(host.cable.books().frames, 2 + 1 + (3 * 2 - 1) + 1);
    assert_eq!(host.ended(), 1);
}

#[test]
fn frames_are_noted_as_they_begin_while_somebody_looks_on() {
    let mut host = Host::new(Prompt::default());
    host.submit(0, OrderKind::Read, (0, 8), Queueing::Queued);
    host.rest();
    assert_eq!(host.cable.poll_note(host.now), None, "nobody looked on");
    host.cable.take_notes(true);
    let began = host.now;
    host.submit(3, OrderKind::Write { through: false }, (100, 20), Queueing::Queued);
    host.rest();
    assert_eq!(host.cable.poll_note(Instant::from_ps(began.as_ps() - 1)), None, "not sent by then");
    let notes: Vec<_> = std::iter::from_fn(|| host.cable.poll_note(host.now)).collect();
    let texts: Vec<_> = notes.iter().map(|note| note.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "host: WRITE FPDMA QUEUED, tag 3, 20 sectors from 100 on",
            "drive: Register, accepted",
            "drive: DMA Setup, tag 3, 20 sectors",
            "host: Data, tag 3, 16 sectors",
            "drive: DMA Activate, tag 3",
            "host: Data, tag 3, 4 sectors",
            "drive: Set Device Bits, ended 3",
        ]
    );
    // The wire rests once more behind the last frame.
    let begins = began + Duration::from_ns(100);
    assert_eq!([notes[0].at, notes[1].at], [begins, begins + Duration::from_ps(frame(8 + 2).1)]);
    host.cable.take_notes(false);
    host.submit(0, OrderKind::Flush, (0, 0), Queueing::Alone);
    host.rest();
    assert_eq!(host.cable.poll_note(host.now), None);
}

/// The arm takes the first write at once, and then what has come in the meantime in one pass.
#[test]
fn commands_that_end_together_are_told_in_one_frame() {
    let mut host = Host::new(Disk::new(part()));
    for (tag, lba) in [(0, 500), (1, 520), (2, 528), (3, 536)] {
        host.submit(tag, OrderKind::Write { through: true }, (lba, 8), Queueing::Queued);
    }
    host.rest();
    let ends: Vec<_> = host.told.iter().filter(|(_, told)| matches!(told, Told::Ended(_))).collect();
    assert_eq!(ends.len(), 4);
    assert!(ends[0].0 < ends[1].0 && ends[1].0 == ends[2].0 && ends[2].0 == ends[3].0, "{ends:?}");
}

/// 2,068 double words for 8 KiB, asked for and acknowledged: 577 MB/s of 600.
#[test]
fn reads_reach_what_is_left_beside_frames_and_their_acknowledgement() {
    let mut host = Host::new(Prompt::default());
    host.submit(0, OrderKind::Read, (0, 65_536), Queueing::Queued);
    host.rest();
    let micros = host.now.as_ps() as f64 / 1e6;
    let rate = 65_536.0 * 512.0 / micros;
    assert!((576.0..578.0).contains(&rate), "{rate} MB/s");
}

#[test]
fn a_host_without_room_stops_the_drive_and_keeps_its_own_commands() {
    let mut host = Host::new(Prompt::default());
    host.takes = false;
    host.submit(0, OrderKind::Read, (0, 256), Queueing::Queued);
    host.rest();
    assert_eq!(host.told.len(), 4, "64 sectors in frames of 16");
    host.submit(1, OrderKind::Read, (0, 8), Queueing::Queued);
    host.rest();
    assert_eq!(host.cable.books().frames, 3 + 4);
    host.takes = true;
    host.cable.take(host.now, 64);
    host.listen();
    host.rest();
    assert_eq!(host.ended(), 2);
}

/// Four orders that come while the arm reads another, on one track, which the head meets in another order.
#[test]
fn queued_commands_end_in_the_order_of_the_platter() {
    let mut host = Host::new(Disk::new(part()));
    for (tag, sector) in [(0, 100), (1, 800), (2, 400), (3, 200), (4, 600)] {
        host.submit(tag, OrderKind::Read, (sector, 8), Queueing::Queued);
    }
    host.rest();
    let ended = host.told.iter().filter_map(|(_, told)| match told {
        Told::Ended(tag) => Some(tag.0),
        _ => None,
    });
    assert_eq!(ended.collect::<Vec<_>>(), [0, 3, 2, 4, 1]);
    assert!(host.now < Instant::ZERO + Duration::from_ms(9));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn each_command_ends_once_when_all_has_moved(
        commands in prop::collection::vec((0_u8..3, 1_u64..300, 0_u32..30), 1..60),
    ) {
        let mut host = Host::new(Prompt::default());
        let (mut free, mut looked_at): (Vec<u8>, _) = ((0..32).collect(), 0);
        let (mut count, mut sectors_in, mut sectors_out) = (0, 0, 0);
        for (kind, sectors, steps) in commands {
            for _ in 0..steps {
                host.step();
            }
            while free.is_empty() {
                prop_assert!(host.step());
                for (_, told) in &host.told[looked_at..] {
                    free.extend(match told { Told::Ended(tag) => Some(tag.0), _ => None });
                }
                looked_at = host.told.len();
            }
            let Some(tag) = free.pop() else { continue };
            let kind = if kind == 0 { OrderKind::Read } else { OrderKind::Write { through: kind == 1 } };
            if kind == OrderKind::Read { sectors_in += sectors } else { sectors_out += sectors }
            host.submit(tag, kind, (0, sectors), Queueing::Queued);
            count += 1;
        }
        host.rest();
        prop_assert_eq!(host.ended(), count);
        let sum = |pick: fn(&Told) -> u32| host.told.iter().map(|(_, told)| u64::from(pick(told))).sum::<u64>();
        prop_assert_eq!(sum(|told| match told { Told::Came(_, sectors) => *sectors, _ => 0 }), sectors_in);
        prop_assert_eq!(sum(|told| match told { Told::Wants(_, sectors) => *sectors, _ => 0 }), sectors_out);
        prop_assert_eq!(host.cable.books().payload_bytes, (sectors_in + sectors_out) * u64::from(SECTOR_BYTES));
    }
}
