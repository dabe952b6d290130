//! Control transfers.

use crate::GuestMemory;
use crate::fixture::Fixture;
use crate::{ControlAnswer, Model};
use bus::TransferStatus::{Done, Error, Short, Stall};
use std::vec::Vec;
use wire::xhci::{EndpointId, EndpointState};
use xhci_driver::Config;

/// GET DESCRIPTOR of 18 bytes, and a class request with 4 bytes that go out.
const READ: [u8; 8] = [0x80, 6, 0, 1, 0, 0, 18, 0];
const WRITE: [u8; 8] = [0x21, 9, 0, 0, 0, 0, 4, 0];
const NOTHING: [u8; 8] = [0x00, 9, 1, 0, 0, 0, 0, 0];

#[test]
fn data_come_and_go_and_nothing_needs_none() {
    for model in [Model::CHIPSET, Model::CARD, Model::EARLY_CARD] {
        let (mut fixture, device) = Fixture::with_device(model, Config::default());
        fixture.answer = ControlAnswer::Done((0..18).collect());
        fixture.control(device, 1, READ).unwrap();
        assert_eq!(fixture.completions(), [(1, Done, 18)]);
        assert_eq!(fixture.memory.slice(fixture.buffer, 18).unwrap()[17], 17);
        fixture.memory.write(fixture.buffer, &[5, 6, 7, 8]).unwrap();
        fixture.answer = ControlAnswer::Done(Vec::new());
        fixture.control(device, 2, WRITE).unwrap();
        assert_eq!(fixture.asked.last().map(|asked| &asked.data_out[..]), Some(&[5, 6, 7, 8][..]));
        fixture.control(device, 3, NOTHING).unwrap();
        assert_eq!(fixture.completions(), [(2, Done, 4), (3, Done, 0)]);
        assert_eq!(fixture.driver.counters(), xhci_driver::Counters::default());
    }
}

#[test]
fn a_part_with_a_low_prefetch_limit_fetches_all_stages_of_a_request() {
    for tds_ahead in [1, 2] {
        let (mut fixture, device) =
            Fixture::with_device(Model { tds_ahead, ..Model::CHIPSET }, Config::default());
        fixture.answer = ControlAnswer::Done((0..18).collect());
        for id in 1..4 {
            fixture.control(device, id, READ).unwrap();
            assert_eq!(fixture.completions(), [(id, Done, 18)], "{tds_ahead}");
        }
    }
}

#[test]
fn less_data_is_short_and_more_are_cut() {
    let (mut fixture, device) = Fixture::with_device(Model::CHIPSET, Config::default());
    fixture.answer = ControlAnswer::Done(vec![1; 7]);
    fixture.control(device, 1, READ).unwrap();
    fixture.answer = ControlAnswer::Done(vec![1; 30]);
    fixture.control(device, 2, READ).unwrap();
    fixture.answer = ControlAnswer::Done(Vec::new());
    fixture.control(device, 3, READ).unwrap();
    assert_eq!(fixture.completions(), [(1, Short, 7), (2, Done, 18), (3, Short, 0)]);
}

#[test]
fn a_stall_ends_the_request_and_the_next_one_works() {
    for setup in [READ, WRITE, NOTHING] {
        let (mut fixture, device) = Fixture::with_device(Model::CHIPSET, Config::default());
        fixture.answer = ControlAnswer::Stalled;
        fixture.control(device, 1, setup).unwrap();
        assert_eq!(fixture.completions().first().map(|(id, status, _)| (*id, *status)), Some((1, Stall)));
        let state =
            fixture.controller.transfers.slots[device.slot()].endpoint(EndpointId::CONTROL).unwrap().state();
        assert_eq!(state, EndpointState::Stopped);
        fixture.answer = ControlAnswer::Done(vec![0; 18]);
        fixture.control(device, 2, setup).unwrap();
        assert_eq!(fixture.completions().first().map(|(id, status, _)| (*id, *status)), Some((2, Done)));
    }
}

#[test]
fn a_device_that_does_not_answer_is_an_error() {
    let (mut fixture, device) = Fixture::with_device(Model::CHIPSET, Config::default());
    fixture.answer = ControlAnswer::Silent;
    fixture.control(device, 1, READ).unwrap();
    assert_eq!(fixture.completions(), [(1, Error, 0)]);
}

#[test]
fn many_requests_wait_for_each_other() {
    let (mut fixture, device) =
        Fixture::with_device(Model::CARD, Config { ring_trbs: 8, ..Config::default() });
    fixture.answer = ControlAnswer::Done(vec![3; 18]);
    for id in 0..40 {
        fixture.control(device, 2 * id, READ).unwrap();
        fixture.control(device, 2 * id + 1, NOTHING).unwrap();
    }
    let ended: Vec<_> = fixture.completions().into_iter().map(|(id, ..)| id).collect();
    assert_eq!(ended, (0..80).collect::<Vec<_>>());
}
