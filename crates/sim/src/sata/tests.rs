use super::*;
use crate::drive::disk::{Disk, DiskPart, Seek, Zone};
use crate::drive::{DriveCommand, DriveCommandKind, DriveEvent, Mechanism, SECTOR_BYTES, Tag};
use proptest::prelude::*;
use std::collections::VecDeque;
use units::{Duration, Extent, Instant};

/// A drive that takes no time.
#[derive(Debug, Default)]
struct Prompt {
    left: [u32; 32],
    events: VecDeque<DriveEvent>,
}

impl Mechanism for Prompt {
    fn submit(&mut self, _: Instant, DriveCommand { tag, kind, extent }: DriveCommand) {
        let sectors = extent.blocks.0 as u32;
        match kind {
            DriveCommandKind::Read => {
                self.events.extend([DriveEvent::Ready(tag, sectors), DriveEvent::Done(tag)])
            }
            DriveCommandKind::Write { .. } => {
                self.left[usize::from(tag.0)] = sectors;
                self.events.push_back(DriveEvent::Space(tag, sectors));
            }
            DriveCommandKind::Flush | DriveCommandKind::Trim => self.events.push_back(DriveEvent::Done(tag)),
        }
    }

    fn handle_sectors(&mut self, _: Instant, tag: Tag, sectors: u32) {
        let left = &mut self.left[usize::from(tag.0)];
        *left -= sectors;
        if *left == 0 {
            self.events.push_back(DriveEvent::Done(tag));
        }
    }

    fn poll_event(&mut self) -> Option<DriveEvent> {
        self.events.pop_front()
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
    event: Vec<(Instant, HostPortEvent)>,
    takes: bool,
}

const LATENCY: Duration = Duration::from_ns(100);

impl<M: Mechanism> Host<M> {
    fn new(mechanism: M) -> Self {
        let cable = Attachment::new(mechanism, Rate::Gen3, LATENCY, 64);
        Self { cable, now: Instant::ZERO, event: Vec::new(), takes: true }
    }

    fn submit(&mut self, tag: u8, kind: DriveCommandKind, (lba, sectors): (u64, u64), queueing: Queueing) {
        let order = DriveCommand { tag: Tag(tag), kind, extent: Extent::new(lba, sectors) };
        self.cable.submit(self.now, Command { order, queueing });
        self.listen();
    }

    fn listen(&mut self) {
        while let Some(event) = self.cable.poll_event() {
            self.event.push((self.now, event));
            match event {
                HostPortEvent::Came(_, sectors) if self.takes => {
                    self.cable.take(self.now, sectors);
                }
                HostPortEvent::Wants(tag, sectors) => self.cable.supply(self.now, tag, sectors),
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
        self.event.iter().filter(|(_, event)| matches!(event, HostPortEvent::Completed(_))).count()
    }
}

/// Returns the time until a frame of so many double words has arrived, and until the next may be
/// sent, in picoseconds: three and four times the latency.
fn frame(dwords: u64) -> (u64, u64) {
    let ps = dwords * 40_000 / 6;
    (ps + 300_000, ps + 400_000)
}

#[test]
fn a_queued_read_takes_its_five_frames() {
    let mut host = Host::new(Prompt::default());
    host.submit(0, DriveCommandKind::Read, (0, 8), Queueing::Queued);
    host.rest();
    // 20, 20, 28 bytes, 4 + 4,096, 8; three double words more each, and two to align in each 254.
    let (command, accepted, set_up) = (frame(8 + 2), frame(8 + 2), frame(10 + 2));
    let (data, bits) = (frame(1025 + 3 + 10), frame(5 + 2));
    let came = command.1 + accepted.1 + set_up.1 + data.0;
    let ended = command.1 + accepted.1 + set_up.1 + data.1 + bits.0;
    assert_eq!(
        host.event,
        [
            (Instant::from_ps(came), HostPortEvent::Came(Tag(0), 8)),
            (Instant::from_ps(ended), HostPortEvent::Completed(Tag(0))),
        ]
    );
    assert_eq!(host.cable.books().frames, 5);
    assert_eq!(host.cable.books().payload_bytes, 4096);
}

#[test]
fn a_read_alone_needs_no_set_up_and_ends_with_registers() {
    let mut host = Host::new(Prompt::default());
    host.submit(0, DriveCommandKind::Read, (0, 8), Queueing::Alone);
    host.rest();
    assert_eq!(host.cable.books().frames, 3);
}

#[test]
fn a_write_alone_is_activated_for_each_frame() {
    let mut host = Host::new(Prompt::default());
    host.submit(0, DriveCommandKind::Write { through: false }, (0, 40), Queueing::Alone);
    host.rest();
    assert_eq!(host.cable.books().frames, 1 + 3 * 2 + 1);
    assert_eq!(host.event[0].1, HostPortEvent::Wants(Tag(0), 40));
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
    let write = DriveCommandKind::Write { through: false };
    // 40 sectors are three frames.
    for (kind, queueing, pauses) in [
        (write, Queueing::Alone, 3),
        (write, Queueing::Queued, 0),
        (DriveCommandKind::Read, Queueing::Alone, 0),
    ] {
        let longer = takes(kind, queueing, pause) - takes(kind, queueing, Duration::ZERO);
        // The next frame may go a latency after leave has come, which a pause costs nothing.
        let pauses = pauses * (pause.as_ps() - LATENCY.as_ps());
        assert_eq!(longer, Duration::from_ps(pauses), "{kind:?} {queueing:?}");
    }
}

#[test]
fn a_queued_write_is_activated_for_each_frame_but_the_first() {
    let mut host = Host::new(Prompt::default());
    host.submit(0, DriveCommandKind::Write { through: false }, (0, 40), Queueing::Queued);
    host.rest();
    assert_eq!(host.cable.books().frames, 2 + 1 + (3 * 2 - 1) + 1);
    assert_eq!(host.ended(), 1);
}

#[test]
fn frames_are_recorded_as_they_begin_while_observed() {
    let mut host = Host::new(Prompt::default());
    host.submit(0, DriveCommandKind::Read, (0, 8), Queueing::Queued);
    host.rest();
    assert_eq!(host.cable.poll_note(host.now), None, "notes are disabled");
    host.cable.take_notes(true);
    let began = host.now;
    host.submit(3, DriveCommandKind::Write { through: false }, (100, 20), Queueing::Queued);
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
    host.submit(0, DriveCommandKind::Flush, (0, 0), Queueing::Alone);
    host.rest();
    assert_eq!(host.cable.poll_note(host.now), None);
}

/// The arm takes the first write at once, and then what has come in the meantime in one pass.
#[test]
fn commands_that_complete_together_share_one_frame() {
    let mut host = Host::new(Disk::new(part()));
    for (tag, lba) in [(0, 500), (1, 520), (2, 528), (3, 536)] {
        host.submit(tag, DriveCommandKind::Write { through: true }, (lba, 8), Queueing::Queued);
    }
    host.rest();
    let ends: Vec<_> =
        host.event.iter().filter(|(_, event)| matches!(event, HostPortEvent::Completed(_))).collect();
    assert_eq!(ends.len(), 4);
    assert!(ends[0].0 < ends[1].0 && ends[1].0 == ends[2].0 && ends[2].0 == ends[3].0, "{ends:?}");
}

/// 2,068 double words for 8 KiB, asked for and acknowledged: 577 MB/s of 600.
#[test]
fn reads_reach_what_is_left_beside_frames_and_their_acknowledgement() {
    let mut host = Host::new(Prompt::default());
    host.submit(0, DriveCommandKind::Read, (0, 65_536), Queueing::Queued);
    host.rest();
    let micros = host.now.as_ps() as f64 / 1e6;
    let rate = 65_536.0 * 512.0 / micros;
    assert!((576.0..578.0).contains(&rate), "{rate} MB/s");
}

#[test]
fn a_host_without_room_stops_the_drive_and_keeps_its_own_commands() {
    let mut host = Host::new(Prompt::default());
    host.takes = false;
    host.submit(0, DriveCommandKind::Read, (0, 256), Queueing::Queued);
    host.rest();
    assert_eq!(host.event.len(), 4, "64 sectors in frames of 16");
    host.submit(1, DriveCommandKind::Read, (0, 8), Queueing::Queued);
    host.rest();
    assert_eq!(host.cable.books().frames, 3 + 4);
    host.takes = true;
    host.cable.take(host.now, 64);
    host.listen();
    host.rest();
    assert_eq!(host.ended(), 2);
}

/// Four orders that come while the arm reads another, on one track, which the head meets in another
/// order.
#[test]
fn queued_commands_end_in_the_order_of_the_platter() {
    let mut host = Host::new(Disk::new(part()));
    for (tag, sector) in [(0, 100), (1, 800), (2, 400), (3, 200), (4, 600)] {
        host.submit(tag, DriveCommandKind::Read, (sector, 8), Queueing::Queued);
    }
    host.rest();
    let ended = host.event.iter().filter_map(|(_, event)| match event {
        HostPortEvent::Completed(tag) => Some(tag.0),
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
                for (_, event) in &host.event[looked_at..] {
                    free.extend(match event { HostPortEvent::Completed(tag) => Some(tag.0), _ => None });
                }
                looked_at = host.event.len();
            }
            let Some(tag) = free.pop() else { continue };
            let kind = if kind == 0 { DriveCommandKind::Read } else { DriveCommandKind::Write { through: kind == 1 } };
            if kind == DriveCommandKind::Read { sectors_in += sectors } else { sectors_out += sectors }
            host.submit(tag, kind, (0, sectors), Queueing::Queued);
            count += 1;
        }
        host.rest();
        prop_assert_eq!(host.ended(), count);
        let sum = |pick: fn(&HostPortEvent) -> u32| host.event.iter().map(|(_, event)| u64::from(pick(event))).sum::<u64>();
        prop_assert_eq!(sum(|event| match event { HostPortEvent::Came(_, sectors) => *sectors, _ => 0 }), sectors_in);
        prop_assert_eq!(sum(|event| match event { HostPortEvent::Wants(_, sectors) => *sectors, _ => 0 }), sectors_out);
        prop_assert_eq!(host.cable.books().payload_bytes, (sectors_in + sectors_out) * u64::from(SECTOR_BYTES));
    }
}
