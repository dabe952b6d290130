//! USB 2.0 hubs: drives on a shared bus, and full-speed drives behind translators.

use super::several::{busy_in, failed, spot};
use super::*;
use crate::link::HostPort;
use crate::link::usb2::{HostRequest, NextTransaction, Rate, Translators};
use bus::Pipe;
use initiator::{Failure, Outcome};

/// A hub with drives of both transports and, of high speed, of both rates, one behind another hub,
/// and a drive at a root port.
fn mixed(rate: Rate, translators: Translators) -> Setup {
    let slow = |of: Drive| if rate == Rate::High { of.full_speed() } else { of };
    let far = Hub::new(4).translating(translators).with(2, slow(drive(Drive::uas())));
    let near = Hub::new(7).translating(translators).with(1, drive(Drive::uas())).with(3, far);
    let near = near.with(4, slow(drive(Drive::bot()))).with(7, drive(Drive::bot()));
    Setup::new(Host::chipset()).at(rate).with(1, near).with(2, slow(drive(Drive::bot())))
}

const KINDS: [(Rate, Translators); 3] =
    [(Rate::High, Translators::One), (Rate::High, Translators::Each), (Rate::Full, Translators::One)];

#[test]
fn drives_keep_separate_data() {
    for (rate, translators) in KINDS {
        let mut machine = mixed(rate, translators).power_on().unwrap();
        for number in 0..5 {
            fixture::first(&mut machine, number);
            for lba in 0..4 {
                let seed = lba + 50 * number as u32;
                fixture::ask(&mut machine, number, &command(1, true, 5 * lba, 3), pattern(seed, 3));
            }
        }
        for number in 0..5 {
            for lba in 0..4 {
                let seed = lba + 50 * number as u32;
                let read = fixture::ask(&mut machine, number, &command(2, false, 5 * lba, 3), room(3));
                assert!(read == pattern(seed, 3), "drive {number}, block {}", 5 * lba);
            }
        }
        assert_no_errors(&machine);
    }
}

#[test]
fn concurrent_commands_are_deterministic() {
    for (rate, translators) in KINDS {
        let run = || {
            let mut machine = mixed(rate, translators).power_on().unwrap();
            (0..5).for_each(|number| fixture::first(&mut machine, number));
            let slots = |number: usize| {
                if matches!(machine.transport(number), Some(AnyTransport::Uas(_))) { 4 } else { 1 }
            };
            let all: Vec<(usize, u16)> = (0..5).map(|number| (number, slots(number))).collect();
            for &(number, slots) in &all {
                for slot in 0..slots {
                    let writes = slot.is_multiple_of(2);
                    let buffer = if writes { pattern(number as u32 + u32::from(slot), 4) } else { room(4) };
                    machine.submit(number, &command(slot, writes, 8 * u32::from(slot), 4), buffer).unwrap();
                }
            }
            let commands: u16 = all.iter().map(|(_, slots)| slots).sum();
            drain(&mut machine, usize::from(commands));
            for (number, slots) in all {
                for slot in (0..slots).step_by(2) {
                    let read = fixture::ask(
                        &mut machine,
                        number,
                        &command(9, false, 8 * u32::from(slot), 4),
                        room(4),
                    );
                    assert!(
                        read == pattern(number as u32 + u32::from(slot), 4),
                        "drive {number}, slot {slot}"
                    );
                }
            }
            assert_no_errors(&machine);
            (machine.digest(), machine.now())
        };
        assert_eq!(run(), run());
    }
}

/// A read fails after an odd number of packets, so that a reset sequence number differs from one
/// that goes on. Another read waits.
#[test]
fn after_a_pipe_that_has_failed_the_next_read_has_all_of_its_packets() {
    // Each with its packets' bytes, and how often it must fail before the driver has done with it.
    for (of, packet, times) in [(Drive::uas(), 512, 4), (Drive::uas().full_speed(), 64, 1)] {
        let hub = Hub::new(4).translating(Translators::Each).with(1, drive(of));
        let mut machine = Setup::new(Host::chipset()).at(Rate::High).with(1, hub).power_on().unwrap();
        fixture::first(&mut machine, 0);
        fixture::ask(&mut machine, 0, &command(0, true, 8, 3), pattern(7, 3));
        machine.submit(0, &command(1, false, 0, 3), room(3)).unwrap();
        machine.submit(0, &command(2, false, 8, 3), room(3)).unwrap();
        let (end, ask) = (machine.devices[0].end, HostRequest::In(device::device::DATA_IN));
        let mut failed = 0;
        while machine.finished.is_empty() {
            let now = machine.engine.now();
            let HostPort::Usb2(host) = machine.root_ports[end.root].ports(end.device).0 else {
                panic!("USB 2.0")
            };
            let (left, _) = host.awaits(Pipe::plain(device::device::DATA_IN));
            let is_odd = left.is_some_and(|left| left / packet % 2 == 1);
            // The device does not see these.
            if is_odd
                && failed < times
                && matches!(host.turn(now), NextTransaction::HostRequest(next, _) if next == ask)
            {
                host.ask(ask);
                host.fail(&ask);
                failed += 1;
            }
            assert!(machine.step());
        }
        let first = machine.finished.pop_front().unwrap();
        assert!(matches!(first.outcome, Outcome::Failed(Failure::Bus)), "{:?}", first.outcome);
        let second = machine.run().unwrap().unwrap();
        assert!(second.buffer == pattern(7, 3), "{:?}", second.outcome);
    }
}

#[test]
fn slot_contexts_name_the_translator() {
    let machine = mixed(Rate::High, Translators::Each).power_on().unwrap();
    let translator = |number: usize| {
        let location = machine.devices[number].location.unwrap();
        location.translator.map(|translator| (translator.port, translator.multiple))
    };
    // UAS of high speed, of full speed behind two hubs, BOT of full speed, of high speed.
    assert_eq!([0, 1, 2, 3].map(translator), [None, Some((2, true)), Some((4, true)), None]);
    let one = mixed(Rate::High, Translators::One).power_on().unwrap();
    let translator = one.devices[1].location.unwrap().translator.unwrap();
    assert_eq!((translator.port, translator.multiple), (2, false));
    let full = mixed(Rate::Full, Translators::One).power_on().unwrap();
    assert!(full.devices[1].location.unwrap().translator.is_none());
}

#[test]
fn devices_behind_a_detached_hub_come_back_with_it() {
    for (rate, translators) in KINDS {
        for (at, gone) in [(spot(1, 0x3), &[1][..]), (spot(1, 0), &[0, 1, 2, 3])] {
            for events in (0..400).step_by(97) {
                let mut machine = busy_in(&mixed(rate, translators), events);
                machine.unplug_at(at).unwrap();
                assert_eq!(failed(&mut machine), gone, "{at}, {events}");
                machine.plug_again(at).unwrap();
                assert_all_work(&mut machine);
                let mut machine = busy_in(&mixed(rate, translators), events);
                machine.reset_hub(at).unwrap();
                assert_eq!(failed(&mut machine), gone, "{at}, {events}");
                assert_all_work(&mut machine);
            }
        }
    }
}

#[test]
fn a_drive_of_full_speed_that_goes_leaves_its_translator_to_the_others() {
    for events in (0..800).step_by(61) {
        let mut machine = busy_in(&mixed(Rate::High, Translators::One), events);
        machine.unplug_at(spot(1, 0x4)).unwrap();
        assert_eq!(failed(&mut machine), [2], "{events}");
        machine.plug_again(spot(1, 0x4)).unwrap();
        assert_all_work(&mut machine);
    }
}

fn assert_all_work(machine: &mut XhciMachine) {
    for number in 0..machine.drives() {
        fixture::first(machine, number);
        assert_works(machine, number);
    }
    assert_eq!(machine.system.memory.faults(), 0);
}

#[test]
fn a_drive_of_full_speed_behind_a_translator_is_a_ninth_slower_than_at_a_root_port() {
    let of = |setup: Setup| {
        let mut machine = setup.power_on().unwrap();
        fixture::first(&mut machine, 0);
        let before = machine.now();
        fixture::ask(&mut machine, 0, &command(0, false, 0, 40), room(40));
        (machine.now() - before).as_ns() / 1000
    };
    let slow = || drive(Drive::bot()).full_speed();
    let at_root = of(Setup::new(Host::chipset()).at(Rate::High).with(1, slow()));
    let behind = of(Setup::new(Host::chipset()).at(Rate::High).with(1, Hub::new(4).with(1, slow())));
    // 160 KiB are 2,560 packets, 19 of them in a millisecond: 135 ms.
    assert!((134_000..140_000).contains(&at_root), "{at_root} us");
    // Its host asks for the next packet when it has this one, which it learns up to 11 us after the
    // translator.
    assert!(behind > at_root * 21 / 20 && behind < at_root * 6 / 5, "{behind} us, {at_root} us");
}
