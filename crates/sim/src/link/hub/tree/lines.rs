//! Queues of a tree, their limits, and arbitration.
//!
//! Invariant: what there was no room for is reported ([`Tree::overrun`]), and the component that
//! has the tree goes no further.

use super::{Branch, Hub, Tree};
use crate::engine::CapacityExceeded;
use crate::link::hub::lane::Passing;
use crate::link::hub::types::{DeviceId, TreeEvent};
use crate::link::superspeed::Side;
use std::collections::VecDeque;
use units::Instant;

/// Events to schedule. Each handled event makes at most one packet on each of 128 lanes, with two
/// events, and one credit.
const NEXT: CapacityExceeded = CapacityExceeded { queue: "the event queue of the hub tree", capacity: 1024 };

/// Packets queued at a hub port in one direction: four per credit limit of a link, and those from
/// before the link went down, while their destination is down as well.
const PORT: CapacityExceeded = CapacityExceeded { queue: "the packet queue of a hub port", capacity: 64 };

impl Tree {
    /// Returns the queue that overflowed; the results are invalid then.
    pub const fn overrun(&self) -> Option<CapacityExceeded> {
        self.overrun
    }

    /// Checks Little's law for packets in hubs, and that their number matches.
    pub fn is_consistent(&self, now: Instant) -> bool {
        let held = |branch: &Branch| {
            let held = branch.lanes.iter().filter_map(|lane| lane.held.as_ref()?.came_by);
            held.count() + branch.waiting.iter().map(VecDeque::len).sum::<usize>()
        };
        let there: usize = self.branches.iter().map(held).sum();
        self.in_hubs.is_consistent(now) && self.in_hubs.count() as usize == there
    }

    /// Schedules an event.
    pub(super) fn expect(&mut self, at: Instant, happening: TreeEvent) {
        if let Err(full) = NEXT.push(&mut self.next, (at, happening)) {
            self.overrun = Some(full);
        }
    }

    /// Queues a packet in a hub.
    pub(super) fn line_up(&mut self, now: Instant, branch: usize, side: Side, passing: Passing) {
        self.in_hubs.arrive(now);
        if let Err(full) = PORT.push(&mut self.branches[branch].waiting[side as usize], passing) {
            self.overrun = Some(full);
        }
    }

    /// Chooses the next packet of a side of a branch.
    pub(super) fn choose(&mut self, branch: usize, from: Side) -> Option<Passing> {
        let Branch { above, hub, waiting, device, .. } = &mut self.branches[branch];
        match (from, above, hub) {
            (Side::Host, None, _) => self.choose_of_hosts(),
            (Side::Host, Some(_), _) => waiting[Side::Host as usize].pop_front(),
            (Side::Device, _, hub) => {
                let (device, is_hub) = (*device, hub.is_some());
                let own = self.ends[device.0].poll_up(device);
                let own = own.map(|routed| Passing { routed, came_by: None });
                if is_hub { own.or_else(|| self.choose_of_ports(branch)) } else { own }
            }
        }
    }

    /// Returns the next message of the host, round-robin over devices.
    fn choose_of_hosts(&mut self) -> Option<Passing> {
        while let Some(device) = self.ready.after(self.turn) {
            let ends = &mut self.ends[device];
            let routed = ends.poll_down(DeviceId(device), self.bus.others(ends.burst));
            self.look_at(device);
            if let Some(routed) = routed {
                self.turn = device;
                return Some(Passing { routed, came_by: None });
            }
            self.ready.remove(device);
        }
        None
    }

    /// Returns the next packet that goes up from a hub, round-robin over ports.
    fn choose_of_ports(&mut self, hub: usize) -> Option<Passing> {
        let Hub { below, turn, .. } = self.branches[hub].hub.as_ref()?;
        let count = below.len();
        let mut ports = (1..=count).map(|step| (turn + step) % count).map(|place| (place, below[place].1));
        let has_some = |branch: usize| !self.branches[branch].waiting[Side::Device as usize].is_empty();
        let (place, branch) = ports.find(|&(_, branch)| has_some(branch))?;
        if let Some(hub) = &mut self.branches[hub].hub {
            hub.turn = place;
        }
        self.branches[branch].waiting[Side::Device as usize].pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::bulk::{Endpoint, Transfer};
    use crate::link::hub::lane::CameBy;
    use crate::link::hub::{AttachPoint, TreeEnvironment};
    use crate::link::superspeed::Rate;
    use bus::{Pipe, TransferId};
    use units::Duration;
    use wire::usb::{Direction, EndpointAddress};

    const OUT: EndpointAddress = EndpointAddress::at::<2>(Direction::Out);

    struct Nothing;

    impl TreeEnvironment for Nothing {}

    /// A hub with a device at its port.
    fn tree() -> Tree {
        let mut tree = Tree::new(Rate::Gen1, Duration::ZERO);
        let hub = tree.plug_hub(AttachPoint::Root, Duration::ZERO).unwrap();
        tree.plug_device(AttachPoint::Port(hub, 1), &[Endpoint::bulk(OUT, 1024, 16, 0)]).unwrap();
        tree
    }

    #[test]
    fn an_overflow_of_the_event_queue_is_reported() {
        let mut tree = tree();
        let free = TreeEvent::Free { branch: 0, generation: 0, from: Side::Host };
        (0..1024).for_each(|_| tree.expect(Instant::ZERO, free));
        assert_eq!(tree.overrun(), None);
        tree.expect(Instant::ZERO, free);
        assert_eq!((tree.overrun(), tree.next.len()), (Some(NEXT), 1024));
    }

    #[test]
    fn a_65th_packet_at_a_port_is_an_overflow() {
        let mut tree = tree();
        let (host, _) = tree.ports(DeviceId(1));
        host.queue(Pipe::plain(OUT), Transfer { id: TransferId(1), bytes: 1024 }).unwrap();
        tree.wake(Instant::ZERO, &mut Nothing);
        let routed = tree.poll_sent().unwrap().routed;
        let passing = Passing { routed, came_by: None };
        (0..64).for_each(|_| tree.line_up(Instant::ZERO, 1, Side::Device, passing));
        assert_eq!(tree.overrun(), None);
        tree.line_up(Instant::ZERO, 1, Side::Device, passing);
        assert_eq!(tree.overrun(), Some(PORT));
    }

    #[test]
    fn a_packet_that_leaves_a_hub_with_the_time_of_another_is_found() {
        let at = |ns| Instant::ZERO + Duration::from_ns(ns);
        let mut tree = tree();
        let (host, _) = tree.ports(DeviceId(1));
        host.queue(Pipe::plain(OUT), Transfer { id: TransferId(1), bytes: 1024 }).unwrap();
        tree.wake(at(0), &mut Nothing);
        let routed = tree.poll_sent().unwrap().routed;
        let came_by = |since| CameBy { branch: 0, generation: 0, side: Side::Device, since };
        tree.line_up(at(10), 1, Side::Host, Passing { routed, came_by: Some(came_by(at(10))) });
        assert!(tree.is_consistent(at(20)));
        let mut other = tree.clone();
        tree.send(at(30), 1, Side::Host, &mut Nothing);
        assert!(tree.is_consistent(at(40)) && tree.in_hubs.arrived() == 1 && tree.in_hubs.count() == 0);
        // One that is sent to have come a nanosecond later.
        other.branches[1].waiting[Side::Host as usize][0].came_by = Some(came_by(at(11)));
        other.send(at(30), 1, Side::Host, &mut Nothing);
        assert!(!other.is_consistent(at(40)));
        // And one that is gone without a word.
        tree.line_up(at(50), 1, Side::Host, Passing { routed, came_by: Some(came_by(at(50))) });
        tree.branches[1].waiting[Side::Host as usize].clear();
        assert!(!tree.is_consistent(at(60)));
    }
}
