//! Any command, decoded by the first bytes of its CDB.
//!
//! For dispatch in a device and for display of traffic. An unknown operation code and an unknown service action
//! are distinguished, because a unit answers them differently: INVALID COMMAND OPERATION CODE for the
//! first, INVALID FIELD IN CDB for the second.

use super::*;
use crate::DecodeError;
use crate::scsi::opcode::OperationCode;

macro_rules! commands {
    ($( $name:ident ),+ $(,)?) => {
        /// One of the commands that this crate knows.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Command {
            $( #[doc = concat!("[`", stringify!($name), "`].")] $name($name), )+
        }

        impl Command {
            /// Decodes whatever command `cdb` is.
            ///
            /// `Invalid` of the field `OPERATION CODE` or `SERVICE ACTION` is a command unknown here.
            pub fn decode(cdb: &[u8]) -> Result<Self, DecodeError> {
                $( if $name::FORMS.iter().any(|form| form.begins(cdb)) {
                    return $name::decode(cdb).map(Self::$name);
                } )+
                Err(Self::unknown(cdb, &[$( $name::FORMS ),+]))
            }

            /// Its name, without its fields.
            pub fn name(&self) -> &'static str {
                match self {
                    $( Self::$name(command) => command.name(), )+
                }
            }

            /// The names of all commands that are known here; of those that come in several lengths, each.
            pub fn names() -> impl Iterator<Item = &'static str> {
                [$( $name::FORMS ),+].into_iter().flatten().map(|form| form.name)
            }

            /// The CDB.
            pub fn encode(&self) -> Cdb {
                match self {
                    $( Self::$name(command) => command.encode(), )+
                }
            }

            /// The CDB USAGE DATA of REPORT SUPPORTED OPERATION CODES (SPC-5): see [`Inquiry::usage`].
            ///
            /// `service_action` counts only where the operation code has service actions. `None` if there
            /// is no such command here.
            pub fn usage(opcode: u8, service_action: u8) -> Option<Cdb> {
                let begin = [opcode, service_action];
                $( if $name::FORMS.iter().any(|form| form.begins(&begin)) {
                    return $name::usage(opcode).map(|usage| usage.with_action(opcode, service_action));
                } )+
                None
            }
        }

        $( impl From<$name> for Command {
            fn from(command: $name) -> Self {
                Self::$name(command)
            }
        } )+

        impl fmt::Display for Command {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $( Self::$name(command) => command.fmt(f), )+
                }
            }
        }
    };
}

// The busiest first: decoding asks from the top.
commands! {
    Read, Write, SynchronizeCache, Unmap, TestUnitReady, RequestSense, Inquiry, ReportLuns,
    ReadCapacity10, ReadCapacity16, GetLbaStatus, ModeSense, ModeSelect, LogSense, LogSelect,
    StartStopUnit, PreventAllowMediumRemoval, Verify, WriteAndVerify, WriteSame, CompareAndWrite,
    OrWrite, WriteAtomic, PreFetch, AtaPassThrough, ReportSupportedOperationCodes,
    ReportSupportedTaskManagementFunctions, PersistentReserveIn, PersistentReserveOut, Reserve, Release,
    Sanitize, FormatUnit, ReadDefectData, ReadBuffer, WriteBuffer, SendDiagnostic,
    ReceiveDiagnosticResults, ThirdPartyCopyIn, ThirdPartyCopyOut, GetEventStatusNotification,
    GetConfiguration, ReadToc, ReadCd, ReadDiscInformation, ReadTrackInformation, ReadDiscStructure,
    ReadFormatCapacities, GetPerformance, MechanismStatus, SetCdSpeed,
}

impl Command {
    fn unknown(cdb: &[u8], known: &[&[field::Form]]) -> DecodeError {
        let Some(opcode) = cdb.first() else {
            return DecodeError::Truncated { needed: CdbWidth::Six.len(), got: 0 };
        };
        match cdb.get(1) {
            Some(second) if known.iter().any(|forms| forms.iter().any(|form| form.opcode == *opcode)) => {
                DecodeError::Invalid { field: "SERVICE ACTION", value: (second & 0x1f).into() }
            }
            _ => DecodeError::Invalid { field: "OPERATION CODE", value: (*opcode).into() },
        }
    }
}

impl Cdb {
    /// A usage map with the service action itself in place of its bits, where there is one.
    fn with_action(mut self, opcode: u8, action: u8) -> Self {
        if let (true, Some(second)) =
            (OperationCode::from(opcode).has_service_action(), self.padded.get_mut(1))
        {
            *second = *second & !0x1f | action & 0x1f;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;
    use std::vec::Vec;

    /// Every operation code that is a command here, with a service action where it needs one.
    fn beginnings() -> Vec<[u8; 2]> {
        let all = (0..=u8::MAX).flat_map(|opcode| (0..32).map(move |action| [opcode, action]));
        all.filter(|[opcode, action]| Command::usage(*opcode, *action).is_some()).collect()
    }

    #[test]
    fn a_cdb_is_taken_for_what_it_says() {
        let read = Read { lba: 1, blocks: 2, ..Read::default() };
        assert_eq!(Command::decode(&[0x28, 0, 0, 0, 0, 1, 0, 0, 2, 0]), Ok(read.into()));
        assert_eq!(Command::from(read).encode(), read.encode());
        assert_eq!(Command::from(read).to_string(), "READ(10) lba 1 blocks 2");
        let capacity = [0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0];
        assert!(matches!(Command::decode(&capacity), Ok(Command::ReadCapacity16(_))));
    }

    #[test]
    fn a_command_has_one_name() {
        let names: Vec<_> = Command::names().collect();
        for [opcode, action] in beginnings() {
            let mut cdb = [0; 16];
            [cdb[0], cdb[1]] = [opcode, action];
            let command = Command::decode(&cdb).unwrap();
            assert!(names.contains(&command.name()) && command.to_string().starts_with(command.name()));
            let code = OperationCode::from(opcode);
            assert!(code.has_service_action() || code.to_string() == command.name(), "{code}: {command}");
        }
        let capacity = [0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0];
        assert_eq!(Command::decode(&capacity).unwrap().name(), "READ CAPACITY(16)");
    }

    #[test]
    fn unknown_codes_and_unknown_service_actions_are_distinguished() {
        let opcode = DecodeError::Invalid { field: "OPERATION CODE", value: 0xc1 };
        assert_eq!(Command::decode(&[0xc1; 16]), Err(opcode));
        let mut cdb = [0; 16];
        [cdb[0], cdb[1]] = [0x9e, 0xff];
        let action = DecodeError::Invalid { field: "SERVICE ACTION", value: 0x1f };
        assert_eq!(Command::decode(&cdb), Err(action));
    }

    #[test]
    fn what_is_cut_off_is_truncated_and_not_unknown() {
        assert_eq!(Command::decode(&[]), Err(DecodeError::Truncated { needed: 6, got: 0 }));
        assert_eq!(Command::decode(&[0x9e]), Err(DecodeError::Truncated { needed: 16, got: 1 }));
        assert_eq!(Command::decode(&[0x28; 9]), Err(DecodeError::Truncated { needed: 10, got: 9 }));
    }

    #[test]
    fn a_usage_map_holds_the_service_action_asked_for() {
        let preempt = Command::usage(0x5f, 0x04).unwrap();
        assert_eq!(preempt[..], [0x5f, 0x04, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x04]);
        let capacity = Command::usage(0x9e, 0x10).unwrap();
        assert_eq!(capacity[..2], [0x9e, 0x10]);
        assert_eq!(Command::usage(0x28, 0x1f).unwrap()[..2], [0x28, 0xfc]);
        assert_eq!(Command::usage(0x9e, 0x11), None);
        assert_eq!(Command::usage(0xff, 0), None);
    }

    #[test]
    fn every_length_agrees_with_the_group_code() {
        for [opcode, action] in beginnings() {
            let usage = Command::usage(opcode, action).unwrap();
            assert_eq!(OperationCode::from(opcode).cdb_len(), Some(usage.len()), "{opcode:#04x}");
        }
    }

    #[test]
    fn every_name_agrees_with_the_operation_code() {
        for [opcode, action] in beginnings() {
            let mut cdb = [0; 16];
            [cdb[0], cdb[1]] = [opcode, action];
            let text = Command::decode(&cdb).unwrap().to_string();
            let code = OperationCode::from(opcode);
            let has_own_name =
                matches!(code, OperationCode::MaintenanceIn | OperationCode::ServiceActionIn16);
            assert!(has_own_name || text.starts_with(&code.to_string()), "{text:?} is {code}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_say_why(cdb in prop::collection::vec(any::<u8>(), 0..20)) {
            let _ = Command::decode(&cdb).map(|command| command.to_string());
        }

        #[test]
        fn every_bit_with_a_meaning_survives(
            begin in prop::sample::select(beginnings()), rest: [u8; 14], upper in 0u8..8,
        ) {
            let [opcode, action] = begin;
            let mut cdb = [0; 16];
            cdb[2..].copy_from_slice(&rest);
            [cdb[0], cdb[1]] = [opcode, upper << 5 | action];
            let command = Command::decode(&cdb).unwrap();
            let encoded = command.encode();
            prop_assert_eq!(Command::decode(&encoded), Ok(command));

            let mut meaningful = Command::usage(opcode, action).unwrap();
            meaningful.padded[0] = 0xff;
            meaningful.padded[1] |= if OperationCode::from(opcode).has_service_action() { 0x1f } else { 0 };
            meaningful.padded[encoded.len() - 1] = 0xff;
            for (at, byte) in encoded.iter().enumerate() {
                prop_assert_eq!(*byte, cdb[at] & meaningful[at], "byte {} of {}", at, command);
            }
        }
    }
}
