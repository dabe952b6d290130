//! Stops, transfers cancelled, halts: scripts with times worked out by hand, and random ones.

use super::*;

impl Wire {
    /// Lets things happen until the host has so many bytes of data, or nothing happens any more.
    fn run_until_moved(&mut self, side: Side, bytes: u32) {
        self.send_all();
        while self.progress[side as usize].iter().map(|progress| progress.moved).max().unwrap_or(0) < bytes
            && self.step()
        {}
    }

    fn said(&self) -> Vec<&str> {
        self.script.iter().map(|line| &line[12..]).collect()
    }
}

#[test]
fn a_stopped_read_takes_what_was_asked_for_and_goes_on_where_it_was() {
    let mut wire = Wire::new(&[plain(IN, 2)]);
    wire.both(Pipe::plain(IN), transfer(1, 8192));
    wire.run_until_moved(Side::Host, 2048);
    wire.link_pair.host.stop(IN);
    assert!(!wire.link_pair.host.is_quiet(IN), "one more was asked for");
    wire.run();
    assert!(wire.link_pair.host.is_quiet(IN));
    assert_script(
        &wire,
        &[
            "    0    40 -> ACK 1 IN expects 0, takes 2",
            "  240  2352 <- DATA 1 IN number 0, 1024 bytes",
            // A burst of two: one is in progress while the host asks for one more.
            " 2364  4476 <- DATA 1 IN number 1, 1024 bytes",
            " 2452  2492 -> ACK 1 IN expects 1, takes 2",
            " 4520  6632 <- DATA 1 IN number 2, 1024 bytes",
            " 4576  4616 -> ACK 1 IN expects 2, takes 2",
            // Stopped when the second had come: what was asked for then is the third and the
            // fourth.
            " 6676  8788 <- DATA 1 IN number 3, 1024 bytes",
            " 6732  6772 -> ACK 1 IN expects 3, takes 1",
            " 8888  8928 -> ACK 1 IN expects 4, takes 0",
        ],
    );
    wire.script.clear();
    wire.link_pair.host.resume(IN);
    wire.run();
    assert!(wire.script[0].ends_with("-> ACK 1 IN expects 4, takes 2"), "{}", wire.script[0]);
    assert_eq!(wire.ended(Side::Host), [(1, 8192, End::Full)]);
}

#[test]
fn a_stop_that_races_the_last_packet_finds_the_read_done() {
    let mut wire = Wire::new(&[plain(IN, 16)]);
    wire.both(Pipe::plain(IN), transfer(1, 2048));
    wire.run_until_moved(Side::Host, 1024);
    // The first has come at 2,352, and the last is on the lane since 2,364.
    wire.link_pair.host.stop(IN);
    assert!(!wire.link_pair.host.is_quiet(IN));
    wire.run();
    assert_script(
        &wire,
        &[
            "    0    40 -> ACK 1 IN expects 0, takes 2",
            "  240  2352 <- DATA 1 IN number 0, 1024 bytes",
            " 2364  4476 <- DATA 1 IN number 1, 1024 bytes, the last",
            " 2452  2492 -> ACK 1 IN expects 1, takes 1",
            // The stop changes nothing of what was asked for: 100 ns after the last byte it is
            // acknowledged.
            " 4576  4616 -> ACK 1 IN expects 2, takes 0",
        ],
    );
    assert!(wire.link_pair.host.is_quiet(IN));
    assert_eq!(wire.ended(Side::Host), [(1, 2048, End::Full)]);
    assert_eq!(wire.link_pair.host.withdraw(Pipe::plain(IN), TransferId(1)), Err(NotWithdrawn::Unknown));
}

#[test]
fn a_stop_that_races_the_last_acknowledgement_finds_the_write_done() {
    let mut wire = Wire::new(&[plain(OUT, 16)]);
    wire.both(Pipe::plain(OUT), transfer(1, 1024));
    // The device has all of it, and its acknowledgement is not on the lane yet.
    wire.run_until_moved(Side::Device, 1024);
    wire.link_pair.host.stop(OUT);
    assert!(!wire.link_pair.host.is_quiet(OUT));
    let withdrawn = wire.link_pair.host.withdraw(Pipe::plain(OUT), TransferId(1));
    assert_eq!(withdrawn, Err(NotWithdrawn::InFlight));
    wire.run();
    assert_script(
        &wire,
        &[
            "    0  2112 -> DATA 2 OUT number 0, 1024 bytes, the last",
            " 2312  2352 <- ACK 2 OUT expects 1, takes 0",
        ],
    );
    assert!(wire.link_pair.host.is_quiet(OUT));
    assert_eq!(wire.ended(Side::Host), [(1, 1024, End::Full)]);
}

#[test]
fn a_stopped_write_sends_no_more_and_what_was_sent_is_acknowledged() {
    let mut wire = Wire::new(&[plain(OUT, 16)]);
    wire.both(Pipe::plain(OUT), transfer(1, 8192));
    wire.run_until_moved(Side::Device, 1024);
    wire.link_pair.host.stop(OUT);
    wire.run();
    assert_script(
        &wire,
        &[
            "    0  2112 -> DATA 2 OUT number 0, 1024 bytes",
            " 2120  4232 -> DATA 2 OUT number 1, 1024 bytes",
            " 2312  2352 <- ACK 2 OUT expects 1, takes 7",
            " 4432  4472 <- ACK 2 OUT expects 2, takes 6",
        ],
    );
    assert_eq!(wire.link_pair.host.withdraw(Pipe::plain(OUT), TransferId(1)), Ok(2048));
    // The device has the beginning of it and waits for more; what comes next goes there.
    wire.link_pair.host.queue(Pipe::plain(OUT), transfer(2, 500)).unwrap();
    wire.link_pair.host.resume(OUT);
    wire.run();
    assert_eq!(wire.ended(Side::Device), [(1, 2548, End::Short)]);
}

#[test]
fn a_transfer_is_cancelled_only_when_its_stream_has_nothing_in_flight() {
    let mut wire = Wire::new(&[plain(IN, 2)]);
    wire.both(Pipe::plain(IN), transfer(1, 8192));
    wire.link_pair.host.queue(Pipe::plain(IN), transfer(2, 8192)).unwrap();
    wire.run_until_moved(Side::Host, 2048);
    let withdraw = |wire: &mut Wire, id| wire.link_pair.host.withdraw(Pipe::plain(IN), TransferId(id));
    assert_eq!(withdraw(&mut wire, 1), Err(NotWithdrawn::InFlight));
    wire.link_pair.host.stop(IN);
    wire.run();
    assert_eq!(withdraw(&mut wire, 1), Ok(4096));
    assert_eq!(withdraw(&mut wire, 1), Err(NotWithdrawn::Unknown));
    wire.link_pair.host.resume(IN);
    wire.run();
    // The rest of what the device sends goes to the next.
    assert_eq!(wire.ended(Side::Device), [(1, 8192, End::Full)]);
    wire.link_pair.host.stop(IN);
    assert_eq!(withdraw(&mut wire, 2), Ok(4096));
}

#[test]
fn a_stopped_pipe_answers_no_proposal_until_it_goes_on() {
    let mut wire = Wire::new(&[streamed(IN)]);
    wire.link_pair.host.queue(on(IN, 3), transfer(1, 16)).unwrap();
    wire.run();
    wire.link_pair.host.stop(IN);
    assert!(wire.link_pair.host.is_quiet(IN));
    wire.script.clear();
    wire.link_pair.device.queue(on(IN, 3), transfer(1, 16)).unwrap();
    wire.run();
    assert_eq!(wire.said(), ["<- ERDY 1 IN stream 3 for 1"]);
    assert!(wire.link_pair.host.is_quiet(IN));
    wire.link_pair.host.resume(IN);
    wire.run();
    assert_eq!(wire.said()[1], "-> ACK 1 IN stream 3 expects 0, takes 1");
    assert_eq!(wire.ended(Side::Host), [(1, 16, End::Full)]);
}

#[test]
fn prime_leaves_a_stream_whose_buffer_was_cancelled() {
    let mut wire = Wire::new(&[streamed(OUT)]);
    wire.both(on(OUT, 1), transfer(1, 64 << 10));
    wire.run_until_moved(Side::Device, 2048);
    wire.link_pair.host.stop(OUT);
    wire.run();
    let moved = wire.link_pair.host.withdraw(on(OUT, 1), TransferId(1)).unwrap();
    assert!((2048..8192).contains(&moved), "{moved}");
    wire.both(on(OUT, 2), transfer(2, 16));
    wire.script.clear();
    wire.link_pair.host.resume(OUT);
    wire.run();
    let number = moved / 1024;
    assert_eq!(
        wire.said(),
        [
            &*format!("-> DATA 2 OUT stream Prime number {number}, 0 bytes, the last"),
            "<- NRDY 2 OUT stream Prime",
            "<- ERDY 2 OUT stream 1 for 16",
            &format!("-> DATA 2 OUT stream NoStream number {number}, 0 bytes, the last"),
            "<- NRDY 2 OUT stream NoStream",
            "<- ERDY 2 OUT stream 2 for 1",
            &format!("-> DATA 2 OUT stream 2 number {number}, 16 bytes, the last"),
            &format!("<- ACK 2 OUT stream 2 expects {}, takes 0", number + 1),
        ]
    );
}

#[test]
fn a_halted_endpoint_answers_stall_and_starts_from_0_when_the_halt_is_cleared() {
    let mut wire = Wire::new(&[plain(IN, 16)]);
    wire.both(Pipe::plain(IN), transfer(1, 100));
    wire.run();
    wire.script.clear();
    wire.link_pair.device.halt(IN);
    wire.both(Pipe::plain(IN), transfer(2, 200));
    wire.link_pair.host.queue(Pipe::plain(IN), transfer(3, 300)).unwrap();
    let begins = wire.engine.now().as_ps() / 1000;
    wire.run();
    assert_eq!(
        wire.said(),
        ["<- ERDY 1 IN for 1", "-> ACK 1 IN expects 1, takes 1", "<- STALL 1 IN"],
        "it had said that there was no more"
    );
    // 40 ns for ERDY, 100 and 40 for what is asked, 200 and 40 for the answer, 100 until that is
    // heard.
    assert_eq!(wire.engine.now().as_ps() / 1000, begins + 520);
    assert_eq!(wire.ended(Side::Host), [(1, 100, End::Full), (2, 0, End::Stalled)]);
    assert_eq!(wire.link_pair.host.poll_halt(), Some(IN));
    assert_eq!(wire.link_pair.host.poll_halt(), None);
    assert!(wire.link_pair.host.is_halted(IN));
    wire.script.clear();
    wire.link_pair.host.resume(IN);
    wire.run();
    assert_eq!(wire.script.len(), 0, "a halt is not ended by a doorbell");
    wire.link_pair.device.clear_halt(IN);
    wire.link_pair.host.reset(IN);
    wire.link_pair.host.resume(IN);
    wire.run();
    assert_eq!(
        wire.said()[..2],
        ["-> ACK 1 IN expects 0, takes 1", "<- DATA 1 IN number 0, 200 bytes, the last"]
    );
    assert_eq!(wire.ended(Side::Host)[2..], [(3, 200, End::Short)]);
}

#[test]
fn a_halt_in_a_read_comes_after_what_was_sent() {
    let mut wire = Wire::new(&[plain(IN, 4)]);
    wire.both(Pipe::plain(IN), transfer(1, 64 << 10));
    wire.run_until_moved(Side::Host, 2048);
    wire.link_pair.device.halt(IN);
    wire.run();
    assert_eq!(wire.ended(Side::Host), [(1, 3072, End::Stalled)]);
    assert_script(
        &wire,
        &[
            "    0    40 -> ACK 1 IN expects 0, takes 4",
            "  240  2352 <- DATA 1 IN number 0, 1024 bytes",
            " 2364  4476 <- DATA 1 IN number 1, 1024 bytes",
            " 2452  2492 -> ACK 1 IN expects 1, takes 4",
            // The halt comes while this is sent; what the host asks for when it has it is answered
            // so.
            " 4520  6632 <- DATA 1 IN number 2, 1024 bytes",
            " 4576  4616 -> ACK 1 IN expects 2, takes 4",
            " 6732  6772 -> ACK 1 IN expects 3, takes 4",
            " 6972  7012 <- STALL 1 IN",
        ],
    );
}

#[test]
fn a_halt_in_a_write_stalls_the_next_packet() {
    let mut wire = Wire::new(&[plain(OUT, 16)]);
    wire.both(Pipe::plain(OUT), transfer(1, 8192));
    wire.run_until_moved(Side::Device, 1024);
    wire.link_pair.device.halt(OUT);
    wire.run();
    assert_eq!(wire.ended(Side::Host), [(1, 1024, End::Stalled)]);
    assert_script(
        &wire,
        &[
            "    0  2112 -> DATA 2 OUT number 0, 1024 bytes",
            " 2120  4232 -> DATA 2 OUT number 1, 1024 bytes",
            " 2312  2352 <- ACK 2 OUT expects 1, takes 7",
            // LGOOD and LCRD for the acknowledgement, and four skips.
            " 4280  6392 -> DATA 2 OUT number 2, 1024 bytes",
            " 4432  4472 <- STALL 2 OUT",
            " 6592  6632 <- STALL 2 OUT",
        ],
    );
}

#[test]
fn a_halted_pipe_with_streams_stalls_a_prime_and_restarts() {
    let mut wire = Wire::new(&[streamed(IN)]);
    wire.link_pair.device.halt(IN);
    wire.link_pair.host.queue(on(IN, 5), transfer(1, 16)).unwrap();
    wire.run();
    assert_eq!(wire.said(), ["-> ACK 1 IN stream Prime expects 0, takes 1", "<- STALL 1 IN stream Prime"]);
    assert_eq!(wire.ended(Side::Host), [], "no stream had begun");
    assert_eq!(wire.link_pair.host.poll_halt(), Some(IN));
    wire.link_pair.device.clear_halt(IN);
    wire.link_pair.host.reset(IN);
    wire.link_pair.host.resume(IN);
    wire.link_pair.device.queue(on(IN, 5), transfer(1, 16)).unwrap();
    wire.run();
    assert_eq!(wire.ended(Side::Host), [(1, 16, End::Full)]);
}

#[test]
fn what_is_proposed_between_a_reset_and_the_end_of_the_halt_is_proposed_again_after_it() {
    let mut wire = Wire::new(&[streamed(IN)]);
    wire.both(on(IN, 5), transfer(1, 16));
    wire.run();
    wire.link_pair.device.halt(IN);
    wire.link_pair.host.queue(on(IN, 6), transfer(2, 16)).unwrap();
    wire.run();
    assert_eq!(wire.link_pair.host.poll_halt(), Some(IN));
    wire.link_pair.host.reset(IN);
    wire.script.clear();
    wire.link_pair.device.queue(on(IN, 6), transfer(2, 16)).unwrap();
    wire.run();
    assert_eq!(wire.said(), ["<- ERDY 1 IN stream 6 for 1"]);
    wire.link_pair.device.clear_halt(IN);
    wire.link_pair.host.resume(IN);
    wire.run();
    assert_eq!(wire.ended(Side::Host), [(1, 16, End::Full), (2, 16, End::Full)]);
}

#[test]
fn a_device_cancels_what_it_has_not_sent() {
    let mut wire = Wire::new(&[plain(IN, 4)]);
    wire.both(Pipe::plain(IN), transfer(1, 64 << 10));
    wire.run_until_moved(Side::Host, 2048);
    assert!(wire.link_pair.device.withdraw(Pipe::plain(IN), TransferId(1)));
    assert!(!wire.link_pair.device.withdraw(Pipe::plain(IN), TransferId(1)));
    wire.run();
    assert_eq!(wire.ended(Side::Device), [(1, 3072, End::Withdrawn)]);
    assert_eq!(wire.said().last(), Some(&"<- NRDY 1 IN"));
    // The host waits for the rest, the component that it is of.
    wire.link_pair.device.queue(Pipe::plain(IN), transfer(2, 100)).unwrap();
    wire.run();
    assert_eq!(wire.ended(Side::Host), [(1, 3172, End::Short)]);
}

#[test]
fn a_device_withdraws_buffer_space_and_refuses_further_packets() {
    let mut wire = Wire::new(&[streamed(OUT)]);
    wire.both(on(OUT, 1), transfer(1, 8192));
    wire.run_until_moved(Side::Device, 1024);
    assert!(wire.link_pair.device.withdraw(on(OUT, 1), TransferId(1)));
    wire.run();
    assert_eq!(wire.ended(Side::Device), [(1, 1024, End::Withdrawn)]);
    assert_eq!(wire.said().last(), Some(&"<- NRDY 2 OUT stream 1"));
    wire.link_pair.device.queue(on(OUT, 1), transfer(2, 7168)).unwrap();
    wire.run();
    assert_eq!(wire.ended(Side::Host), [(1, 8192, End::Full)]);
}

/// An action of either end, on a pipe or an endpoint out of four.
#[derive(Clone, Copy, Debug)]
enum Act {
    HostQueues(usize, u16, u32),
    DeviceQueues(usize, u16, u32),
    /// The host cancels what it has on the pipe, as soon as it can.
    HostWithdraws(usize, u16),
    DeviceWithdraws(usize, u16),
    Halts(usize),
    /// The host has seen the halt and clears it.
    Clears(usize),
    /// Lets so many things happen.
    Time(u8),
}

fn act() -> impl Strategy<Value = Act> {
    let bytes = || prop_oneof![0_u32..3000, Just(1024), Just(4096), 0_u32..70_000];
    let (kind, stream) = (0_usize..4, 1_u16..4);
    prop_oneof![
        4 => (kind.clone(), stream.clone(), bytes()).prop_map(|(kind, stream, bytes)| Act::HostQueues(kind, stream, bytes)),
        4 => (kind.clone(), stream.clone(), bytes()).prop_map(|(kind, stream, bytes)| Act::DeviceQueues(kind, stream, bytes)),
        1 => (kind.clone(), stream.clone()).prop_map(|(kind, stream)| Act::HostWithdraws(kind, stream)),
        1 => (kind.clone(), stream).prop_map(|(kind, stream)| Act::DeviceWithdraws(kind, stream)),
        1 => kind.clone().prop_map(Act::Halts),
        1 => kind.prop_map(Act::Clears),
        8 => any::<u8>().prop_map(Act::Time),
    ]
}

/// Both ends under random acts, and what each has queued and cancelled.
struct Storm {
    wire: Wire,
    queued: [u64; 2],
    withdrawn: u64,
    next: u64,
}

impl Storm {
    fn new(burst: u8) -> Self {
        let wire = Wire::new(&four_kinds(burst));
        Self { wire, queued: [0; 2], withdrawn: 0, next: 0 }
    }

    fn act(&mut self, act: Act) {
        let name = transfer(self.next, 0).id;
        self.next += 1;
        let link_pair = &mut self.wire.link_pair;
        match act {
            Act::HostQueues(kind, stream, bytes) => {
                link_pair.host.queue(pipe_of(kind, stream), Transfer { id: name, bytes }).unwrap();
                self.queued[0] += 1;
            }
            Act::DeviceQueues(kind, stream, bytes) => {
                link_pair.device.queue(pipe_of(kind, stream), Transfer { id: name, bytes }).unwrap();
                self.queued[1] += 1;
            }
            Act::HostWithdraws(kind, stream) => self.withdraw(pipe_of(kind, stream)),
            Act::DeviceWithdraws(kind, stream) => {
                // Whichever of its transfers it is.
                for id in (0..self.next).map(TransferId) {
                    link_pair.device.withdraw(pipe_of(kind, stream), id);
                }
            }
            Act::Halts(kind) => link_pair.device.halt(pipe_of(kind, 1).endpoint),
            Act::Clears(kind) => {
                let endpoint = pipe_of(kind, 1).endpoint;
                link_pair.host.stop(endpoint);
                self.calm(endpoint);
                let link_pair = &mut self.wire.link_pair;
                link_pair.device.clear_halt(endpoint);
                link_pair.host.reset(endpoint);
                link_pair.host.resume(endpoint);
            }
            Act::Time(steps) => {
                self.wire.send_all();
                for _ in 0..steps {
                    self.wire.step();
                }
            }
        }
        let link_pair = &mut self.wire.link_pair;
        self.wire.progress[1].extend(std::iter::from_fn(|| link_pair.device.poll_progress()));
    }

    /// Waits until an endpoint is quiet, and what has crossed it is there.
    fn calm(&mut self, endpoint: EndpointAddress) {
        self.wire.run();
        assert!(self.wire.link_pair.host.is_quiet(endpoint), "{}", self.wire.script.join("\n"));
    }

    fn withdraw(&mut self, pipe: Pipe) {
        self.wire.link_pair.host.stop(pipe.endpoint);
        self.calm(pipe.endpoint);
        for id in self.wire.link_pair.host.transfers(pipe).collect::<Vec<_>>() {
            self.wire.link_pair.host.withdraw(pipe, id).unwrap();
            self.withdrawn += 1;
        }
        self.wire.link_pair.host.resume(pipe.endpoint);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn each_transfer_completes_once_despite_stops_halts_and_cancels(
        acts in prop::collection::vec(act(), 0..60), burst in 1_u8..=16,
    ) {
        let mut storm = Storm::new(burst);
        for &act in &acts {
            storm.act(act);
        }
        for kind in 0..4 {
            storm.act(Act::Clears(kind));
            for stream in 1..4 {
                storm.act(Act::DeviceWithdraws(kind, stream));
                storm.act(Act::HostWithdraws(kind, stream));
            }
        }
        let ended = [Side::Host, Side::Device].map(|side| storm.wire.ended(side).len() as u64);
        prop_assert_eq!([ended[0] + storm.withdrawn, ended[1]], storm.queued);
        for kind in 0..4 {
            for stream in 1..4 {
                let id = 1_000_000 + u64::from(stream) + 10 * kind as u64;
                storm.wire.both(pipe_of(kind, stream), transfer(id, 5000));
                storm.wire.run();
                for side in [Side::Host, Side::Device] {
                    prop_assert_eq!(storm.wire.ended(side).pop(), Some((id, 5000, End::Full)), "{:?}\n{}", side, storm.wire.script.join("\n"));
                }
            }
        }
    }
}
