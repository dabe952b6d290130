//! The maximum throughput of the bus, and random orders with random losses.

use super::*;

/// Returns the bytes that an endpoint moves that always has more to move, and the frames that this
/// takes.
fn moved_by(rate: Rate, address: EndpointAddress) -> (u64, u64) {
    let mut wire = Wire::new(rate, &[address], 0);
    let bytes = u32::from(rate.packet_bytes()) * 2048;
    for id in 0..4 {
        wire.both(address, id, bytes);
    }
    while wire.step(|_, _| Fate::Arrives) {
        wire.script.clear();
    }
    assert_eq!(wire.ended(Side::Host).len(), 4);
    (4 * u64::from(bytes), wire.engine.now().as_ps().div_ceil(rate.frame().as_ps()))
}

#[test]
fn endpoints_reach_what_the_bus_carries() {
    for address in [IN, OUT] {
        // 8,192 packets, of which thirteen fit into a microframe and nineteen into a frame.
        assert_eq!(moved_by(Rate::High, address), (8192 * 512, 631));
        assert_eq!(moved_by(Rate::Full, address), (8192 * 64, 432));
    }
}

/// A transfer on one of four endpoints, and when each end gets it.
fn arrivals() -> impl Strategy<Value = Vec<(usize, u32, u64, u64)>> {
    let bytes = prop_oneof![0_u32..1500, Just(512), Just(4096), 0_u32..10_000];
    prop::collection::vec((0_usize..4, bytes, 0_u64..60, 0_u64..60), 0..24)
}

pub(super) fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![6 => Just(Fate::Arrives), 1 => Just(Fate::Damaged), 1 => Just(Fate::Lost)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn whatever_is_lost_each_transfer_ends_once_and_its_data_is_in_order(
        rate in prop_oneof![Just(Rate::Full), Just(Rate::High)],
        arrivals in arrivals(),
        fates in prop::collection::vec(fate(), 1..200),
    ) {
        let mut wire = Wire::new(rate, &[IN, OUT, STATUS, COMMAND], 0);
        let addresses = [IN, OUT, STATUS, COMMAND];
        // No transaction may fail three times in a row, or its transfer would end.
        let (mut fates, mut in_a_row, mut is_spoilt, mut asked) = (fates.into_iter().cycle(), [0_u8; 4], [false; 4], 0);
        let mut fate = |_, packet: &Packet| {
            if let Packet::Token(ask) = packet {
                asked = addresses.iter().position(|address| *address == ask.endpoint()).unwrap_or(0);
                in_a_row[asked] = if std::mem::take(&mut is_spoilt[asked]) { in_a_row[asked] + 1 } else { 0 };
            }
            let fate = if in_a_row[asked] == 2 { Fate::Arrives } else { fates.next().unwrap_or_default() };
            is_spoilt[asked] |= fate != Fate::Arrives;
            fate
        };
        // On each endpoint in order, so that what meets is of one size.
        let mut rounds: [Vec<(u64, usize)>; 2] = [Vec::new(), Vec::new()];
        for (nth, &(kind, _, host_at, device_at)) in arrivals.iter().enumerate() {
            for (rounds, at) in rounds.iter_mut().zip([host_at, device_at]) {
                let earlier = rounds.iter().filter(|(_, other)| arrivals[*other].0 == kind).map(|(at, _)| *at).max();
                rounds.push((at.max(earlier.unwrap_or(0)), nth));
            }
        }
        for round in 0..60 {
            for &(_, nth) in rounds[0].iter().filter(|(at, _)| *at == round) {
                wire.host(addresses[arrivals[nth].0], nth as u64, arrivals[nth].1);
            }
            for &(_, nth) in rounds[1].iter().filter(|(at, _)| *at == round) {
                wire.device(addresses[arrivals[nth].0], nth as u64, arrivals[nth].1);
            }
            for _ in 0..20 {
                wire.step(&mut fate);
            }
        }
        while wire.step(&mut fate) {}
        // A device learns that its last packet was taken, though the ACK was lost, when it is asked
        // again.
        wire.both(IN, 100, 0);
        wire.both(STATUS, 101, 0);
        wire.run();
        let mut expected: Vec<_> = arrivals.iter().zip(0..).map(|(&(_, bytes, ..), id)| (id, bytes, End::Full)).collect();
        expected.extend([(100, 0, End::Full), (101, 0, End::Full)]);
        expected.sort_unstable_by_key(|&(id, ..)| id);
        for side in [Side::Host, Side::Device] {
            let mut ended = wire.ended(side);
            ended.sort_unstable_by_key(|&(id, ..)| id);
            prop_assert_eq!(&ended, &expected, "{:?}\n{}", side, wire.script.join("\n"));
            // A receiver gets each piece of the sender's transfer once, in order.
            for &(id, bytes, _) in &expected {
                let pieces = wire.progress[side as usize].iter().filter_map(|progress| progress.piece);
                let mut at = 0;
                let mut count = 0;
                for piece in pieces.filter(|piece| piece.transfer == TransferId(id)) {
                    prop_assert_eq!(piece.offset, at);
                    at += u32::from(piece.bytes);
                    count += 1;
                }
                prop_assert!(count == 0 || at == bytes);
            }
        }
    }
}
