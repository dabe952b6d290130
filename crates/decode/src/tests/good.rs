//! Captures of healthy traffic, as hosts make it: what no verdict may come of.

use super::*;

/// Numbers that are the same for the same seed (Steele, Lea and Flood: SplitMix64).
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}

pub(super) fn cbw(tag: u8, length: u32, flags: u8, command: &[u8]) -> Vec<u8> {
    let mut cbw =
        [b"USBC", &[tag, 0, 0, 0][..], &length.to_le_bytes(), &[flags, 0, command.len() as u8], command]
            .concat();
    cbw.resize(31, 0);
    cbw
}

pub(super) fn csw(tag: u8, status: u8) -> Vec<u8> {
    [b"USBS", &[tag, 0, 0, 0, 0, 0, 0, 0, status][..]].concat()
}

/// Reads, writes, a failure with its sense data, UNMAP: over BOT.
pub(super) fn bot(dice: &mut Dice) -> Script {
    let mut script = Script::enumerated(0);
    for tag in 1..120_u8 {
        let lba = dice.below(200) as u8;
        match dice.below(6) {
            0 | 1 => {
                script.send(1, &cbw(tag, 1024, 0x80, &[0x28, 0, 0, 0, 0, lba, 0, 0, 2, 0]));
                script.receive(0x81, 1024, &[0xaa; 1024]);
            }
            2 | 3 => {
                script.send(1, &cbw(tag, 512, 0, &[0x2a, 0, 0, 0, 0, lba, 0, 0, 1, 0]));
                script.send(1, &[0x55; 512]);
            }
            4 => {
                script.send(1, &cbw(tag, 0, 0, &[0; 6]));
                script.receive(0x81, 13, &csw(tag, 1));
                script.send(1, &cbw(tag + 128, 18, 0x80, &[3, 0, 0, 0, 18, 0]));
                script.receive(0x81, 18, &[0x70, 0, 6, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x28, 0, 0, 0, 0, 0]);
                script.receive(0x81, 13, &csw(tag + 128, 0));
                continue;
            }
            _ => {
                script.send(1, &cbw(tag, 24, 0, &[0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0]));
                script.send(1, &[0; 24]);
            }
        }
        script.receive(0x81, 13, &csw(tag, 0));
    }
    script
}

pub(super) fn command(tag: u8, cdb: &[u8]) -> Vec<u8> {
    let mut iu = vec![1, 0, 0, tag];
    iu.resize(16, 0);
    iu.extend(cdb);
    iu.resize(32, 0);
    iu
}

/// Several reads and writes at a time over UAS, whose ends come in any order; with streams in the capture, without them in it, or
/// without them on the bus.
pub(super) fn uas(dice: &mut Dice, streams: bool, is_high_speed: bool) -> Script {
    let mut script = Script::enumerated(1);
    let mut in_flight: Vec<(u8, bool)> = Vec::new();
    let mut begun = 0;
    while begun < 120 || !in_flight.is_empty() {
        let free = (1..6_u8).find(|tag| in_flight.iter().all(|(used, _)| used != tag));
        let begins = begun < 120 && (in_flight.is_empty() || dice.below(3) > 0);
        if let (Some(tag), true) = (free, begins) {
            begun += 1;
            let is_read = dice.below(2) == 0;
            let (id, on) = (u64::from(tag) * 10, streams.then_some(u16::from(tag)));
            let lba = dice.below(200) as u8;
            let cdb = [if is_read { 0x28 } else { 0x2a }, 0, 0, 0, 0, lba, 0, 0, 1, 0];
            script.on(on).submit(id, 0x83, 112, &[]);
            match (is_high_speed, is_read) {
                (true, _) => {}
                (false, true) => drop(script.submit(id + 1, 0x81, 512, &[])),
                (false, false) => drop(script.submit(id + 1, 2, 512, &[0x55; 512])),
            }
            script.on(None).submit(id + 2, 4, 32, &command(tag, &cdb));
            script.end(id + 2, 4, (0, 32), &[]);
            in_flight.push((tag, is_read));
            continue;
        }
        let at = dice.below(in_flight.len());
        let (tag, is_read) = in_flight.swap_remove(at);
        let id = u64::from(tag) * 10;
        script.on(streams.then_some(u16::from(tag)));
        if is_high_speed {
            // Its status transfer brings READY; another brings the status.
            script.end(id, 0x83, (0, 4), &[if is_read { 6 } else { 7 }, 0, 0, tag]);
            script.submit(
                id + 1,
                if is_read { 0x81 } else { 2 },
                512,
                if is_read { &[] } else { &[0x55; 512] },
            );
            script.submit(id, 0x83, 112, &[]);
        }
        let data: &[u8] = if is_read { &[0xaa; 512] } else { &[] };
        script.end(id + 1, if is_read { 0x81 } else { 2 }, (0, 512), data);
        script.end(id, 0x83, (0, 16), &[3, 0, 0, tag, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        script.on(None);
    }
    script
}

/// One of each kind.
pub(super) fn all(dice: &mut Dice) -> [Script; 4] {
    [bot(dice), uas(dice, true, false), uas(dice, false, false), uas(dice, false, true)]
}

/// The environment's, or another one each time.
pub(super) fn seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    let recorded = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = recorded.unwrap_or_else(|| std::hash::RandomState::new().build_hasher().finish());
    println!("SEED={seed}");
    seed
}
