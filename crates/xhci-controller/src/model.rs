//! Parameters of a controller: capabilities, access times, deviations from the standard.
//!
//! Access times are added to what the controller does: a simulation gives those of PCI Express and
//! of silicon, a served controller none ([`PciExpress::IMMEDIATE`]), since its owner's processor
//! takes the time. Left out: delays on the bus, which are the link's.

use units::Duration;
use wire::xhci::{ContextSize, ControllerFeatures, TrbType};

/// A host controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// Interface version: 0096h, 0100h, 0110h.
    pub version: u16,
    /// Device slots.
    pub slots: u8,
    /// Root ports of USB 2.0, the first ones.
    pub ports_usb2: u8,
    /// Root ports of USB 3, after those.
    pub ports_usb3: u8,
    /// Bytes of a context.
    pub contexts: ContextSize,
    /// MaxPSASize: a primary stream array has 2^(n+1) entries at most; 0 is no streams.
    pub primary_streams_exponent: u8,
    /// Whether secondary stream arrays exist.
    pub has_secondary_streams: bool,
    /// An event ring has 2^n segments at most.
    pub event_segments_exponent: u8,
    /// Pages that it wants for itself.
    pub scratchpads: u16,
    /// Maximum endpoints besides control endpoints; one more is a Resource Error.
    pub endpoints_max: u16,
    /// U1 device exit latency in microseconds (HCSPARAMS3).
    pub u1_exit_latency_us: u8,
    /// U2 device exit latency in microseconds (HCSPARAMS3).
    pub u2_exit_latency_us: u16,
    /// How it is attached.
    pub attachment: PciExpress,
    /// Payload buffer between link and memory in bytes. When it is full, the link waits.
    pub buffer_bytes: u32,
    /// Interrupts are aligned to multiples of this: the interrupt threshold of EHCI (EHCI 1.0
    /// clause 2.3.1). Zero disables the alignment.
    pub interrupt_grid: Duration,
    /// Time to carry a command out.
    pub command: Duration,
    /// Time of a reset of the controller.
    pub reset: Duration,
    /// Maximum outstanding TDs per ring.
    pub tds_ahead: usize,
    /// Pause before each page of an OUT transfer beyond 64 KiB, whose TRB it had not prefetched;
    /// zero if it prefetches while sending.
    pub next_trb_out: Duration,
    /// Whether it rejects what the standard forbids a driver although hardware takes it: buffers across a boundary of
    /// 64 KiB, and a wrong TD Size. A simulation of our driver is strict, a controller for any driver is not.
    pub is_strict: bool,
    /// Deviations from the standard.
    pub misbehaviour: Misbehaviour,
}

/// How a controller reaches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PciExpress {
    /// A write of the processor to a register.
    pub register_write: Duration,
    /// A read from memory: the request there, the first bytes back.
    pub memory_read: Duration,
    /// A write to memory, until others see it.
    pub memory_write: Duration,
    /// Time per byte of payload from the bus to memory, in picoseconds.
    pub inward_byte_ps: u64,
    /// Time per byte of payload from memory to the bus, in picoseconds.
    pub outward_byte_ps: u64,
}

/// Deviations of some controllers from the standard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misbehaviour {
    /// Stop Endpoint completes at once, and transfers in flight are reported afterwards.
    pub answers_stop_early: bool,
    /// Streams are advertised, but stream doorbells are ignored.
    pub ignores_streams: bool,
    /// Commands of this type execute but never complete.
    pub unanswered: Option<TrbType>,
    /// Command ring aborts are ignored.
    pub ignores_abort: bool,
    /// Stream ring positions are dropped when an endpoint stops, and reloaded from their contexts
    /// except for the cycle bit, which is assumed to be 1 (QEMU's qemu-xhci).
    pub forgets_cycles: bool,
}

impl Misbehaviour {
    /// None: it follows the standard.
    pub const NONE: Self = Self {
        answers_stop_early: false,
        ignores_streams: false,
        unanswered: None,
        ignores_abort: false,
        forgets_cycles: false,
    };
}

impl PciExpress {
    /// No time at all.
    pub const IMMEDIATE: Self = Self {
        register_write: Duration::ZERO,
        memory_read: Duration::ZERO,
        memory_write: Duration::ZERO,
        inward_byte_ps: 0,
        outward_byte_ps: 0,
    };

    /// Lanes of the second generation: 5 Gb/s and ten bits for a byte make 2 ns. A packet carries
    /// 128 bytes and 24 of framing, sequence number, header and check; its acknowledgement and flow
    /// control take the time of four more. One lane moves 410 MB/s of payload.
    const fn byte_ps_of(lanes: u64) -> u64 {
        const LANE_BYTE_PS: u64 = 2_000;
        const PAYLOAD: u64 = 128;
        const OVERHEAD: u64 = 24 + 4;
        LANE_BYTE_PS * (PAYLOAD + OVERHEAD) / PAYLOAD / lanes
    }

    /// A card in a slot of one lane of the second generation, behind a chipset.
    pub const CARD_X1: Self = Self {
        register_write: Duration::from_ns(250),
        memory_read: Duration::from_ns(800),
        memory_write: Duration::from_ns(350),
        inward_byte_ps: Self::byte_ps_of(1),
        outward_byte_ps: Self::byte_ps_of(1),
    };

    /// Within a chipset, which has four lanes of the second generation to the processor.
    pub const CHIPSET: Self = Self {
        register_write: Duration::from_ns(150),
        memory_read: Duration::from_ns(400),
        memory_write: Duration::from_ns(200),
        inward_byte_ps: Self::byte_ps_of(4),
        outward_byte_ps: Self::byte_ps_of(4),
    };
}

impl Model {
    /// A chipset controller that follows the standard.
    pub const CHIPSET: Self = Self {
        version: 0x0110,
        slots: 64,
        ports_usb2: 2,
        ports_usb3: 2,
        contexts: ContextSize::Bytes32,
        primary_streams_exponent: 7,
        has_secondary_streams: false,
        event_segments_exponent: 3,
        scratchpads: 2,
        endpoints_max: 64,
        u1_exit_latency_us: 10,
        u2_exit_latency_us: 512,
        attachment: PciExpress::CHIPSET,
        buffer_bytes: 16 << 10,
        interrupt_grid: Duration::ZERO,
        command: Duration::from_us(1),
        reset: Duration::from_us(500),
        tds_ahead: 4,
        next_trb_out: Duration::ZERO,
        is_strict: true,
        misbehaviour: Misbehaviour::NONE,
    };

    /// A card in a slot of one lane: moves no more than 410 MB/s, and every access is a long way.
    pub const CARD: Self = Self {
        version: 0x0100,
        contexts: ContextSize::Bytes64,
        event_segments_exponent: 0,
        attachment: PciExpress::CARD_X1,
        buffer_bytes: 8 << 10,
        command: Duration::from_us(3),
        ..Self::CHIPSET
    };

    /// An early card: version 0.96, without streams.
    pub const EARLY_CARD: Self = Self { version: 0x0096, primary_streams_exponent: 0, ..Self::CARD };

    /// A controller of 256 streams that takes no time itself.
    pub const IMMEDIATE: Self = Self {
        ports_usb2: 1,
        ports_usb3: 1,
        primary_streams_exponent: 8,
        scratchpads: 0,
        endpoints_max: 254,
        attachment: PciExpress::IMMEDIATE,
        buffer_bytes: 0,
        command: Duration::ZERO,
        reset: Duration::ZERO,
        ..Self::CHIPSET
    };

    /// A controller of a virtual machine: as [`Self::IMMEDIATE`], with as many ports as a hub of USB 3 can have.
    pub const SERVED: Self = Self {
        ports_usb2: 15,
        ports_usb3: 15,
        event_segments_exponent: 1,
        is_strict: false,
        ..Self::IMMEDIATE
    };

    /// Root ports.
    pub const fn ports(&self) -> u8 {
        self.ports_usb2 + self.ports_usb3
    }

    /// Returns whether a root port, counted from 1, speaks USB 3.
    pub const fn is_usb3(&self, port: u8) -> bool {
        port > self.ports_usb2
    }

    /// Returns the capabilities in HCCPARAMS1.
    pub(crate) fn features(&self) -> ControllerFeatures {
        let mut features = ControllerFeatures::ADDRESS_64;
        if self.contexts == ContextSize::Bytes64 {
            features = features.with(ControllerFeatures::CONTEXT_64);
        }
        if !self.has_secondary_streams {
            features = features.with(ControllerFeatures::NO_SECONDARY_STREAMS);
        }
        features
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_lane_moves_400_to_430_megabytes_a_second() {
        let rate = 1_000_000 / PciExpress::CARD_X1.inward_byte_ps;
        assert!((400..=430).contains(&rate), "{rate}");
    }
}
