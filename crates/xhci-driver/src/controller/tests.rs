//! The driver on a scripted controller: its life, transfers, streams, what is cancelled, and events
//! that lie.

extern crate std;

mod endings;
mod hostile;
mod life;
mod renewals;
mod stops;
mod streams;
mod transfers;

use super::Controller;
use crate::hardware::Registers;
use crate::script::{Fixture, Machine, bulk_in, bulk_out};
use crate::types::{
    Answer, Config, DeadlineReason, Death, HubShape, Location, Output, Refusal, Request, RequestId,
    Translator,
};
use crate::{Quirks, limit};
use bus::TransferStatus::{Babble, Cancelled, Disconnected, Done, Error, Short, Stall};
use bus::{Pipe, StreamId};
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;
use units::{Duration, Instant};
use wire::xhci::{
    CommandTrb, CompletionCode, EndpointId, EndpointState, EventTrb, PortPower, RouteString, TransferTrb,
    TrbFlags, TrbType,
};

/// Where the context of bulk IN 1 is.
const IN: EndpointId = EndpointId::of(bus::EndpointAddress::at::<1>(bus::Direction::In));

fn plain_in() -> Pipe {
    Pipe::plain(bulk_in())
}

fn stream(id: u16) -> Pipe {
    Pipe::stream(bulk_in(), StreamId::new(id).unwrap())
}

fn with_streams(config: Config) -> (Fixture, crate::DeviceId) {
    let (mut fixture, device) = Fixture::with_device(config);
    let endpoints = vec![bulk_in(), bulk_out()];
    let answer = fixture.ask(Request::AllocateStreams { device, endpoints, wanted: 32 });
    assert_eq!(answer, Ok(Answer::Streams(16)));
    fixture.hw.commands.clear();
    fixture.hw.doorbells.clear();
    (fixture, device)
}
