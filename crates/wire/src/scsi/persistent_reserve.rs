//! PERSISTENT RESERVE IN parameter data and PERSISTENT RESERVE OUT parameter lists (SPC-5).
//!
//! Transport identifiers stay bytes: they identify a key's holder, but what they say is the transport's.
//! UAS defines none; a target chooses them (PROTOCOL IDENTIFIER 9h).

use super::cdb::ReservationType;
use super::layout::{be16, be32, be64, bit, bits, set_bit, set_bits};
use crate::{DecodeError, NoRoom, Reader, Writer};
use core::fmt;

/// READ KEYS: the generation, then eight bytes per registered key.
///
/// ```text
///  0..4   PRGENERATION    4..8  additional length    8..  keys
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservationKeys<'a> {
    /// PRGENERATION: counts the changes of registrations.
    pub generation: u32,
    /// ADDITIONAL LENGTH: bytes of all keys, also of those that were cut.
    pub additional_length: u32,
    keys: &'a [[u8; 8]],
}

impl<'a> ReservationKeys<'a> {
    /// Decodes a list, whole or cut by the allocation length.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let (generation, additional_length, list) = split(bytes)?;
        Ok(Self { generation, additional_length, keys: list.as_chunks().0 })
    }

    /// The keys that are here, one by one.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = u64> + 'a {
        self.keys.iter().map(|key| u64::from_be_bytes(*key))
    }

    /// Writes a list of `keys`; the answer is the bytes written.
    pub fn encode_list(
        generation: u32,
        keys: impl IntoIterator<Item = u64>,
        out: &mut [u8],
    ) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out);
        writer.be32(generation)?;
        writer.be32(0)?;
        for key in keys {
            writer.be64(key)?;
        }
        finish(writer)
    }
}

/// READ RESERVATION: the generation, and the reservation if there is one.
///
/// ```text
///  0..4   PRGENERATION           8..16  reservation key
///  4..8   additional length     21      scope (7:4), type (3:0)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadReservation {
    /// PRGENERATION.
    pub generation: u32,
    /// The reservation.
    pub held: Option<HeldReservation>,
}

/// A reservation that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldReservation {
    /// RESERVATION KEY of the holder; 0 for the all registrants types.
    pub key: u64,
    /// SCOPE, four bits: 0 is the logical unit, the only one left.
    pub scope: u8,
    /// TYPE.
    pub reservation_type: ReservationType,
}

impl ReadReservation {
    /// Bytes with a reservation; without one there are eight.
    pub const LEN_MAX: usize = 24;

    /// Decodes the answer.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let (generation, length) = (reader.be32()?, reader.be32()?);
        if length == 0 {
            return Ok(Self { generation, held: None });
        }
        let held: [u8; 16] = reader.array()?;
        Ok(Self {
            generation,
            held: Some(HeldReservation {
                key: be64::<0, _>(&held),
                scope: bits::<7, 4>(held[13]),
                reservation_type: bits::<3, 0>(held[13]).into(),
            }),
        })
    }

    /// Writes the answer; the answer of the function is the bytes written: 8 or 24.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out);
        writer.be32(self.generation)?;
        writer.be32(if self.held.is_some() { 16 } else { 0 })?;
        if let Some(held) = &self.held {
            writer.be64(held.key)?;
            writer.zeroes(5)?;
            writer.u8(scope_and_type(held.scope, held.reservation_type))?;
            writer.zeroes(2)?;
        }
        Ok(writer.written())
    }
}

/// REPORT CAPABILITIES: what of persistent reservations is supported.
///
/// ```text
///  0..2   length (8)
///  2      RLR_C (7), CRH (4), SIP_C (3), ATP_C (2), PTPL_C (0)
///  3      TMV (7), allow commands (6:4), PTPL_A (0)
///  4..6   type mask
///  6..8   reserved
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReservationCapabilities {
    /// REPLACE LOST RESERVATION is supported.
    #[doc(alias = "RLR_C")]
    pub replace_lost: bool,
    /// RESERVE(6) and RELEASE(6) are handled as SPC-2 exceptions.
    #[doc(alias = "CRH")]
    pub compatible_reservations: bool,
    /// SPEC_I_PT is supported.
    #[doc(alias = "SIP_C")]
    pub specify_initiator_ports: bool,
    /// ALL_TG_PT is supported.
    #[doc(alias = "ATP_C")]
    pub all_target_ports: bool,
    /// APTPL is supported: reservations can outlive a power loss.
    #[doc(alias = "PTPL_C")]
    pub persist_through_power_loss: bool,
    /// ALLOW COMMANDS, three bits: which commands pass a reservation.
    pub allow_commands: u8,
    /// APTPL is in force.
    #[doc(alias = "PTPL_A")]
    pub persist_through_power_loss_active: bool,
    /// PERSISTENT RESERVATION TYPE MASK, if TMV says that it counts.
    #[doc(alias = "TMV")]
    pub types: Option<ReservationTypes>,
}

/// The reservation types that are supported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReservationTypes {
    /// WR_EX.
    pub write_exclusive: bool,
    /// EX_AC.
    pub exclusive_access: bool,
    /// WR_EX_RO.
    pub write_exclusive_registrants_only: bool,
    /// EX_AC_RO.
    pub exclusive_access_registrants_only: bool,
    /// WR_EX_AR.
    pub write_exclusive_all_registrants: bool,
    /// EX_AC_AR.
    pub exclusive_access_all_registrants: bool,
}

impl ReservationTypes {
    /// All six.
    pub const ALL: Self = Self {
        write_exclusive: true,
        exclusive_access: true,
        write_exclusive_registrants_only: true,
        exclusive_access_registrants_only: true,
        write_exclusive_all_registrants: true,
        exclusive_access_all_registrants: true,
    };
}

impl ReservationCapabilities {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// Decodes the first eight bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let whole = bytes
            .first_chunk::<{ Self::LEN }>()
            .ok_or(DecodeError::Truncated { needed: Self::LEN, got: bytes.len() })?;
        let types = ReservationTypes {
            write_exclusive_all_registrants: bit::<7>(whole[4]),
            exclusive_access_registrants_only: bit::<6>(whole[4]),
            write_exclusive_registrants_only: bit::<5>(whole[4]),
            exclusive_access: bit::<3>(whole[4]),
            write_exclusive: bit::<1>(whole[4]),
            exclusive_access_all_registrants: bit::<0>(whole[5]),
        };
        Ok(Self {
            replace_lost: bit::<7>(whole[2]),
            compatible_reservations: bit::<4>(whole[2]),
            specify_initiator_ports: bit::<3>(whole[2]),
            all_target_ports: bit::<2>(whole[2]),
            persist_through_power_loss: bit::<0>(whole[2]),
            allow_commands: bits::<6, 4>(whole[3]),
            persist_through_power_loss_active: bit::<0>(whole[3]),
            types: bit::<7>(whole[3]).then_some(types),
        })
    }

    /// The eight bytes on the wire.
    pub fn encode(&self) -> [u8; 8] {
        let types = self.types.unwrap_or_default();
        let flags = set_bit::<7>(self.replace_lost)
            | set_bit::<4>(self.compatible_reservations)
            | set_bit::<3>(self.specify_initiator_ports)
            | set_bit::<2>(self.all_target_ports)
            | set_bit::<0>(self.persist_through_power_loss);
        let more = set_bit::<7>(self.types.is_some())
            | set_bits::<6, 4>(self.allow_commands)
            | set_bit::<0>(self.persist_through_power_loss_active);
        let mask = set_bit::<7>(types.write_exclusive_all_registrants)
            | set_bit::<6>(types.exclusive_access_registrants_only)
            | set_bit::<5>(types.write_exclusive_registrants_only)
            | set_bit::<3>(types.exclusive_access)
            | set_bit::<1>(types.write_exclusive);
        let mask_high = set_bit::<0>(types.exclusive_access_all_registrants);
        [0, 8, flags, more, mask, mask_high, 0, 0]
    }
}

/// READ FULL STATUS: the generation, then a descriptor for each registered I_T nexus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FullStatus<'a> {
    /// PRGENERATION.
    pub generation: u32,
    /// ADDITIONAL LENGTH: bytes of all descriptors, also of those that were cut.
    pub additional_length: u32,
    descriptors: &'a [u8],
}

/// One registered I_T nexus.
///
/// ```text
///  0..8   reservation key                13      scope (7:4), type (3:0), if R_HOLDER
/// 12      ALL_TG_PT (1), R_HOLDER (0)    18..20  relative target port identifier
///                                        20..24  additional descriptor length
///                                        24..    transport identifier
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FullStatusDescriptor<'a> {
    /// RESERVATION KEY.
    pub key: u64,
    /// The registration counts for all target ports.
    #[doc(alias = "ALL_TG_PT")]
    pub all_target_ports: bool,
    /// SCOPE and TYPE of the reservation, if this nexus holds it.
    #[doc(alias = "R_HOLDER")]
    pub holds: Option<(u8, ReservationType)>,
    /// RELATIVE TARGET PORT IDENTIFIER.
    pub relative_target_port: u16,
    /// TRANSPORTID of the initiator port, as bytes.
    pub transport_id: &'a [u8],
}

impl<'a> FullStatus<'a> {
    /// Decodes a list, whole or cut by the allocation length.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let (generation, additional_length, descriptors) = split(bytes)?;
        Ok(Self { generation, additional_length, descriptors })
    }

    /// The descriptors, one by one; one that is cut short ends them with an error.
    pub fn iter(&self) -> impl Iterator<Item = Result<FullStatusDescriptor<'a>, DecodeError>> + 'a {
        let mut reader = Reader::new(self.descriptors);
        let mut failed = false;
        core::iter::from_fn(move || {
            if failed || reader.rest().is_empty() {
                return None;
            }
            let descriptor = FullStatusDescriptor::read(&mut reader);
            failed = descriptor.is_err();
            Some(descriptor)
        })
    }

    /// Writes a list of `descriptors`; the answer is the bytes written.
    pub fn encode_list<'d>(
        generation: u32,
        descriptors: impl IntoIterator<Item = FullStatusDescriptor<'d>>,
        out: &mut [u8],
    ) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out);
        writer.be32(generation)?;
        writer.be32(0)?;
        for descriptor in descriptors {
            descriptor.put(&mut writer)?;
        }
        finish(writer)
    }
}

impl<'a> FullStatusDescriptor<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let head: [u8; 24] = reader.array()?;
        let holds = (bits::<7, 4>(head[13]), ReservationType::from(bits::<3, 0>(head[13])));
        let length = usize::try_from(be32::<20, _>(&head)).unwrap_or(usize::MAX);
        Ok(Self {
            key: be64::<0, _>(&head),
            all_target_ports: bit::<1>(head[12]),
            holds: bit::<0>(head[12]).then_some(holds),
            relative_target_port: be16::<18, _>(&head),
            transport_id: reader.slice(length)?,
        })
    }

    fn put(&self, writer: &mut Writer<'_>) -> Result<(), NoRoom> {
        let length = length_32(self.transport_id.len())?;
        let holds = self.holds.map_or(0, |(scope, held)| scope_and_type(scope, held));
        writer.be64(self.key)?;
        writer.zeroes(4)?;
        writer.u8(set_bit::<1>(self.all_target_ports) | set_bit::<0>(self.holds.is_some()))?;
        writer.u8(holds)?;
        writer.zeroes(4)?;
        writer.be16(self.relative_target_port)?;
        writer.be32(length)?;
        writer.put(self.transport_id)
    }
}

/// The parameter list of every PERSISTENT RESERVE OUT but REGISTER AND MOVE.
///
/// ```text
///  0..8   reservation key                   16..20  obsolete
///  8..16  service action reservation key    20      SPEC_I_PT (3), ALL_TG_PT (2), APTPL (0)
///                                           24..    transport identifiers, if SPEC_I_PT
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PersistentReserveOutList<'a> {
    /// RESERVATION KEY: the sender's.
    pub key: u64,
    /// SERVICE ACTION RESERVATION KEY: the new key, or the key to preempt.
    pub service_action_key: u64,
    /// The registration is for all target ports.
    #[doc(alias = "ALL_TG_PT")]
    pub all_target_ports: bool,
    /// Registrations and reservations outlive a power loss.
    #[doc(alias = "APTPL")]
    pub persist_through_power_loss: bool,
    /// Transport identifiers of the initiator ports to register, if SPEC_I_PT says that they are there.
    #[doc(alias = "SPEC_I_PT")]
    pub transport_ids: Option<&'a [u8]>,
}

impl<'a> PersistentReserveOutList<'a> {
    /// Bytes without transport identifiers.
    pub const LEN: usize = 24;

    /// Decodes the list.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let head: [u8; 24] = reader.array()?;
        let transport_ids = if bit::<3>(head[20]) {
            let length = usize::try_from(reader.be32()?).unwrap_or(usize::MAX);
            Some(reader.slice(length)?)
        } else {
            None
        };
        Ok(Self {
            key: be64::<0, _>(&head),
            service_action_key: be64::<8, _>(&head),
            all_target_ports: bit::<2>(head[20]),
            persist_through_power_loss: bit::<0>(head[20]),
            transport_ids,
        })
    }

    /// Writes the list; the answer is the bytes written.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out);
        writer.be64(self.key)?;
        writer.be64(self.service_action_key)?;
        writer.zeroes(4)?;
        let flags = set_bit::<3>(self.transport_ids.is_some())
            | set_bit::<2>(self.all_target_ports)
            | set_bit::<0>(self.persist_through_power_loss);
        writer.put(&[flags, 0, 0, 0])?;
        if let Some(ids) = self.transport_ids {
            writer.be32(length_32(ids.len())?)?;
            writer.put(ids)?;
        }
        Ok(writer.written())
    }
}

/// The parameter list of REGISTER AND MOVE.
///
/// ```text
///  0..8   reservation key                   17      UNREG (1), APTPL (0)
///  8..16  service action reservation key    18..20  relative target port identifier
///                                           20..24  transport identifier length
///                                           24..    transport identifier
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterAndMoveList<'a> {
    /// RESERVATION KEY: the sender's.
    pub key: u64,
    /// SERVICE ACTION RESERVATION KEY: the new holder's.
    pub service_action_key: u64,
    /// The sender is unregistered.
    #[doc(alias = "UNREG")]
    pub unregister: bool,
    /// Registrations and reservations outlive a power loss.
    #[doc(alias = "APTPL")]
    pub persist_through_power_loss: bool,
    /// RELATIVE TARGET PORT IDENTIFIER of the new nexus.
    pub relative_target_port: u16,
    /// TRANSPORTID of the new holder's initiator port, as bytes.
    pub transport_id: &'a [u8],
}

impl<'a> RegisterAndMoveList<'a> {
    /// Bytes without the transport identifier.
    pub const HEADER_LEN: usize = 24;

    /// Decodes the list.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let head: [u8; 24] = reader.array()?;
        let length = usize::try_from(be32::<20, _>(&head)).unwrap_or(usize::MAX);
        Ok(Self {
            key: be64::<0, _>(&head),
            service_action_key: be64::<8, _>(&head),
            unregister: bit::<1>(head[17]),
            persist_through_power_loss: bit::<0>(head[17]),
            relative_target_port: be16::<18, _>(&head),
            transport_id: reader.slice(length)?,
        })
    }

    /// Writes the list; the answer is the bytes written.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out);
        writer.be64(self.key)?;
        writer.be64(self.service_action_key)?;
        let flags = set_bit::<1>(self.unregister) | set_bit::<0>(self.persist_through_power_loss);
        writer.put(&[0, flags])?;
        writer.be16(self.relative_target_port)?;
        writer.be32(length_32(self.transport_id.len())?)?;
        writer.put(self.transport_id)?;
        Ok(writer.written())
    }
}

/// Generation, additional length, and as much of the rest as there is and counts.
fn split(bytes: &[u8]) -> Result<(u32, u32, &[u8]), DecodeError> {
    let mut reader = Reader::new(bytes);
    let (generation, length) = (reader.be32()?, reader.be32()?);
    let said = usize::try_from(length).unwrap_or(usize::MAX);
    Ok((generation, length, reader.rest().get(..said).unwrap_or(reader.rest())))
}

/// Writes ADDITIONAL LENGTH; the answer is the bytes written.
fn finish(mut writer: Writer<'_>) -> Result<usize, NoRoom> {
    let total = writer.written();
    writer.patch(4, &length_32(total - 8)?.to_be_bytes())?;
    Ok(total)
}

fn length_32(len: usize) -> Result<u32, NoRoom> {
    u32::try_from(len).map_err(|_| NoRoom { needed: len, got: usize::MAX })
}

fn scope_and_type(scope: u8, reservation_type: ReservationType) -> u8 {
    set_bits::<7, 4>(scope) | set_bits::<3, 0>(reservation_type.into())
}

impl fmt::Display for ReservationCapabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.persist_through_power_loss, self.persist_through_power_loss_active) {
            (_, true) => "reservations outlive power",
            (true, false) => "reservations can outlive power",
            (false, false) => "reservations end with power",
        })
    }
}

impl fmt::Display for PersistentReserveOutList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key {:#x}, service action key {:#x}", self.key, self.service_action_key)
    }
}

impl fmt::Display for RegisterAndMoveList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, service_action_key, relative_target_port, .. } = self;
        write!(f, "key {key:#x}, service action key {service_action_key:#x}, to port {relative_target_port}")
    }
}

impl fmt::Display for ReadReservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.held {
            Some(held) => write!(f, "{} by key {:016x}", held.reservation_type, held.key),
            None => f.write_str("no reservation"),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;
    use std::vec::Vec;

    #[test]
    fn keys_both_ways() {
        let bytes = [0, 0, 0, 7, 0, 0, 0, 16, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 9];
        let keys = ReservationKeys::decode(&bytes).unwrap();
        assert_eq!((keys.generation, keys.additional_length), (7, 16));
        assert!(keys.keys().eq([0x0102_0304_0506_0708, 9]));
        let mut out = [0xff; 24];
        assert_eq!(ReservationKeys::encode_list(7, keys.keys(), &mut out), Ok(24));
        assert_eq!(out, bytes);
        let cut = ReservationKeys::decode(&bytes[..20]).unwrap();
        assert_eq!((cut.additional_length, cut.keys().len()), (16, 1));
        for got in 0..8 {
            assert!(matches!(ReservationKeys::decode(&bytes[..got]), Err(DecodeError::Truncated { .. })));
        }
    }

    #[test]
    fn a_reservation_both_ways() {
        let bytes = [0, 0, 0, 3, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0xab, 0xcd, 0, 0, 0, 0, 0, 0x05, 0, 0];
        let held = HeldReservation {
            key: 0xabcd,
            scope: 0,
            reservation_type: ReservationType::WriteExclusiveRegistrantsOnly,
        };
        let answer = ReadReservation { generation: 3, held: Some(held) };
        assert_eq!(ReadReservation::decode(&bytes), Ok(answer));
        let mut out = [0xff; 24];
        assert_eq!(answer.encode(&mut out), Ok(24));
        assert_eq!(out, bytes);
        assert_eq!(answer.to_string(), "write exclusive - registrants only by key 000000000000abcd");
        for got in 0..24 {
            assert!(matches!(ReadReservation::decode(&bytes[..got]), Err(DecodeError::Truncated { .. })));
        }
    }

    #[test]
    fn no_reservation_is_eight_bytes() {
        let answer = ReadReservation { generation: 3, held: None };
        assert_eq!(ReadReservation::decode(&[0, 0, 0, 3, 0, 0, 0, 0]), Ok(answer));
        let mut out = [0xff; 24];
        assert_eq!(answer.encode(&mut out), Ok(8));
        assert_eq!(out[..8], [0, 0, 0, 3, 0, 0, 0, 0]);
    }

    #[test]
    fn capabilities_both_ways() {
        let bytes = [0x00, 0x08, 0x15, 0x91, 0xea, 0x01, 0, 0];
        let capabilities = ReservationCapabilities {
            compatible_reservations: true,
            all_target_ports: true,
            persist_through_power_loss: true,
            allow_commands: 1,
            persist_through_power_loss_active: true,
            types: Some(ReservationTypes::ALL),
            ..ReservationCapabilities::default()
        };
        assert_eq!(ReservationCapabilities::decode(&bytes), Ok(capabilities));
        assert_eq!(capabilities.encode(), bytes);
        let error = DecodeError::Truncated { needed: 8, got: 7 };
        assert_eq!(ReservationCapabilities::decode(&bytes[..7]), Err(error));
    }

    #[test]
    fn full_status_both_ways() {
        let mut bytes = [0, 0, 0, 9, 0, 0, 0, 0x34].to_vec();
        bytes.extend([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0x01, 0x03, 0, 0, 0, 0, 0, 1, 0, 0, 0, 4]);
        bytes.extend([0x09, 1, 2, 3]);
        bytes.extend([0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0x02, 0x00, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
        let expected = [
            FullStatusDescriptor {
                key: 1,
                all_target_ports: false,
                holds: Some((0, ReservationType::ExclusiveAccess)),
                relative_target_port: 1,
                transport_id: &[0x09, 1, 2, 3],
            },
            FullStatusDescriptor {
                key: 2,
                all_target_ports: true,
                holds: None,
                relative_target_port: 1,
                transport_id: &[],
            },
        ];
        let status = FullStatus::decode(&bytes).unwrap();
        assert_eq!(status.generation, 9);
        let found: Vec<_> = status.iter().map(Result::unwrap).collect();
        assert_eq!(found, expected);
        let mut out = [0xff; 60];
        assert_eq!(FullStatus::encode_list(9, expected, &mut out), Ok(60));
        assert_eq!(out[..], bytes);
        let cut: Vec<_> = FullStatus::decode(&bytes[..40]).unwrap().iter().collect();
        assert_eq!(cut[1], Err(DecodeError::Truncated { needed: 52, got: 32 }));
    }

    #[test]
    fn the_basic_list_both_ways() {
        let bytes = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0x05, 0, 0, 0];
        let list = PersistentReserveOutList {
            key: 1,
            service_action_key: 2,
            all_target_ports: true,
            persist_through_power_loss: true,
            transport_ids: None,
        };
        assert_eq!(PersistentReserveOutList::decode(&bytes), Ok(list));
        let mut out = [0xff; 24];
        assert_eq!(list.encode(&mut out), Ok(24));
        assert_eq!(out, bytes);
        for got in 0..24 {
            let error = DecodeError::Truncated { needed: 24, got };
            assert_eq!(PersistentReserveOutList::decode(&bytes[..got]), Err(error));
        }
    }

    #[test]
    fn transport_ids_follow_if_they_are_announced() {
        let mut bytes = [0; 32];
        bytes[20] = 0x08;
        bytes[27] = 4;
        bytes[28] = 0x09;
        let list = PersistentReserveOutList::decode(&bytes).unwrap();
        assert_eq!(list.transport_ids, Some(&[0x09, 0, 0, 0][..]));
        let mut out = [0xff; 32];
        assert_eq!(list.encode(&mut out), Ok(32));
        assert_eq!(out, bytes);
        let error = DecodeError::Truncated { needed: 32, got: 31 };
        assert_eq!(PersistentReserveOutList::decode(&bytes[..31]), Err(error));
    }

    #[test]
    fn register_and_move_both_ways() {
        let bytes = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 3, 0, 5, 0, 0, 0, 2, 0x09, 0xaa];
        let list = RegisterAndMoveList {
            key: 1,
            service_action_key: 2,
            unregister: true,
            persist_through_power_loss: true,
            relative_target_port: 5,
            transport_id: &[0x09, 0xaa],
        };
        assert_eq!(RegisterAndMoveList::decode(&bytes), Ok(list));
        let mut out = [0xff; 26];
        assert_eq!(list.encode(&mut out), Ok(26));
        assert_eq!(out, bytes);
        let error = DecodeError::Truncated { needed: 26, got: 25 };
        assert_eq!(RegisterAndMoveList::decode(&bytes[..25]), Err(error));
    }

    proptest! {
        #[test]
        fn what_decodes_round_trips(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut out = [0; 120];
            if let Ok(list) = PersistentReserveOutList::decode(&bytes) {
                let len = list.encode(&mut out).unwrap();
                prop_assert_eq!(PersistentReserveOutList::decode(&out[..len]), Ok(list));
            }
            if let Ok(status) = FullStatus::decode(&bytes) {
                prop_assert!(status.iter().flatten().count() <= 3);
            }
            if let Ok(capabilities) = ReservationCapabilities::decode(&bytes) {
                prop_assert_eq!(ReservationCapabilities::decode(&capabilities.encode()), Ok(capabilities));
            }
        }
    }
}
