//! Commands of an optical drive: literal CDB in, literal bytes out.

use crate::lun::fixture::Fixture;
use crate::lun::{DataPhase, InsertedMedium, MediumPlan, Plan, Readiness, UnitEvent};
use crate::medium::{MediumDone, MediumOp};
use alloc::vec;
use alloc::vec::Vec;
use units::{BlockCount, Extent};
use wire::scsi::sense::{AdditionalSense, Sense, SenseKey};

const CD: u64 = 1000;
const DVD: u64 = 2_000_000;
const DVD_DUAL: u64 = 4_000_000;
const BD: u64 = 12_219_392;

const TEST_UNIT_READY: [u8; 6] = [0; 6];
const EJECT: [u8; 6] = [0x1b, 0, 0, 0, 0x02, 0];
const LOAD: [u8; 6] = [0x1b, 0, 0, 0, 0x03, 0];
const MEDIA_EVENT: [u8; 10] = [0x4a, 0x01, 0, 0, 0x10, 0, 0, 0, 8, 0];
const CONFIGURATION: [u8; 10] = [0x46, 0, 0, 0, 0, 0, 0, 0x04, 0, 0];

fn disc(blocks: u64) -> Fixture {
    let mut fixture = Fixture::optical();
    fixture.unit.config.capacity = BlockCount(blocks);
    fixture
}

fn empty() -> Fixture {
    let mut fixture = Fixture::optical();
    fixture.unit.readiness = Readiness::Absent;
    fixture
}

fn eject(fixture: &mut Fixture) {
    assert!(matches!(fixture.run(&EJECT), Plan::Medium(MediumPlan { op: MediumOp::Flush, .. })));
    assert_eq!(fixture.run_medium(&EJECT, MediumDone::Done), Plan::Good);
}

/// The codes of the features in GET CONFIGURATION data, and whether each is current.
fn features(data: &[u8]) -> Vec<(u16, bool)> {
    let mut features = Vec::new();
    let mut rest = &data[8..];
    while let [high, low, flags, length, after @ ..] = rest {
        features.push((u16::from_be_bytes([*high, *low]), flags & 1 == 1));
        rest = &after[usize::from(*length)..];
    }
    features
}

#[test]
fn inquiry_says_that_it_is_a_cd_dvd_device() {
    let mut fixture = Fixture::optical();
    let bytes = fixture.read(&[0x12, 0, 0, 0, 96, 0]);
    assert_eq!(bytes[..4], [0x05, 0x80, 0x06, 0x32]);
    assert_eq!(bytes[58..70], [0, 0xa0, 4, 0x60, 5, 0xc0, 0x04, 0xe0, 0, 0, 0x17, 0x40]);
    assert_eq!(fixture.read(&[0x12, 1, 0, 0, 255, 0]), [0x05, 0, 0, 4, 0x00, 0x80, 0x83, 0x86]);
    assert_eq!(fixture.read(&[0x12, 1, 0x80, 0, 255, 0])[..2], [0x05, 0x80]);
    assert_eq!(fixture.check(&[0x12, 1, 0xb0, 0, 255, 0]), Sense::invalid_field_in_cdb(2, None));
}

#[test]
fn commands_of_a_disk_alone_do_not_exist() {
    let unknown = Sense::illegal_request(AdditionalSense { asc: 0x20, ascq: 0x00 });
    for opcode in [0x04, 0x0a, 0x2a, 0x42, 0x88, 0x8a, 0x9e, 0xa1, 0xa3, 0xaa] {
        let mut cdb = [0; 16];
        cdb[0] = opcode;
        assert_eq!(Fixture::optical().check(&cdb), unknown, "{opcode:#04x}");
    }
    assert_eq!(Fixture::new().check(&MEDIA_EVENT), unknown);
}

#[test]
fn reads_move_blocks_of_2048_bytes() {
    let expected = Plan::Medium(MediumPlan {
        op: MediumOp::Read,
        extent: Extent::new(16, 2),
        data: DataPhase::In,
        bytes: 4096,
    });
    let cdbs: [&[u8]; 4] = [
        &[0x28, 0, 0, 0, 0, 16, 0, 0, 2, 0],
        &[0xa8, 0, 0, 0, 0, 16, 0, 0, 0, 2, 0, 0],
        &[0xbe, 0x00, 0, 0, 0, 16, 0, 0, 2, 0x10, 0, 0],
        &[0xbe, 0x08, 0, 0, 0, 16, 0, 0, 2, 0x10, 0, 0],
    ];
    for cdb in cdbs {
        assert_eq!(Fixture::optical().run(cdb), expected, "{cdb:02x?}");
    }
    assert_eq!(Fixture::optical().read(&[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0]), [0, 0, 3, 0xe7, 0, 0, 8, 0]);
}

#[test]
fn read_cd_has_no_parts_but_user_data() {
    let mut fixture = Fixture::optical();
    let mode = Sense::illegal_request(AdditionalSense { asc: 0x64, ascq: 0x00 });
    assert_eq!(fixture.check(&[0xbe, 0x04, 0, 0, 0, 0, 0, 0, 1, 0x10, 0, 0]), mode);
    for parts in [0x90, 0x30, 0x18, 0x12, 0xf8] {
        let sense = fixture.check(&[0xbe, 0, 0, 0, 0, 0, 0, 0, 1, parts, 0, 0]);
        assert_eq!(sense, Sense::invalid_field_in_cdb(9, None), "{parts:#04x}");
    }
    let subchannel = fixture.check(&[0xbe, 0, 0, 0, 0, 0, 0, 0, 1, 0x10, 1, 0]);
    assert_eq!(subchannel, Sense::invalid_field_in_cdb(10, Some(2)));
    assert_eq!(fixture.run(&[0xbe, 0, 0, 0, 0, 0, 0, 0, 1, 0x00, 0, 0]), Plan::Good);
    let past = fixture.check(&[0xbe, 0, 0, 0, 0x03, 0xe8, 0, 0, 1, 0x10, 0, 0]);
    assert_eq!((past.additional.asc, past.information), (0x21, Some(1000)));
    let mut large = disc(BD);
    let long = large.check(&[0xbe, 0, 0, 0, 0, 0, 0, 0x10, 0x01, 0x10, 0, 0]);
    assert_eq!(long, Sense::invalid_field_in_cdb(6, None));
}

#[test]
fn the_size_makes_the_profile_and_the_current_features() {
    for (blocks, profile, feature) in
        [(CD, 0x08, 0x1e), (DVD, 0x10, 0x1f), (DVD_DUAL, 0x10, 0x1f), (BD, 0x40, 0x40)]
    {
        let mut fixture = disc(blocks);
        let data = fixture.read(&CONFIGURATION).to_vec();
        assert_eq!(usize::from(data[3]) + 4, data.len());
        assert_eq!(data[6..8], [0, profile], "{blocks}");
        let current: Vec<u16> = features(&data).into_iter().filter(|it| it.1).map(|it| it.0).collect();
        assert_eq!(current, [0, 1, 2, 3, 0x10, feature, 0x100, 0x105, 0x108]);
        let mut only = CONFIGURATION;
        only[1] = 1;
        let codes: Vec<u16> = features(fixture.read(&only)).into_iter().map(|it| it.0).collect();
        assert_eq!(codes, current);
    }
}

#[test]
fn the_first_features_are_those_of_a_tray_on_usb() {
    let mut fixture = Fixture::optical();
    let data = fixture.read(&CONFIGURATION);
    let profiles = [0, 0, 0x03, 12, 0, 0x40, 0, 0, 0, 0x10, 0, 0, 0, 0x08, 1, 0];
    assert_eq!(data[8..24], profiles);
    assert_eq!(data[24..36], [0, 1, 0x0b, 8, 0, 0, 0, 8, 0, 0, 0, 0]);
    assert_eq!(data[36..44], [0, 2, 0x07, 4, 0, 0, 0, 0]);
    assert_eq!(data[44..52], [0, 3, 0x0b, 4, 0x39, 0, 0, 0]);
    assert_eq!(data[52..64], [0, 0x10, 0x01, 8, 0, 0, 8, 0, 0, 1, 1, 0]);
    let serial = fixture.read(&[0x46, 0x02, 0x01, 0x08, 0, 0, 0, 0, 255, 0]);
    assert_eq!(serial[8..], *b"\x01\x08\x03\x0c0123456789AB");
}

#[test]
fn one_feature_is_alone_and_an_unknown_one_is_none() {
    let mut fixture = Fixture::optical();
    assert_eq!(fixture.read(&[0x46, 0x02, 0, 0x1e, 0, 0, 0, 0, 255, 0])[8..], [0, 0x1e, 0x09, 4, 0, 0, 0, 0]);
    assert_eq!(fixture.read(&[0x46, 0x02, 0, 0x21, 0, 0, 0, 0, 255, 0]), [0, 0, 0, 4, 0, 0, 0, 8]);
    assert_eq!(
        features(fixture.read(&[0x46, 0, 0x01, 0x05, 0, 0, 0, 0, 255, 0])),
        [(0x105, true), (0x108, true)]
    );
    assert_eq!(fixture.check(&[0x46, 3, 0, 0, 0, 0, 0, 0, 255, 0]), Sense::invalid_field_in_cdb(1, Some(1)));
    assert_eq!(fixture.read(&[0x46, 0, 0, 0, 0, 0, 0, 0, 8, 0]).len(), 8);
}

#[test]
fn an_empty_drive_has_no_profile_and_answers_about_itself() {
    let mut fixture = empty();
    fixture.unit.handle_event(UnitEvent::BusReset);
    assert_eq!(fixture.read(&CONFIGURATION)[6..8], [0, 0]);
    assert_eq!(fixture.read(&MEDIA_EVENT), [0, 6, 4, 0x10, 0, 0, 0, 0]);
    assert!(!fixture.unit.attentions.is_empty());
    fixture.unit.attentions = Default::default();
    let closed = Sense::new(SenseKey::NotReady, AdditionalSense { asc: 0x3a, ascq: 0x01 });
    assert_eq!(fixture.check(&TEST_UNIT_READY), closed);
    assert_eq!(fixture.check(&[0x43, 0, 0, 0, 0, 0, 0, 0, 12, 0]), closed);
    assert_eq!(fixture.read(&[0xbd, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0]), [0; 8]);
    let formats = fixture.read(&[0x23, 0, 0, 0, 0, 0, 0, 0, 12, 0]);
    assert_eq!(formats, [0, 0, 0, 8, 0xff, 0xff, 0xff, 0xff, 3, 0, 8, 0]);
    assert_eq!(fixture.run(&EJECT), Plan::Good);
    assert_eq!(fixture.check(&LOAD), closed);
}

#[test]
fn events_say_that_a_disc_went_and_came() {
    let mut fixture = Fixture::optical();
    assert_eq!(fixture.read(&MEDIA_EVENT), [0, 6, 4, 0x10, 0, 2, 0, 0]);
    eject(&mut fixture);
    let open = Sense::new(SenseKey::NotReady, AdditionalSense { asc: 0x3a, ascq: 0x02 });
    assert_eq!(fixture.check(&TEST_UNIT_READY), open);
    assert_eq!(fixture.read(&[0xbd, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0])[1], 0x10);
    assert_eq!(fixture.read(&MEDIA_EVENT), [0, 6, 4, 0x10, 3, 1, 0, 0]);
    assert_eq!(fixture.read(&MEDIA_EVENT), [0, 6, 4, 0x10, 0, 1, 0, 0]);
    assert_eq!(fixture.run(&LOAD), Plan::Good);
    assert_eq!(fixture.read(&MEDIA_EVENT), [0, 6, 4, 0x10, 2, 2, 0, 0]);
    let changed = Sense::unit_attention(AdditionalSense { asc: 0x28, ascq: 0x00 });
    assert_eq!(fixture.check(&TEST_UNIT_READY), changed);
    assert_eq!(fixture.run(&TEST_UNIT_READY), Plan::Good);
}

#[test]
fn a_swap_by_its_owner_is_a_new_medium() {
    let mut fixture = Fixture::optical();
    fixture.unit.remove_medium();
    assert_eq!(fixture.read(&MEDIA_EVENT)[4..6], [3, 0]);
    let medium = InsertedMedium {
        capacity: BlockCount(DVD),
        read_only: true,
        durable: false,
        atomic_writes: false,
        durable_state: None,
    };
    fixture.unit.insert_medium(medium);
    assert_eq!(fixture.read(&MEDIA_EVENT)[4..6], [2, 2]);
    assert_eq!(fixture.read(&CONFIGURATION)[6..8], [0, 0x10]);
}

#[test]
fn an_event_that_the_host_has_no_room_for_stays() {
    let mut fixture = Fixture::optical();
    fixture.unit.request_eject();
    assert_eq!(fixture.read(&[0x4a, 1, 0, 0, 0x10, 0, 0, 0, 4, 0]), [0, 6, 4, 0x10]);
    assert_eq!(fixture.read(&MEDIA_EVENT)[4..6], [1, 2]);
    assert_eq!(fixture.read(&[0x4a, 1, 0, 0, 0x02, 0, 0, 0, 8, 0]), [0, 2, 0x80, 0x10]);
    let unpolled = fixture.check(&[0x4a, 0, 0, 0, 0x10, 0, 0, 0, 8, 0]);
    assert_eq!(unpolled, Sense::invalid_field_in_cdb(1, Some(0)));
}

#[test]
fn every_form_of_prevention_locks_the_disc_in() {
    let mut fixture = Fixture::optical();
    let locked = Sense::illegal_request(AdditionalSense { asc: 0x53, ascq: 0x02 });
    for (prevent, allow) in [(1, 0), (3, 2), (3, 0)] {
        assert_eq!(fixture.run(&[0x1e, 0, 0, 0, prevent, 0]), Plan::Good);
        assert_eq!(fixture.check(&EJECT), locked);
        assert_eq!(fixture.read(&[0x5a, 0, 0x2a, 0, 0, 0, 0, 0, 255, 0])[8 + 6], 0x2b);
        assert_eq!(fixture.run(&[0x1e, 0, 0, 0, allow, 0]), Plan::Good);
    }
    eject(&mut fixture);
}

#[test]
fn the_table_of_contents_has_one_data_track() {
    let mut fixture = Fixture::optical();
    let lba = [0, 18, 1, 1, 0, 0x14, 1, 0, 0, 0, 0, 0, 0, 0x14, 0xaa, 0, 0, 0, 3, 0xe8];
    assert_eq!(fixture.read(&[0x43, 0, 0, 0, 0, 0, 0, 0, 255, 0]), lba);
    assert_eq!(fixture.read(&[0x43, 0, 0, 0, 0, 0, 1, 0, 12, 0]), &lba[..12]);
    let msf = [0, 18, 1, 1, 0, 0x14, 1, 0, 0, 0, 2, 0, 0, 0x14, 0xaa, 0, 0, 0, 15, 25];
    assert_eq!(fixture.read(&[0x43, 2, 0, 0, 0, 0, 0, 0, 255, 0]), msf);
    let lead_out = [0, 10, 1, 1, 0, 0x14, 0xaa, 0, 0, 0, 3, 0xe8];
    assert_eq!(fixture.read(&[0x43, 0, 0, 0, 0, 0, 0xaa, 0, 255, 0]), lead_out);
    assert_eq!(fixture.check(&[0x43, 0, 0, 0, 0, 0, 2, 0, 255, 0]), Sense::invalid_field_in_cdb(6, None));
    let sessions = [0, 10, 1, 1, 0, 0x14, 1, 0, 0, 0, 0, 0];
    assert_eq!(fixture.read(&[0x43, 0, 1, 0, 0, 0, 0, 0, 255, 0]), sessions);
    let raw = fixture.read(&[0x43, 0, 2, 0, 0, 0, 0, 0, 255, 0]).to_vec();
    assert_eq!(raw[..15], [0, 46, 1, 1, 1, 0x14, 0, 0xa0, 0, 0, 0, 0, 1, 0, 0]);
    assert_eq!(raw[26..37], [1, 0x14, 0, 0xa2, 0, 0, 0, 0, 0, 15, 25]);
    assert_eq!(raw.len(), 48);
    for format in 3..16 {
        let sense = fixture.check(&[0x43, 0, format, 0, 0, 0, 0, 0, 255, 0]);
        assert_eq!(sense, Sense::invalid_field_in_cdb(2, Some(3)));
    }
    assert_eq!(
        disc(DVD).check(&[0x43, 0, 2, 0, 0, 0, 0, 0, 255, 0]),
        Sense::invalid_field_in_cdb(2, Some(3))
    );
    assert_eq!(disc(BD).read(&[0x43, 2, 0, 0, 0, 0, 0xaa, 0, 255, 0])[8..], [0, 0xff, 0x3b, 0x4a]);
}

#[test]
fn the_disc_is_one_closed_session() {
    let mut fixture = Fixture::optical();
    let disc = fixture.read(&[0x51, 0, 0, 0, 0, 0, 0, 0, 34, 0]);
    assert_eq!(disc[..9], [0, 32, 0x0e, 1, 1, 1, 1, 0x20, 0]);
    assert_eq!(fixture.check(&[0x51, 1, 0, 0, 0, 0, 0, 0, 34, 0]), Sense::invalid_field_in_cdb(1, Some(2)));
    for (kind, address) in [(0, 999), (1, 1), (2, 1)] {
        let track = fixture.read(&[0x52, kind, 0, 0, (address >> 8) as u8, address as u8, 0, 0, 36, 0]);
        assert_eq!(track[..12], [0, 34, 1, 1, 0, 4, 1, 0, 0, 0, 0, 0]);
        assert_eq!(track[24..28], [0, 0, 3, 0xe8]);
    }
    let past = fixture.check(&[0x52, 0, 0, 0, 0x03, 0xe8, 0, 0, 36, 0]);
    assert_eq!(past.additional, AdditionalSense { asc: 0x21, ascq: 0x00 });
    assert_eq!(fixture.check(&[0x52, 1, 0, 0, 0, 2, 0, 0, 36, 0]), Sense::invalid_field_in_cdb(2, None));
    assert_eq!(fixture.check(&[0x52, 3, 0, 0, 0, 1, 0, 0, 36, 0]), Sense::invalid_field_in_cdb(1, Some(1)));
    assert_eq!(fixture.check(&[0x52, 5, 0, 0, 0, 1, 0, 0, 36, 0]), Sense::invalid_field_in_cdb(1, Some(2)));
}

#[test]
fn a_dvd_has_a_physical_format() {
    let cdb = |media, layer, format| [0xad, media, 0, 0, 0, 0, layer, format, 0x08, 0x04, 0, 0];
    let single = disc(DVD).read(&cdb(0, 0, 0)).to_vec();
    assert_eq!(single.len(), 2052);
    assert_eq!(single[..8], [0x08, 0x02, 0, 0, 0x01, 0x0f, 0x01, 0]);
    assert_eq!(single[8..20], [0, 3, 0, 0, 0, 0x21, 0x84, 0x7f, 0, 0, 0, 0]);
    let dual = disc(DVD_DUAL).read(&cdb(0, 1, 0)).to_vec();
    assert_eq!(dual[6], 0x31);
    assert_eq!(dual[12..20], [0, 0xfc, 0xff, 0xff, 0, 0x21, 0x84, 0x7f]);
    assert_eq!(disc(DVD).check(&cdb(0, 1, 0)), Sense::invalid_field_in_cdb(6, None));
    assert_eq!(disc(DVD).read(&cdb(0, 0, 1)), [0, 6, 0, 0, 0, 0, 0, 0]);
    let list = [0, 14, 0, 0, 0, 0x40, 8, 4, 1, 0x40, 0, 8, 0xff, 0x40, 0, 16];
    assert_eq!(disc(DVD).read(&cdb(0, 0, 0xff)), list);
    assert_eq!(disc(BD).read(&cdb(1, 0, 0xff)), [0, 6, 0, 0, 0xff, 0x40, 0, 8]);
    assert_eq!(disc(BD).check(&cdb(1, 0, 0)), Sense::invalid_field_in_cdb(7, None));
    assert_eq!(disc(BD).check(&cdb(0, 0, 0)), Sense::invalid_field_in_cdb(1, Some(3)));
    let cd = disc(CD).check(&cdb(0, 0, 0));
    assert_eq!(cd, Sense::illegal_request(AdditionalSense { asc: 0x30, ascq: 0x02 }));
}

#[test]
fn the_whole_disc_has_one_speed() {
    let mut fixture = Fixture::optical();
    let all = fixture.read(&[0xac, 0x10, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]);
    let speed = [0, 0, 0x21, 0x13];
    let expected = [&[0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0][..], &speed, &[0, 0, 3, 0xe7], &speed].concat();
    assert_eq!(all, expected);
    assert_eq!(fixture.read(&[0xac, 0x11, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]), [0, 0, 0, 4, 1, 0, 0, 0]);
    assert_eq!(fixture.read(&[0xac, 0x14, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]), [0, 0, 0, 4, 2, 0, 0, 0]);
    assert_eq!(fixture.read(&[0xac, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), [0, 0, 0, 20, 0, 0, 0, 0]);
    let other = fixture.check(&[0xac, 0x10, 0, 0, 0, 0, 0, 0, 0, 1, 3, 0]);
    assert_eq!(other, Sense::invalid_field_in_cdb(10, None));
    assert_eq!(
        fixture.check(&[0xac, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]),
        Sense::invalid_field_in_cdb(1, Some(4))
    );
    let past = fixture.check(&[0xac, 0x10, 0, 0, 0x03, 0xe8, 0, 0, 0, 1, 0, 0]);
    assert_eq!(past.additional.asc, 0x21);
    assert_eq!(fixture.run(&[0xbb, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]), Plan::Good);
}

#[test]
fn the_capacity_is_that_of_a_formatted_medium() {
    let formats = [0, 0, 0, 8, 0, 0, 3, 0xe8, 2, 0, 8, 0];
    assert_eq!(Fixture::optical().read(&[0x23, 0, 0, 0, 0, 0, 0, 0, 255, 0]), formats);
}

#[test]
fn mode_pages_have_no_block_descriptor() {
    let mut fixture = Fixture::optical();
    let page = fixture.read(&[0x5a, 0, 0x2a, 0, 0, 0, 0, 0, 255, 0]).to_vec();
    assert_eq!(page[..8], [0, 38, 0, 0, 0, 0, 0, 0]);
    assert_eq!(page[8..24], [0x2a, 0x1e, 0x1f, 0, 0, 0, 0x29, 0, 0xff, 0xff, 0, 0, 2, 0, 0xff, 0xff]);
    assert_eq!(
        fixture.read(&[0x1a, 0, 0x01, 0, 255, 0]),
        [15, 0, 0, 0, 0x01, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    );
    let write_parameters = fixture.read(&[0x1a, 0, 0x05, 0, 255, 0]);
    assert_eq!((write_parameters.len(), &write_parameters[4..8]), (56, &[0x05, 0x32, 0, 0][..]));
    let all = fixture.read(&[0x5a, 0, 0x3f, 0, 0, 0, 0, 0, 255, 0]).to_vec();
    assert_eq!(all.len(), 8 + 12 + 52 + 40 + 32);
    assert_eq!(fixture.check(&[0x1a, 0, 0x08, 0, 255, 0]), Sense::invalid_field_in_cdb(2, Some(5)));
    let changeable = fixture.read(&[0x5a, 0, 0x6a, 0, 0, 0, 0, 0, 255, 0]);
    assert!(changeable[10..].iter().all(|&byte| byte == 0));
}

#[test]
fn mode_select_accepts_what_is_and_nothing_else() {
    let mut fixture = Fixture::optical();
    let mut list = vec![0; 8];
    list.extend([0x01, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let select = [0x55, 0x10, 0, 0, 0, 0, 0, 0, 20, 0];
    assert_eq!(fixture.run_list(&select, &list), Plan::Good);
    list[10] = 0x20;
    let refused = Sense::invalid_field_in_parameter_list(10, Some(5));
    assert_eq!(fixture.run_list(&select, &list), Plan::Check(refused));
}
