//! Marks of messages for a digest.

use super::*;
use crate::link::streams::StreamField;
use bus::StreamId;
use std::collections::BTreeSet;
use wire::usb::SetupPacket;

/// Messages of which no two are alike.
fn all() -> Vec<Message> {
    let stream = |id| StreamId::new(id).map(StreamField::Stream);
    let streams = [None, Some(StreamField::Prime), Some(StreamField::NoStream), stream(1), stream(2)];
    let endpoints = [Direction::In, Direction::Out].map(EndpointAddress::at::<1>);
    let piece = |bytes| Some(PacketPayload { transfer: TransferId(1), offset: 0, bytes });
    let mut all = vec![Message::Status];
    for endpoint in endpoints {
        for stream in streams {
            all.extend([Message::Nrdy { endpoint, stream }, Message::Stall { endpoint, stream }]);
            for number in [0, 1, 31] {
                let (sequence, packets) = (Sequence::default().before(32 - number), number);
                for (is_pending, is_retry) in [(false, false), (true, false), (false, true)] {
                    let expects = sequence;
                    all.push(Message::Ack { endpoint, stream, expects, packets, is_pending, is_retry });
                }
                for (piece, is_last) in [(None, false), (piece(512), false), (piece(1024), true)] {
                    all.push(Message::Data { endpoint, stream, sequence, piece, is_last });
                }
            }
        }
        for stream in [None, StreamId::new(1), StreamId::new(2)] {
            all.extend([1, 2].map(|packets| Message::Erdy { endpoint, stream, packets }));
        }
    }
    let setup = |value| SetupPacket::decode(&[0x80, 6, value, 1, 0, 0, 18, 0]).unwrap();
    all.extend([0, 1].map(|value| Message::Setup { setup: setup(value) }));
    all
}

#[test]
fn messages_that_differ_have_marks_that_differ() {
    let marks: BTreeSet<u64> = all().iter().map(Message::mark).collect();
    assert_eq!(marks.len(), all().len());
}
