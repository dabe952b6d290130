//! Records of a virtual drive: served again, they are recorded as the same text.

use bus::Speed;
use device::Transports;
use uaskit_conformance::record::{Record, SerialNumbers, record};
use uaskit_conformance::{CheckPlan, Verdict};
use uaskit_conformance::{
    DeviceBus, TestedDevice, VIRTUAL_BYTES, VirtualDriveConfig, check, recorded_drive, suite,
};

fn recorded(bus: &mut dyn DeviceBus, speed: Speed, serials: SerialNumbers) -> Record {
    let device = TestedDevice::read(bus, speed).expect("descriptors");
    record(bus, &device, serials).expect("a record")
}

#[test]
fn a_served_record_is_recorded_as_the_same_text() {
    for speed in [Speed::Full, Speed::High, Speed::Super] {
        for transports in [Transports::Dual, Transports::UasOnly, Transports::BotOnly] {
            for serials in [SerialNumbers::Original, SerialNumbers::Replaced] {
                let mut original = VirtualDriveConfig::new(speed, transports).plug().expect("memory");
                let first = recorded(&mut original, speed, serials);
                let text = first.to_toml();
                let read = Record::parse(&text).expect("what was written is read");
                assert_eq!(read, first);
                let mut served = recorded_drive(&read, VIRTUAL_BYTES).expect("it can be presented");
                let second = recorded(&mut served, speed, serials);
                assert_eq!(second.to_toml(), text, "{speed}, {transports:?}");
            }
        }
    }
}

#[test]
fn a_record_has_pages_commands_and_strings_and_no_serial_number() {
    let mut drive = VirtualDriveConfig::new(Speed::Super, Transports::Dual).plug().expect("memory");
    let original = recorded(&mut drive, Speed::Super, SerialNumbers::Original).to_toml();
    let replaced = recorded(&mut drive, Speed::Super, SerialNumbers::Replaced).to_toml();
    let ascii = "30 31 32 33 34 35 36 37 38 39 41 42";
    let wide = "30 00 31 00 32 00 33 00";
    assert!(original.contains(ascii) && original.contains(wide), "{original}");
    assert!(!replaced.contains(ascii) && !replaced.contains(wide), "{replaced}");
    for words in [
        "# INQUIRY evpd page_code 0x83",
        "# MODE SENSE(10) changeable",
        "# LOG SENSE",
        "REPORT SUPPORTED OPERATION",
    ] {
        assert!(original.contains(words), "{words}");
    }
}

#[test]
fn a_served_record_passes_the_tests_that_the_original_passes() {
    let mut original = VirtualDriveConfig::new(Speed::Super, Transports::Dual).plug().expect("memory");
    let record = recorded(&mut original, Speed::Super, SerialNumbers::Original);
    let mut served = recorded_drive(&record, VIRTUAL_BYTES).expect("it can be presented");
    let device = TestedDevice::read(&mut served, Speed::Super).expect("descriptors");
    let tests = [suite::read_only(), suite::writing()].concat();
    let scorecard = check(&mut served, &device, CheckPlan::of(&tests), |_| true);
    for outcome in &scorecard.outcomes {
        let is_expected = matches!(outcome.verdict, Verdict::Pass | Verdict::Note(_) | Verdict::NotTested(_));
        assert!(is_expected, "{}: {:?}", outcome.test.id, outcome.verdict);
    }
}

#[test]
fn an_error_of_a_file_has_its_line() {
    let head = "version = 1\nspeed = \"super\"\nserials = \"original\"\nconfiguration = 1\n";
    let descriptor = |bytes: &str| format!("{head}[[descriptor]]\ntype = 1\nindex = 0\nbytes = {bytes}\n");
    let error = |text: &str| Record::parse(text).expect_err("an error").to_string();
    assert_eq!(
        error(&head.replace("1\nspeed", "2\nspeed").replace("= 1\n", "= 1\ndescriptor = []\n")),
        "line 1: version 2 is not supported; this is for 1"
    );
    assert_eq!(error(&descriptor("\"12 01 xx\"")), "line 8: \"xx\" is not a byte: two hexadecimal digits");
    assert_eq!(
        error(&descriptor("\"\"\"\n12 01\n1 0\n\"\"\"")),
        "line 10: \"1\" is not a byte: two hexadecimal digits"
    );
    assert_eq!(
        error(&descriptor("\"12 02\"")),
        "line 8: the second byte of this descriptor is not its type, 1"
    );
    assert_eq!(error(&descriptor("\"\"")), "line 8: 0 bytes; 2 to 8192 are allowed here");
    assert!(
        error(&format!("{head}colour = 3\ndescriptor = []\n")).starts_with("line 5: unknown field `colour`")
    );
    assert!(error("version = ").starts_with("line 1: "));
    let answer = format!(
        "{head}descriptor = []\n[[unit]]\nblock_bytes = 512\nblocks = 8\n[[unit.answer]]\ncdb = \"12\"\n"
    );
    assert_eq!(error(&answer), "line 10: an answer has either data or sense");
}

/// Whatever a file has, it is presented or refused.
#[test]
fn damaged_records_are_presented_or_refused() {
    let seed = 7;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut original = VirtualDriveConfig::new(Speed::Super, Transports::Dual).plug().expect("memory");
    let text = recorded(&mut original, Speed::Super, SerialNumbers::Original).to_toml();
    let mut refused = 0;
    for round in 0..300 {
        let mut record = Record::parse(&text).expect("what was written is read");
        let count = record.descriptors.len();
        for _ in 0..random.usize(1..4) {
            let bytes = &mut record.descriptors[random.usize(..count)].bytes;
            let at = random.usize(..bytes.len());
            bytes[at] = random.u8(..);
            bytes.truncate(random.usize(bytes.len() / 2 + 1..=bytes.len()));
        }
        for answer in &mut record.units[0].answers {
            if let device::lun::RecordedOutcome::Data(bytes) = &mut answer.outcome
                && !bytes.is_empty()
            {
                let at = random.usize(..bytes.len());
                bytes[at] = random.u8(..);
                bytes.truncate(random.usize(..=bytes.len()));
            }
        }
        let Ok(mut drive) = recorded_drive(&record, VIRTUAL_BYTES) else {
            refused += 1;
            continue;
        };
        // It answers, whatever it answers.
        if let Ok(device) = TestedDevice::read(&mut drive, Speed::Super) {
            let again = uaskit_conformance::record::record(&mut drive, &device, SerialNumbers::Replaced);
            if let Ok(again) = again {
                Record::parse(&again.to_toml())
                    .unwrap_or_else(|error| panic!("seed {seed}, round {round}: {error}"));
            }
        }
    }
    assert!((1..300).contains(&refused), "seed {seed}: {refused} refused");
}
