//! The engine as a whole: order, limits, digest, notes.

use super::*;
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tick(u64);

impl Event for Tick {
    fn mark(&self) -> u64 {
        self.0
    }
}

fn drain(engine: &mut Engine<Tick>) -> Vec<(u64, u64)> {
    let mut seen = Vec::new();
    while let Some(Tick(number)) = engine.next() {
        seen.push((engine.now().as_ps(), number));
    }
    seen
}

#[test]
fn events_come_by_time_and_then_by_order_of_scheduling() {
    let mut engine = Engine::new();
    for (at, number) in [(30, 0), (10, 1), (30, 2), (10, 3), (20, 4)] {
        engine.at(Instant::from_ps(at), Tick(number)).unwrap();
    }
    assert_eq!(engine.next_at(), Some(Instant::from_ps(10)));
    assert_eq!(drain(&mut engine), [(10, 1), (10, 3), (20, 4), (30, 0), (30, 2)]);
    assert_eq!((engine.happened(), engine.waiting()), (5, 0));
}

#[test]
fn an_event_in_the_past_happens_now() {
    let mut engine = Engine::new();
    engine.after(Duration::from_ps(50), Tick(0)).unwrap();
    engine.next();
    engine.at(Instant::from_ps(50), Tick(1)).unwrap();
    assert_eq!(engine.scheduled_late(), None);
    engine.at(Instant::from_ps(10), Tick(2)).unwrap();
    assert_eq!(engine.scheduled_late(), Some(Instant::from_ps(50)));
    assert_eq!(drain(&mut engine), [(50, 1), (50, 2)]);
}

#[test]
fn a_full_event_queue_rejects_events() {
    let mut engine = Engine::new();
    for number in 0..EVENTS_MAX as u64 {
        engine.at(Instant::ZERO, Tick(number)).unwrap();
    }
    assert_eq!(engine.at(Instant::ZERO, Tick(0)), Err(QueueFull));
    engine.next();
    assert_eq!(engine.at(Instant::ZERO, Tick(0)), Ok(()));
}

#[test]
fn the_digest_distinguishes_times_and_events() {
    let digest = |events: &[(u64, u64)]| {
        let mut engine = Engine::new();
        for &(at, number) in events {
            engine.at(Instant::from_ps(at), Tick(number)).unwrap();
        }
        drain(&mut engine);
        engine.digest()
    };
    assert_eq!(digest(&[(1, 1), (2, 2)]), digest(&[(2, 2), (1, 1)]));
    assert_ne!(digest(&[(1, 1), (2, 2)]), digest(&[(1, 1), (3, 2)]));
    assert_ne!(digest(&[(1, 1), (2, 2)]), digest(&[(1, 1), (2, 3)]));
    assert_ne!(digest(&[(1, 1)]), digest(&[(1, 1), (2, 2)]));
}

/// Shares its lines with the test.
struct Shared(Rc<RefCell<Vec<String>>>);

impl Trace for Shared {
    fn record(&mut self, entry: TraceEntry<'_>) {
        self.0.borrow_mut().record(entry);
    }
}

#[test]
fn trace_text_is_formatted_only_for_a_trace() {
    struct Costly<'a>(&'a RefCell<u32>);
    impl fmt::Display for Costly<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            *self.0.borrow_mut() += 1;
            f.write_str("packet")
        }
    }
    let made = RefCell::new(0);
    let lines = Rc::new(RefCell::new(Vec::new()));
    let mut engine: Engine<Tick> = Engine::new();
    engine.note("host", format_args!("{}", Costly(&made)));
    assert_eq!(*made.borrow(), 0);
    engine.trace_to(Box::new(Shared(Rc::clone(&lines))));
    engine.note("host", format_args!("{}", Costly(&made)));
    assert!(engine.take_trace().is_some());
    engine.note("host", format_args!("{}", Costly(&made)));
    assert_eq!(*made.borrow(), 1);
    assert_eq!(*lines.borrow(), ["           0.000 ns  host         packet"]);
}

proptest! {
    #[test]
    fn order_is_that_of_a_stable_sort(times in prop::collection::vec(0_u64..50, 0..200)) {
        let mut engine = Engine::new();
        let mut expected: Vec<_> = times.iter().copied().zip(0..).collect();
        for &(at, number) in &expected {
            engine.at(Instant::from_ps(at), Tick(number)).unwrap();
        }
        expected.sort_by_key(|&(at, _)| at);
        prop_assert_eq!(drain(&mut engine), expected);
    }
}
