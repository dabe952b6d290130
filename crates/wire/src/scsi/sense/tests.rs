//! Tests of sense data.

extern crate std;
use super::*;
use proptest::prelude::*;
use std::string::ToString;
use std::vec::Vec;

/// INVALID FIELD IN CDB at bit 3 of byte 1, fixed.
const FIXED_FIELD_POINTER: [u8; 18] =
    [0x70, 0, 0x05, 0, 0, 0, 0, 0x0a, 0, 0, 0, 0, 0x24, 0x00, 0, 0xcb, 0x00, 0x01];

/// The same in descriptors.
const DESCRIPTOR_FIELD_POINTER: [u8; 16] =
    [0x72, 0x05, 0x24, 0x00, 0, 0, 0, 0x08, 0x02, 0x06, 0, 0, 0xcb, 0x00, 0x01, 0];

const REGISTERS: AtaStatusReturn = AtaStatusReturn {
    extend: true,
    error: 0x04,
    count: 0x0102,
    lba: 0x0605_0403_0201,
    device: 0x40,
    status: 0x51,
};

fn encoded(sense: &Sense, format: SenseFormat) -> Vec<u8> {
    let mut out = [0xaa; 252];
    let len = sense.encode(format, &mut out).unwrap();
    out[..len].to_vec()
}

#[test]
fn a_field_pointer_both_ways_in_both_formats() {
    let sense = Sense::invalid_field_in_cdb(1, Some(3));
    assert_eq!(encoded(&sense, SenseFormat::Fixed), FIXED_FIELD_POINTER);
    assert_eq!(encoded(&sense, SenseFormat::Descriptor), DESCRIPTOR_FIELD_POINTER);
    assert_eq!(Sense::decode(&FIXED_FIELD_POINTER), Ok(sense));
    assert_eq!(Sense::decode(&DESCRIPTOR_FIELD_POINTER), Ok(sense));
    assert_eq!(sense.to_string(), "ILLEGAL REQUEST, INVALID FIELD IN CDB, CDB byte 1 bit 3");
}

#[test]
fn a_medium_error_names_its_block() {
    let sense = Sense::medium_error(AdditionalSense::UNRECOVERED_READ_ERROR, 0x1122_3344);
    let fixed = [0xf0, 0, 0x03, 0x11, 0x22, 0x33, 0x44, 0x0a, 0, 0, 0, 0, 0x11, 0x00, 0, 0, 0, 0];
    let descriptor =
        [0x72, 0x03, 0x11, 0, 0, 0, 0, 0x0c, 0x00, 0x0a, 0x80, 0, 0, 0, 0, 0, 0x11, 0x22, 0x33, 0x44];
    assert_eq!(encoded(&sense, SenseFormat::Fixed), fixed);
    assert_eq!(encoded(&sense, SenseFormat::Descriptor), descriptor);
    assert_eq!(Sense::decode(&fixed), Ok(sense));
    assert_eq!(Sense::decode(&descriptor), Ok(sense));
}

#[test]
fn a_block_past_32_bits_is_named_in_descriptors_only() {
    let sense = Sense::medium_error(AdditionalSense::WRITE_ERROR, 0x1_0000_0000);
    let fixed = encoded(&sense, SenseFormat::Fixed);
    assert_eq!(fixed[..7], [0x70, 0, 0x03, 0, 0, 0, 0]);
    let descriptor = encoded(&sense, SenseFormat::Descriptor);
    assert_eq!(descriptor[8..], [0x00, 0x0a, 0x80, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
}

#[test]
fn an_information_descriptor_without_valid_says_nothing() {
    let bytes = [0x72, 0x03, 0x11, 0, 0, 0, 0, 0x0c, 0x00, 0x0a, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 7];
    assert_eq!(Sense::decode(&bytes).unwrap().information, None);
}

#[test]
fn every_descriptor_both_ways() {
    let sense = Sense {
        deferred: true,
        filemark: true,
        eom: true,
        ..Sense::not_ready(AdditionalSense::NOT_READY_SANITIZE_IN_PROGRESS)
            .with_information(1)
            .with_command_specific(2)
            .with_key_specific(KeySpecific::Progress(0x8000))
            .with_ata_return(REGISTERS)
    };
    let bytes = [
        0x73, 0x02, 0x04, 0x1b, 0, 0, 0, 0x32, // header
        0x00, 0x0a, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 1, // information
        0x01, 0x0a, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 2, // command specific
        0x02, 0x06, 0, 0, 0x80, 0x80, 0x00, 0, // sense key specific
        0x04, 0x02, 0, 0xc0, // stream commands
        0x09, 0x0c, 0x01, 0x04, 0x01, 0x02, 0x04, 0x01, 0x05, 0x02, 0x06, 0x03, 0x40, 0x51, // ATA
    ];
    assert_eq!(encoded(&sense, SenseFormat::Descriptor), bytes);
    assert_eq!(Sense::decode(&bytes), Ok(sense));
    assert_eq!(bytes.len(), Sense::DESCRIPTOR_LEN_MAX);
    assert_eq!(
        sense.to_string(),
        "NOT READY, LOGICAL UNIT NOT READY, SANITIZE IN PROGRESS, information 1, command specific 2, \
         progress 50 %, ATA status 0x51 error 0x04 count 258 lba 6618611909121 device 0x40, \
         deferred, filemark, EOM"
    );
}

#[test]
fn ata_registers_fill_both_fields_of_fixed_format() {
    let sense = Sense::new(SenseKey::RecoveredError, AdditionalSense::ATA_PASS_THROUGH_INFORMATION_AVAILABLE)
        .with_ata_return(REGISTERS);
    let fixed = [0xf0, 0, 0x01, 0x04, 0x51, 0x40, 0x02, 0x0a, 0xe0, 0x01, 0x02, 0x03, 0x00, 0x1d, 0, 0, 0, 0];
    assert_eq!(encoded(&sense, SenseFormat::Fixed), fixed);
}

#[test]
fn a_wrong_length_block_is_reported_without_a_tape() {
    let sense = Sense { ili: true, ..Sense::illegal_request(AdditionalSense::INVALID_FIELD_IN_CDB) };
    let descriptor = [0x72, 0x05, 0x24, 0, 0, 0, 0, 0x04, 0x05, 0x02, 0, 0x20];
    assert_eq!(encoded(&sense, SenseFormat::Descriptor), descriptor);
    assert_eq!(Sense::decode(&descriptor), Ok(sense));
    assert_eq!(encoded(&sense, SenseFormat::Fixed)[2], 0x25);
}

#[test]
fn a_truncated_fixed_sense_gives_what_is_there() {
    let whole = Sense::decode(&FIXED_FIELD_POINTER).unwrap();
    for len in 0..3 {
        let needed = if len == 0 { 1 } else { 3 };
        let error = Sense::decode(&FIXED_FIELD_POINTER[..len]).unwrap_err();
        assert_eq!(error, DecodeError::Truncated { needed, got: len });
    }
    for len in 3..18 {
        let sense = Sense::decode(&FIXED_FIELD_POINTER[..len]).unwrap();
        assert_eq!(sense.key, whole.key);
        assert_eq!(sense.additional.asc, if len > 12 { 0x24 } else { 0 }, "{len} bytes");
        assert_eq!(sense.key_specific, None);
    }
}

#[test]
fn a_truncated_descriptor_is_not_there() {
    let mut bytes = Vec::from(DESCRIPTOR_FIELD_POINTER);
    assert_eq!(Sense::decode(&bytes[..1]), Err(DecodeError::Truncated { needed: 2, got: 1 }));
    for len in 2..16 {
        let sense = Sense::decode(&bytes[..len]).unwrap();
        assert_eq!(sense.additional.asc, if len > 2 { 0x24 } else { 0 }, "{len} bytes");
        assert_eq!(sense.key_specific, None);
    }
    bytes[7] = 7; // the list ends within the descriptor
    assert_eq!(Sense::decode(&bytes).unwrap().key_specific, None);
}

#[test]
fn the_additional_sense_length_ends_fixed_sense() {
    let mut bytes = FIXED_FIELD_POINTER;
    bytes[7] = 0x06;
    let sense = Sense::decode(&bytes).unwrap();
    assert_eq!((sense.additional, sense.key_specific), (AdditionalSense::INVALID_FIELD_IN_CDB, None));
}

#[test]
fn unknown_descriptors_are_skipped() {
    let bytes = [0x72, 0x06, 0x29, 0x01, 0, 0, 0, 0x08, 0x80, 0x02, 1, 2, 0x05, 0x02, 0, 0x20];
    let sense = Sense::decode(&bytes).unwrap();
    assert!(sense.ili);
    assert_eq!(sense.additional, AdditionalSense::POWER_ON_OCCURRED);
}

#[test]
fn another_response_code_is_no_sense_data() {
    for code in [0x00, 0x6f, 0x74, 0x7f] {
        let error = Sense::decode(&[code; 18]).unwrap_err();
        assert_eq!(error, DecodeError::Invalid { field: "RESPONSE CODE", value: code.into() });
    }
}

#[test]
fn the_key_chooses_the_meaning_of_the_specific_bytes() {
    for (key, expected) in [
        (0x0, KeySpecific::Progress(0x0102)),
        (0x1, KeySpecific::ActualRetryCount(0x0102)),
        (0x5, KeySpecific::FieldPointer { in_cdb: false, byte: 0x0102, bit: None }),
        (0x6, KeySpecific::UnitAttentionOverflow(true)),
        (0xa, KeySpecific::Other([0x01, 0x01, 0x02])),
    ] {
        let bytes = [0x70, 0, key, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0x81, 0x01, 0x02];
        assert_eq!(Sense::decode(&bytes).unwrap().key_specific, Some(expected));
    }
}

#[test]
fn too_little_room_is_an_error() {
    let sense = Sense::invalid_field_in_cdb(1, Some(3));
    assert_eq!(sense.encode(SenseFormat::Fixed, &mut [0; 17]), Err(NoRoom { needed: 18, got: 17 }));
    assert_eq!(sense.encode(SenseFormat::Descriptor, &mut [0; 15]), Err(NoRoom { needed: 16, got: 15 }));
}

#[test]
fn every_pair_has_one_name_and_others_are_numbers() {
    for (index, pair) in additional::ALL.iter().enumerate() {
        assert!(!additional::ALL[..index].contains(pair), "{pair:?} twice");
        let name = pair.to_string();
        assert!(!name.starts_with("ASC "), "{name}");
        assert!(additional::ALL[..index].iter().all(|other| other.to_string() != name), "{name} twice");
    }
    let commands_cleared = AdditionalSense { asc: 0x2f, ascq: 0x00 };
    assert_eq!(commands_cleared.to_string(), "COMMANDS CLEARED BY ANOTHER INITIATOR");
    assert_eq!(AdditionalSense { asc: 0x80, ascq: 0x0a }.to_string(), "ASC 80h ASCQ 0Ah");
}

fn key_specific(key: SenseKey) -> impl Strategy<Value = Option<KeySpecific>> {
    prop::option::of(any::<[u8; 3]>().prop_map(move |[first, second, third]| {
        KeySpecific::decode(key, [first | 0x80, second, third]).unwrap()
    }))
}

prop_compose! {
    fn any_sense()(key in (0u8..16).prop_map(SenseKey::from_bits))(
        specific in key_specific(key), key in Just(key), flags in any::<[bool; 4]>(),
        (asc, ascq) in any::<(u8, u8)>(), fields in any::<[Option<u64>; 2]>(),
        registers in prop::option::of(any::<(bool, u8, u16, u64, u8, u8)>()),
    ) -> Sense {
        let ata_return = registers.map(|(extend, error, count, lba, device, status)| {
            AtaStatusReturn { extend, error, count, lba: lba >> 16, device, status }
        });
        let [deferred, filemark, eom, ili] = flags;
        let [information, command_specific] = fields;
        let additional = AdditionalSense { asc, ascq };
        Sense {
            key, additional, deferred, information, command_specific, key_specific: specific,
            filemark, eom, ili, ata_return,
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_decode_or_say_why(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let _ = Sense::decode(&bytes);
        if let Some((_, rest)) = bytes.split_first() {
            let descriptor = [&[0x72], rest].concat();
            let _ = Sense::decode(&descriptor);
        }
    }

    #[test]
    fn descriptors_lose_nothing(sense in any_sense()) {
        prop_assert_eq!(Sense::decode(&encoded(&sense, SenseFormat::Descriptor)), Ok(sense));
    }

    #[test]
    fn fixed_format_loses_only_what_has_no_room(sense in any_sense()) {
        let sense = Sense { ata_return: None, ..sense };
        let fits = |field: Option<u64>| field.filter(|value| *value <= u64::from(u32::MAX));
        let expected = Sense {
            information: fits(sense.information),
            command_specific: fits(sense.command_specific).filter(|value| *value != 0),
            ..sense
        };
        prop_assert_eq!(Sense::decode(&encoded(&sense, SenseFormat::Fixed)), Ok(expected));
    }
}

#[test]
fn registers_of_a_smart_status_become_their_descriptor() {
    let registers = AtaStatusReturn::of(&crate::ata::ResultRegisters::smart_status(false), false);
    assert_eq!(registers.encode(), [0x09, 12, 0, 0, 0, 0, 0, 0x00, 0, 0x4f, 0, 0xc2, 0x40, 0x40]);
}
