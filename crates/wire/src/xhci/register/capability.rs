//! Capability registers (xHCI 1.2 clause 5.3).

use crate::DecodeError;
use crate::xhci::{ContextSize, bit, bytes_of, dwords, field, flag, place};
use core::fmt;

register_bits! {
    /// Features in HCCPARAMS1.
    pub struct ControllerFeatures: u16 {
        /// Pointers of 64 bits (AC64).
        ADDRESS_64 = 0x0001 => "64-bit addresses",
        /// Bandwidth is negotiated (BNC).
        BANDWIDTH_NEGOTIATION = 0x0002 => "bandwidth negotiation",
        /// Contexts of 64 bytes (CSZ).
        CONTEXT_64 = 0x0004 => "64-byte contexts",
        /// Ports can be powered off (PPC).
        PORT_POWER = 0x0008 => "port power",
        /// Ports have lights (PIND).
        PORT_INDICATORS = 0x0010 => "port indicators",
        /// Light reset (LHRC).
        LIGHT_RESET = 0x0020 => "light reset",
        /// Latency tolerance messages (LTC).
        LATENCY_TOLERANCE = 0x0040 => "latency tolerance",
        /// No secondary stream ids (NSS).
        NO_SECONDARY_STREAMS = 0x0080 => "no secondary streams",
        /// Every event data TRB is parsed (PAE).
        PARSE_ALL_EVENT_DATA = 0x0100 => "parse all event data",
        /// Stop Endpoint reports short packets (SPC).
        STOPPED_SHORT_PACKET = 0x0200 => "stopped short packet",
        /// Stopped EDTLA is kept in stream contexts (SEC).
        STOPPED_LENGTH = 0x0400 => "stopped EDTLA",
        /// Contiguous frame ids (CFC).
        CONTIGUOUS_FRAME_ID = 0x0800 => "contiguous frame id",
    }
}

register_bits! {
    /// Features in HCCPARAMS2.
    pub struct MoreFeatures: u16 {
        /// U3 entry is reported (U3C).
        U3_ENTRY = 0x0001 => "U3 entry",
        /// Configure Endpoint may fail for exit latency (CMC).
        MAX_EXIT_LATENCY_TOO_LARGE = 0x0002 => "max exit latency check",
        /// Save can be forced (FSC).
        FORCE_SAVE = 0x0004 => "force save",
        /// Compliance mode is entered when asked (CTC).
        COMPLIANCE_TRANSITION = 0x0008 => "compliance transition",
        /// Large ESIT payloads (LEC).
        LARGE_INTERVAL_PAYLOAD = 0x0010 => "large ESIT payload",
        /// Configuration values are wanted in input contexts (CIC).
        CONFIGURATION_INFORMATION = 0x0020 => "configuration information",
        /// Extended TBC (ETC).
        EXTENDED_BURST_COUNT = 0x0040 => "extended TBC",
    }
}

/// The eight dwords at the beginning of a controller's registers.
///
/// ```text
///  0      CAPLENGTH                               8..12  HCSPARAMS2
///  1      reserved                               12..16  HCSPARAMS3
///  2..4   HCIVERSION                             16..20  HCCPARAMS1
///  4..8   HCSPARAMS1                             20..24  DBOFF, 24..28 RTSOFF, 28..32 HCCPARAMS2
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapabilityRegisters {
    /// Where the operational registers are (CAPLENGTH), in bytes.
    pub operational_offset: u8,
    /// Interface version in binary-coded decimal: 0096h, 0100h, 0110h, 0120h.
    #[doc(alias = "HCIVERSION")]
    pub version: u16,
    /// Device slots.
    pub slots: u8,
    /// Interrupters, 11 bits.
    pub interrupters: u16,
    /// Root ports.
    pub ports: u8,
    /// Isochronous scheduling threshold; as it came, 4 bits.
    pub isoch_threshold: u8,
    /// 2^n segments of an event ring at most; 4 bits.
    pub event_segments_exponent: u8,
    /// Pages of memory that the controller wants for itself; 10 bits.
    pub scratchpads: u16,
    /// Their content is wanted back when the controller is restored (SPR).
    pub scratchpad_restore: bool,
    /// Worst latency out of U1, in microseconds.
    pub u1_exit_latency_us: u8,
    /// Worst latency out of U2, in microseconds.
    pub u2_exit_latency_us: u16,
    /// Features.
    pub features: ControllerFeatures,
    /// MaxPSASize: a primary stream array has 2^(n+1) entries at most; 0 is no streams. 4 bits.
    pub primary_streams_exponent: u8,
    /// Where the first extended capability is, in dwords; 0 if there is none.
    #[doc(alias = "xECP")]
    pub extended_offset_dwords: u16,
    /// Where the doorbells are, in bytes; a multiple of 4.
    pub doorbell_offset: u32,
    /// Where the run-time registers are, in bytes; a multiple of 32.
    pub runtime_offset: u32,
    /// More features.
    pub more_features: MoreFeatures,
}

impl CapabilityRegisters {
    /// Bytes of the registers.
    pub const LEN: usize = 32;

    /// Decodes the registers; bytes past them are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let [first, hcs1, hcs2, hcs3, hcc1, doorbell, runtime, hcc2] = dwords::<8>(bytes)?;
        Ok(Self {
            operational_offset: field(first, 0, 8) as u8,
            version: field(first, 16, 16) as u16,
            slots: field(hcs1, 0, 8) as u8,
            interrupters: field(hcs1, 8, 11) as u16,
            ports: field(hcs1, 24, 8) as u8,
            isoch_threshold: field(hcs2, 0, 4) as u8,
            event_segments_exponent: field(hcs2, 4, 4) as u8,
            scratchpads: (field(hcs2, 21, 5) << 5 | field(hcs2, 27, 5)) as u16,
            scratchpad_restore: flag(hcs2, 26),
            u1_exit_latency_us: field(hcs3, 0, 8) as u8,
            u2_exit_latency_us: field(hcs3, 16, 16) as u16,
            features: ControllerFeatures::from(field(hcc1, 0, 12) as u16),
            primary_streams_exponent: field(hcc1, 12, 4) as u8,
            extended_offset_dwords: field(hcc1, 16, 16) as u16,
            doorbell_offset: doorbell >> 2 << 2,
            runtime_offset: runtime >> 5 << 5,
            more_features: MoreFeatures::from(field(hcc2, 0, 16) as u16),
        })
    }

    /// The registers, as a controller shows them.
    pub fn encode(&self) -> [u8; 32] {
        let scratchpads = u32::from(self.scratchpads);
        bytes_of(&[
            u32::from(self.operational_offset) | place(self.version.into(), 16, 16),
            u32::from(self.slots) | place(self.interrupters.into(), 8, 11) | place(self.ports.into(), 24, 8),
            place(self.isoch_threshold.into(), 0, 4)
                | place(self.event_segments_exponent.into(), 4, 4)
                | place(scratchpads >> 5, 21, 5)
                | bit(self.scratchpad_restore, 26)
                | place(scratchpads, 27, 5),
            u32::from(self.u1_exit_latency_us) | place(self.u2_exit_latency_us.into(), 16, 16),
            place(u16::from(self.features).into(), 0, 12)
                | place(self.primary_streams_exponent.into(), 12, 4)
                | place(self.extended_offset_dwords.into(), 16, 16),
            self.doorbell_offset >> 2 << 2,
            self.runtime_offset >> 5 << 5,
            u16::from(self.more_features).into(),
        ])
    }

    /// How much room contexts take.
    pub const fn context_size(&self) -> ContextSize {
        if self.features.has(ControllerFeatures::CONTEXT_64) {
            ContextSize::Bytes64
        } else {
            ContextSize::Bytes32
        }
    }

    /// Entries of the largest primary stream array, stream 0 counted; 0 if there are no streams.
    pub const fn primary_streams_max(&self) -> u32 {
        match self.primary_streams_exponent {
            0 => 0,
            exponent => 2 << exponent,
        }
    }

    /// Segments of the longest event ring.
    pub const fn event_segments_max(&self) -> u32 {
        1 << self.event_segments_exponent
    }
}

impl fmt::Display for CapabilityRegisters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, slots, ports, .. } = self;
        write!(f, "xHCI {:x}.{:02x}, {slots} slots, {ports} ports", version >> 8, version & 0xff)?;
        match self.primary_streams_max() {
            0 => f.write_str(", no streams"),
            streams => write!(f, ", {streams} primary streams"),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    /// As QEMU's qemu-xhci shows them: version 1.0, 64 slots, 16 interrupters, 8 ports, 256 primary streams.
    const QEMU: [u8; 32] = [
        0x40, 0x00, 0x00, 0x01, 0x40, 0x10, 0x00, 0x08, 0x0f, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, //
        0x81, 0x70, 0x08, 0x00, 0x00, 0x20, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    ];

    #[test]
    fn literal_bytes_both_ways() {
        let registers = CapabilityRegisters::decode(&QEMU).unwrap();
        assert_eq!((registers.operational_offset, registers.version), (0x40, 0x0100));
        assert_eq!((registers.slots, registers.interrupters, registers.ports), (64, 16, 8));
        assert_eq!(registers.primary_streams_max(), 256);
        assert_eq!(registers.extended_offset_dwords, 8);
        assert_eq!((registers.doorbell_offset, registers.runtime_offset), (0x2000, 0x1000));
        assert!(registers.features.has(ControllerFeatures::NO_SECONDARY_STREAMS));
        assert_eq!(registers.context_size(), ContextSize::Bytes32);
        assert_eq!(registers.event_segments_max(), 1);
        assert_eq!(registers.encode(), QEMU);
        assert_eq!(registers.to_string(), "xHCI 1.00, 64 slots, 8 ports, 256 primary streams");
    }

    #[test]
    fn scratchpads_are_in_two_parts() {
        let mut bytes = QEMU;
        bytes[8..12].copy_from_slice(&[0, 0, 0x20, 0x10]);
        let registers = CapabilityRegisters::decode(&bytes).unwrap();
        assert_eq!(registers.scratchpads, 0x22);
        assert_eq!(registers.encode(), bytes);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..32 {
            let error = DecodeError::Truncated { needed: 32, got: len };
            assert_eq!(CapabilityRegisters::decode(&QEMU[..len]), Err(error));
        }
    }

    proptest! {
        #[test]
        fn what_decodes_is_encoded_to_the_same_value(bytes: [u8; 32]) {
            let registers = CapabilityRegisters::decode(&bytes).unwrap();
            let _ = registers.to_string();
            prop_assert_eq!(CapabilityRegisters::decode(&registers.encode()), Ok(registers));
        }
    }
}
