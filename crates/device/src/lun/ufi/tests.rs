//! Scripts of a floppy drive's commands, in literal bytes.

use crate::lun::fixture::Fixture;
use crate::lun::{MediumPlan, Plan, Readiness};
use crate::medium::MediumOp;
use units::{BlockCount, BlockSize, Extent};
use wire::scsi::sense::{AdditionalSense, Sense};

const FORMAT_TRACK: [u8; 12] = [0x04, 0x17, 3, 0, 0, 0, 0, 0, 12, 0, 0, 0];
const LIST_1440: [u8; 12] = [0, 0xb1, 0, 8, 0, 0, 0x0b, 0x40, 0, 0, 2, 0];

#[test]
fn the_drive_has_names_and_no_version() {
    let mut drive = Fixture::floppy();
    let bytes = drive.read(&[0x12, 0, 0, 0, 36, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes, *b"\x00\x80\x00\x01\x1f\x00\x00\x00uaskit  virtual drive   0.1 ");
    let refused = Sense::invalid_field_in_cdb(1, Some(0));
    assert_eq!(drive.check(&[0x12, 1, 0, 0, 36, 0, 0, 0, 0, 0, 0, 0]), refused);
}

#[test]
fn capacities_are_those_of_the_disk() {
    const CAPACITIES: [u8; 12] = [0x23, 0, 0, 0, 0, 0, 0, 0, 12, 0, 0, 0];
    let mut drive = Fixture::floppy();
    assert_eq!(drive.read(&CAPACITIES), [0, 0, 0, 8, 0, 0, 0x0b, 0x40, 2, 0, 2, 0]);
    assert_eq!(drive.read(&[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), [0, 0, 0x0b, 0x3f, 0, 0, 2, 0]);
    drive.unit.readiness = Readiness::Absent;
    assert_eq!(drive.read(&CAPACITIES), [0, 0, 0, 8, 0, 0, 0x0b, 0x40, 3, 0, 2, 0]);
}

#[test]
fn mode_sense_reports_medium_and_protection() {
    const SENSE: [u8; 12] = [0x5a, 0, 0x05, 0, 0, 0, 0, 0, 192, 0, 0, 0];
    let mut drive = Fixture::floppy();
    let bytes = drive.read(&SENSE);
    assert_eq!((bytes.len(), &bytes[..8]), (40, &[0, 38, 0x94, 0, 0, 0, 0, 0][..]));
    assert_eq!(bytes[8..18], [0x05, 0x1e, 0x01, 0xf4, 2, 18, 2, 0, 0, 80]);
    drive.unit.config.read_only = true;
    assert_eq!(drive.read(&SENSE)[3], 0x80);
    drive.unit.config.block_size = BlockSize::B1024;
    drive.unit.config.capacity = BlockCount(1232);
    assert_eq!(drive.read(&SENSE)[2], 0x93);
    let unknown = Sense::invalid_field_in_cdb(2, Some(5));
    assert_eq!(drive.check(&[0x5a, 0, 0x08, 0, 0, 0, 0, 0, 8, 0, 0, 0]), unknown);
}

#[test]
fn mode_select_takes_the_page_as_it_is() {
    const SELECT: [u8; 12] = [0x55, 0x10, 0, 0, 0, 0, 0, 0, 40, 0, 0, 0];
    let mut drive = Fixture::floppy();
    let mut list = drive.read(&[0x5a, 0, 0x05, 0, 0, 0, 0, 0, 192, 0, 0, 0]).to_vec();
    assert_eq!(drive.run_list(&SELECT, &list), Plan::Good);
    list[13] = 9;
    let refused = Sense::illegal_request(AdditionalSense::INVALID_FIELD_IN_PARAMETER_LIST);
    assert_eq!(drive.run_list(&SELECT, &list), Plan::Check(refused));
}

#[test]
fn format_unit_clears_a_track_or_the_disk() {
    let mut drive = Fixture::floppy();
    let zeroes = |extent| Plan::Medium(MediumPlan::bare(MediumOp::WriteZeroes, extent));
    // Cylinder 3, side 1: the eighth track of 18 sectors.
    assert_eq!(drive.run_list(&FORMAT_TRACK, &LIST_1440), zeroes(Extent::new(126, 18)));
    let mut whole = LIST_1440;
    whole[1] = 0xa0;
    assert_eq!(drive.run_list(&FORMAT_TRACK, &whole), zeroes(Extent::new(0, 2880)));
    let mut beyond = FORMAT_TRACK;
    beyond[2] = 80;
    let track = Plan::Check(Sense::invalid_field_in_cdb(2, None));
    assert_eq!(drive.run_list(&beyond, &LIST_1440), track);
    let mut other = LIST_1440;
    other[6] = 5;
    let refused = Sense::illegal_request(AdditionalSense::INVALID_FIELD_IN_PARAMETER_LIST);
    assert_eq!(drive.run_list(&FORMAT_TRACK, &other), Plan::Check(refused));
    drive.unit.config.read_only = true;
    assert_eq!(drive.check(&FORMAT_TRACK).additional, AdditionalSense { asc: 0x27, ascq: 0 });
}

#[test]
fn seek_finds_blocks_that_exist() {
    let mut drive = Fixture::floppy();
    assert_eq!(drive.run(&[0x2b, 0, 0, 0, 0x0b, 0x3f, 0, 0, 0, 0, 0, 0]), Plan::Good);
    assert_eq!(drive.check(&[0x2b, 0, 0, 0, 0x0b, 0x40, 0, 0, 0, 0, 0, 0]).additional.asc, 0x21);
    assert_eq!(drive.run(&[0x01; 12]), Plan::Good);
}

#[test]
fn twelve_bytes_read_blocks() {
    let mut drive = Fixture::floppy();
    let Plan::Medium(read) = drive.run(&[0x28, 0, 0, 0, 0, 5, 0, 0, 2, 0, 0, 0]) else { panic!("no read") };
    assert_eq!((read.extent, read.bytes), (Extent::new(5, 2), 1024));
    let Plan::Medium(read) = drive.run(&[0xa8, 0, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0]) else { panic!("no read") };
    assert_eq!(read.extent, Extent::new(5, 2));
}
