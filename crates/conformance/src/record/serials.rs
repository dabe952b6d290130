//! Replaces the names by which enclosures of one kind differ: serial numbers and world-wide names.
//!
//! Letters become A or a, digits 0, so that a number has its length and its characters' kind; the part of a world-wide name that
//! its owner assigns becomes zeros. A serial number that is known from one place is replaced in all: as ASCII, with the bytes of
//! each word swapped (ATA), and as UTF-16. Left out: numbers that only vendor pages have. Always true: what was replaced once
//! is not changed by replacing it again.

use super::{Record, UnitRecord};
use device::device::RecordedDescriptor;
use device::lun::RecordedOutcome;
use wire::scsi::opcode::OperationCode;
use wire::usb::{ContainerIdCapability, DescriptorKind, StringDescriptor};

/// Whether a record has the serial numbers of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SerialNumbers {
    /// They were replaced.
    Replaced,
    /// They are the device's.
    Original,
}

/// Shorter ones are not searched for elsewhere: they would be found in other data.
const SEARCHED_BYTES_MIN: usize = 4;

const UNIT_SERIAL_NUMBER: u8 = 0x80;
const DEVICE_IDENTIFICATION: u8 = 0x83;
const ATA_INFORMATION: u8 = 0x89;

/// Where IDENTIFY DEVICE data begin on the ATA Information page (SAT-3 clause 12.4.2).
const IDENTIFY_ON_PAGE: usize = 60;

/// Vendor-specific bytes of standard INQUIRY data, where some bridges have a serial number.
const INQUIRY_VENDOR: std::ops::Range<usize> = 36..56;

/// Replaces all serial numbers.
pub(super) fn replace(record: &mut Record) {
    let numbers = numbers(record);
    for descriptor in &mut record.descriptors {
        search(&mut descriptor.bytes, &numbers);
        if descriptor.kind == DescriptorKind::Bos {
            replace_container_id(&mut descriptor.bytes);
        }
    }
    if let Some(index) = serial_index(record) {
        for descriptor in &mut record.descriptors {
            if (descriptor.kind, descriptor.index) == (DescriptorKind::String, index) {
                descriptor.bytes.iter_mut().skip(2).for_each(stand_in);
            }
        }
    }
    for unit in &mut record.units {
        for_each_page(unit, |page, bytes| {
            search(bytes, &numbers);
            replace_in_page(page, bytes);
        });
    }
}

/// The place of parameter data.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Page {
    Inquiry,
    VitalProductData(u8),
    IdentifyDevice,
    Other,
}

fn for_each_page(unit: &mut UnitRecord, mut change: impl FnMut(Page, &mut Vec<u8>)) {
    for answer in &mut unit.answers {
        let RecordedOutcome::Data(bytes) = &mut answer.outcome else { continue };
        let opcode = answer.cdb.first().copied().map(OperationCode::from);
        let page = match (opcode, &*answer.cdb) {
            (Some(OperationCode::Inquiry), [_, 0, ..]) => Page::Inquiry,
            (Some(OperationCode::Inquiry), [_, _, page, ..]) => Page::VitalProductData(*page),
            (Some(OperationCode::AtaPassThrough12 | OperationCode::AtaPassThrough16), _) => {
                Page::IdentifyDevice
            }
            _ => Page::Other,
        };
        change(page, bytes);
    }
}

/// Index of the string with the device's serial number.
fn serial_index(record: &Record) -> Option<u8> {
    const SERIAL_STRING: usize = 16;
    let device = record.descriptors.iter().find(|descriptor| descriptor.kind == DescriptorKind::Device)?;
    device.bytes.get(SERIAL_STRING).copied().filter(|index| *index != 0)
}

/// The serial numbers of the device and its units, in ASCII.
fn numbers(record: &mut Record) -> Vec<Vec<u8>> {
    let mut numbers = Vec::new();
    let index = serial_index(record);
    let is_serial = |of: &&RecordedDescriptor| of.kind == DescriptorKind::String && Some(of.index) == index;
    if let Some(string) = record.descriptors.iter().find(is_serial)
        && let Ok(string) = StringDescriptor::decode(&string.bytes)
    {
        numbers.push(string.to_string().into_bytes());
    }
    for unit in &mut record.units {
        for_each_page(unit, |page, bytes| match page {
            Page::VitalProductData(UNIT_SERIAL_NUMBER) => {
                numbers.push(bytes.get(4..).unwrap_or_default().to_vec());
            }
            Page::VitalProductData(ATA_INFORMATION) => {
                numbers.extend(bytes.get(IDENTIFY_ON_PAGE..).and_then(identify_serial));
            }
            Page::IdentifyDevice => numbers.extend(identify_serial(bytes)),
            _ => {}
        });
    }
    for number in &mut numbers {
        *number = number.trim_ascii().to_vec();
    }
    numbers.retain(|number| number.len() >= SEARCHED_BYTES_MIN && number.is_ascii());
    numbers
}

/// Words 10 to 19 of IDENTIFY DEVICE data: the serial number, two characters a word, the first in the upper byte.
fn identify_serial(identify: &[u8]) -> Option<Vec<u8>> {
    Some(swapped(identify.get(IDENTIFY_SERIAL)?))
}

const IDENTIFY_SERIAL: std::ops::Range<usize> = 20..40;

fn swapped(bytes: &[u8]) -> Vec<u8> {
    bytes.chunks(2).flat_map(|pair| pair.iter().rev().copied()).collect()
}

fn stand_in(byte: &mut u8) {
    *byte = match *byte {
        b'0'..=b'9' => b'0',
        b'A'..=b'Z' => b'A',
        b'a'..=b'z' => b'a',
        other => other,
    };
}

/// Replaces serial numbers wherever they are in the bytes.
fn search(bytes: &mut [u8], numbers: &[Vec<u8>]) {
    for number in numbers {
        let even = &number[..number.len() / 2 * 2];
        let wide: Vec<u8> = number.iter().flat_map(|byte| [*byte, 0]).collect();
        for form in [number.clone(), swapped(even), wide] {
            let mut from = 0;
            while let Some(at) =
                bytes.get(from..).and_then(|rest| rest.windows(form.len()).position(|window| window == form))
            {
                let found = from + at..from + at + form.len();
                bytes[found.clone()].iter_mut().for_each(stand_in);
                from = found.end;
            }
        }
    }
}

fn replace_in_page(page: Page, bytes: &mut [u8]) {
    match page {
        Page::Inquiry => {
            let end = INQUIRY_VENDOR.end.min(bytes.len());
            let vendor = bytes.get_mut(INQUIRY_VENDOR.start..end).unwrap_or_default();
            vendor.iter_mut().for_each(stand_in);
        }
        Page::VitalProductData(UNIT_SERIAL_NUMBER) => bytes.iter_mut().skip(4).for_each(stand_in),
        Page::VitalProductData(DEVICE_IDENTIFICATION) => replace_designators(bytes),
        Page::VitalProductData(ATA_INFORMATION) => {
            replace_in_identify(bytes.get_mut(IDENTIFY_ON_PAGE..).unwrap_or_default());
        }
        Page::IdentifyDevice => replace_in_identify(bytes),
        Page::VitalProductData(_) | Page::Other => {}
    }
}

/// Replaces the part of each name of the Device Identification page that its owner assigns (SPC-4 clause 7.8.6).
fn replace_designators(bytes: &mut [u8]) {
    const TYPE: u8 = 0x0f;
    const T10_VENDOR: u8 = 1;
    const EUI_64: u8 = 2;
    const NAA: u8 = 3;
    const TARGET_PORT: u8 = 4;
    const PORT_GROUPS: [u8; 2] = [5, 6];
    let mut rest = bytes.get_mut(4..).unwrap_or_default();
    while let [_, kind, _, length, ..] = *rest {
        let end = (4 + usize::from(length)).min(rest.len());
        let (descriptor, after) = std::mem::take(&mut rest).split_at_mut(end);
        let name = &mut descriptor[4..];
        match kind & TYPE {
            NAA => replace_naa(name),
            // Three bytes are the company's.
            EUI_64 => name.iter_mut().skip(3).for_each(|byte| *byte = 0),
            T10_VENDOR => name.iter_mut().skip(8 + 16).for_each(stand_in),
            TARGET_PORT => {}
            group if PORT_GROUPS.contains(&group) => {}
            _ => name.iter_mut().for_each(stand_in),
        }
        rest = after;
    }
}

/// Keeps the format and the company of a name in NAA format, and makes the rest zeros.
fn replace_naa(name: &mut [u8]) {
    const UPPER: u8 = 0xf0;
    const LOCALLY_ASSIGNED: u8 = 0x30;
    const EXTENDED: u8 = 0x20;
    let Some(first) = name.first().map(|byte| byte & UPPER) else { return };
    let company_end = match first {
        LOCALLY_ASSIGNED => 0,
        // Format 2 has the company in bytes 2 to 4, after a part that the vendor assigns.
        EXTENDED => 5,
        _ => 3,
    };
    for (at, byte) in name.iter_mut().enumerate().skip(company_end) {
        // The company's last four bits, and the format, share bytes with what follows.
        *byte = if at == 3 && company_end == 3 || at == 0 { *byte & UPPER } else { 0 };
    }
}

/// Replaces serial number (words 10 to 19) and world-wide name (words 108 to 111), and corrects the checksum (word 255).
fn replace_in_identify(identify: &mut [u8]) {
    const NAME: std::ops::Range<usize> = 216..224;
    const WORDS: usize = 512;
    const SIGNATURE: u8 = 0xa5;
    if identify.len() < WORDS {
        return;
    }
    identify[IDENTIFY_SERIAL].iter_mut().for_each(stand_in);
    let mut name = swapped(&identify[NAME]);
    replace_naa(&mut name);
    identify[NAME].copy_from_slice(&swapped(&name));
    if identify[WORDS - 2] == SIGNATURE {
        let sum = identify[..WORDS - 1].iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
        identify[WORDS - 1] = sum.wrapping_neg();
    }
}

/// Replaces the UUID of the Container ID capability.
fn replace_container_id(bos: &mut [u8]) {
    const CONTAINER_ID: u8 = 4;
    let mut rest = bos.get_mut(5..).unwrap_or_default();
    while let [length, _, kind, ..] = *rest {
        let end = usize::from(length).clamp(3, rest.len());
        let (capability, after) = std::mem::take(&mut rest).split_at_mut(end);
        if kind == CONTAINER_ID
            && let Some(uuid) = capability.get_mut(4..ContainerIdCapability::LEN)
        {
            uuid.copy_from_slice(&ContainerIdCapability::of_version_8(0).uuid);
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_number_is_replaced_in_each_of_its_forms() {
        let mut bytes = b"..WD-12ab..DW1-a2b.W\0D\0-\x001\x002\0a\0b\0".to_vec();
        search(&mut bytes, &[b"WD-12ab".to_vec()]);
        assert_eq!(bytes, b"..AA-00aa..AA0-a0b.A\0A\0-\x000\x000\0a\0a\0");
    }

    #[test]
    fn names_keep_their_format_and_company() {
        let mut page = vec![0, 0x83, 0, 24, 1, 3, 0, 8, 0x50, 0x01, 0x23, 0x4f, 1, 2, 3, 4];
        page.extend([1, 2, 0, 8, 0xaa, 0xbb, 0xcc, 1, 2, 3, 4, 5]);
        page.extend([1, 0x14, 0, 4, 0, 0, 0, 1]);
        replace_designators(&mut page);
        assert_eq!(page[8..16], [0x50, 0x01, 0x23, 0x40, 0, 0, 0, 0]);
        assert_eq!(page[20..28], [0xaa, 0xbb, 0xcc, 0, 0, 0, 0, 0]);
        assert_eq!(page[32..], [0, 0, 0, 1]);
        let mut local = [0x31, 2, 3, 4, 5, 6, 7, 8];
        replace_naa(&mut local);
        assert_eq!(local, [0x30, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn the_checksum_of_identify_data_stays_right() {
        let mut identify = vec![7; 512];
        identify[IDENTIFY_SERIAL].copy_from_slice(b"1S2S3S4S5S6S7S8S9S0S");
        identify[510] = 0xa5;
        replace_in_identify(&mut identify);
        assert_eq!(&identify[20..40], b"0A0A0A0A0A0A0A0A0A0A");
        assert_eq!(identify.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)), 0);
    }
}
