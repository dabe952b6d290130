//! Descriptors and standard requests (USB 2.0 and 3.2, clause 9; BOT 1.0 clause 4).
//!
//! Strings are read, but not printed: reports are pasted. Left out: requests that would disturb the host's driver, such as
//! SET CONFIGURATION.

use crate::bus::ControlFailure;
use crate::probe::{Probe, hex};
use crate::test::{Group, Run, Test, Verdict};
use quirks::{BotPlan, Finding, Judgement};
use wire::usb::{
    BcdVersion, DescriptorKind, DeviceDescriptor, Direction, EndpointFeature, Recipient, SetupPacket,
    StandardRequest, StringDescriptor,
};

/// Language of strings, if the device lists none: English (United States).
const ENGLISH: u16 = 0x0409;

/// The fewest characters of a serial number (BOT 1.0 clause 4.1.1).
const SERIAL_CHARS_MIN: usize = 12;

pub(super) const TESTS: &[Test] = &[
    Test {
        id: "usb-device-descriptor",
        group: Group::Usb,
        title: "The device descriptor is the same at every length asked for",
        clause: "USB 3.2 clauses 9.4.3, 9.6.1",
        means: "Some hosts ask for 8 bytes first, others for 64: this drive is not recognised by one of them.",
        run: Run::Alone(device_descriptor),
    },
    Test {
        id: "usb-configuration-length",
        group: Group::Usb,
        title: "The configuration is as long as wTotalLength says",
        clause: "USB 3.2 clauses 9.4.3, 9.6.3",
        means: "Hosts read a part of the configuration and may not see UAS.",
        run: Run::Alone(configuration_length),
    },
    Test {
        id: "usb-bot-interface",
        group: Group::Usb,
        title: "The interface of Bulk-Only Transport can be used",
        clause: "BOT 1.0 clause 4.3",
        means: "Hosts without UAS do not see a drive.",
        run: Run::Alone(|probe| interface_verdict(probe, |interface| unusable(&interface.bot))),
    },
    Test {
        id: "usb-uas-interface",
        group: Group::Usb,
        title: "The interface of UAS can be used: four pipes, each with its pipe usage, with streams at SuperSpeed",
        clause: "UAS-2 clause 5.2",
        means: "Hosts fall back to BOT, which is slower.",
        run: Run::Alone(|probe| interface_verdict(probe, |interface| unusable(&interface.uas))),
    },
    Test {
        id: "usb-serial-number",
        group: Group::Usb,
        title: "The serial number has 12 characters or more, of 0-9 and A-F",
        clause: "BOT 1.0 clause 4.1.1",
        means: "Two drives of this kind at one machine can be taken for each other.",
        run: Run::Alone(serial_number),
    },
    Test {
        id: "usb-bos",
        group: Group::Usb,
        title: "A device of USB 2.1 or later has a binary device object store, as long as it says",
        clause: "USB 3.2 clause 9.6.2",
        means: "The host cannot see that the drive is faster than its link, and leaves power saving off.",
        run: Run::Alone(bos),
    },
    Test {
        id: "usb-unknown-descriptor",
        group: Group::Usb,
        title: "A request for a descriptor that does not exist is stalled",
        clause: "USB 3.2 clause 9.4.3",
        means: "Hosts that look for optional descriptors take other bytes for them, or wait.",
        run: Run::Alone(unknown_descriptor),
    },
    Test {
        id: "usb-status",
        group: Group::Usb,
        title: "GET_STATUS and GET_CONFIGURATION answer as required",
        clause: "USB 3.2 clauses 9.4.2, 9.4.5",
        means: "Power management of the host may misjudge the drive.",
        run: Run::Alone(status),
    },
    Test {
        id: "usb-halt",
        group: Group::Usb,
        title: "An endpoint that is halted says so, and no longer after the halt is cleared",
        clause: "USB 3.2 clauses 9.4.1, 9.4.5, 9.4.9",
        means: "Error recovery, which clears halts, may leave the drive stuck.",
        run: Run::Bot(halt),
    },
];

fn device_descriptor(probe: &mut Probe<'_>) -> Verdict {
    let read = |length| SetupPacket::get_descriptor(DescriptorKind::Device, 0, length);
    let Ok(whole) = probe.control_in(read(DeviceDescriptor::LEN as u16)) else {
        return Verdict::Fail("the device does not return its descriptor".into());
    };
    if DeviceDescriptor::decode(&whole).is_err() || whole.len() != DeviceDescriptor::LEN {
        return Verdict::Fail(format!("it is not a device descriptor of 18 bytes: {}", hex(&whole)));
    }
    for length in [8, 64, 255] {
        let expected = &whole[..whole.len().min(length)];
        match probe.control_in(read(length as u16)) {
            Ok(bytes) if bytes == expected => {}
            Ok(bytes) => {
                return Verdict::Fail(format!(
                    "asked for {length} bytes, the device returns {}",
                    hex(&bytes)
                ));
            }
            Err(_) => return Verdict::Fail(format!("asked for {length} bytes, the device does not answer")),
        }
    }
    Verdict::Pass
}

fn configuration_length(probe: &mut Probe<'_>) -> Verdict {
    const HEAD: usize = 9;
    let read = |length| SetupPacket::get_descriptor(DescriptorKind::Configuration, 0, length);
    let Ok(head) = probe.control_in(read(HEAD as u16)) else {
        return Verdict::Fail("the device does not return the head of its configuration".into());
    };
    let &[_, _, low, high, ..] = &head[..] else {
        return Verdict::Fail(format!("the head is cut short: {}", hex(&head)));
    };
    let total = u16::from_le_bytes([low, high]);
    for length in [total, total.saturating_add(64)] {
        match probe.control_in(read(length)) {
            Ok(bytes) if bytes.len() == usize::from(total) && bytes.starts_with(&head) => {}
            Ok(bytes) => {
                let got = bytes.len();
                return Verdict::Fail(format!(
                    "wTotalLength is {total}; asked for {length}, it returns {got} bytes"
                ));
            }
            Err(_) => return Verdict::Fail(format!("asked for {length} bytes, the device does not answer")),
        }
    }
    Verdict::Pass
}

/// Judges the first interface of mass storage.
fn interface_verdict(
    probe: &Probe<'_>,
    judge: impl FnOnce(&quirks::InterfaceProbe) -> Option<&Finding>,
) -> Verdict {
    match probe.device().probe.interfaces.first().map(judge) {
        None => Verdict::Fail("there is no interface of class 08".into()),
        Some(None) => Verdict::Pass,
        // A transport that is not offered is no fault.
        Some(Some(finding))
            if matches!(finding.rule, quirks::Rule::BotSetting | quirks::Rule::UasSetting) =>
        {
            Verdict::NotTested(format!("the device does not offer it: {}", finding.evidence))
        }
        Some(Some(finding)) => Verdict::Fail(format!("{}: {}", finding.rule, finding.evidence)),
    }
}

/// Returns the rule that makes a transport unusable.
fn unusable<P>(judgement: &Judgement<P>) -> Option<&Finding> {
    judgement.decisive()
}

fn serial_number(probe: &mut Probe<'_>) -> Verdict {
    if probe.device().bot.is_none() {
        return Verdict::NotTested("the rule is for devices with BOT".into());
    }
    let index = probe.device().probe.device.serial_string;
    if index == 0 {
        return Verdict::Fail("the device has no serial number".into());
    }
    let read = |index| {
        let setup = SetupPacket::get_descriptor(DescriptorKind::String, index, 255);
        SetupPacket { index: if index == 0 { 0 } else { ENGLISH }, ..setup }
    };
    let Ok(bytes) = probe.control_in(read(index)) else {
        return Verdict::Fail("the device does not return the string of its serial number".into());
    };
    let Ok(string) = StringDescriptor::decode(&bytes) else {
        return Verdict::Fail(format!("it is not a string descriptor: {}", hex(&bytes)));
    };
    // The number itself stays out of the words: reports are pasted.
    let serial: String = string.chars().collect();
    let (chars, last) = (serial.chars().count(), serial.chars().rev().take(SERIAL_CHARS_MIN));
    let is_hex = |c: &char| matches!(c, '0'..='9' | 'A'..='F');
    match last.clone().find(|c| !is_hex(c)) {
        _ if chars < SERIAL_CHARS_MIN => Verdict::Fail(format!("it has {chars} characters")),
        Some(other) => Verdict::Fail(format!("one of its last 12 characters is {other:?}")),
        None => Verdict::Pass,
    }
}

fn bos(probe: &mut Probe<'_>) -> Verdict {
    const HEAD: u16 = 5;
    let version = probe.device().probe.device.usb_version;
    let read = |length| SetupPacket::get_descriptor(DescriptorKind::Bos, 0, length);
    let head = probe.control_in(read(HEAD));
    if version < BcdVersion(0x0201) {
        return match head {
            Ok(_) => Verdict::Note(format!("the device is of USB {version} and has one nevertheless")),
            Err(_) => Verdict::Pass,
        };
    }
    let Ok(head) = head else { return Verdict::Fail(format!("the device is of USB {version} and has none")) };
    let &[5, kind, low, high, capabilities] = &head[..] else {
        return Verdict::Fail(format!("its head is {}", hex(&head)));
    };
    let total = u16::from_le_bytes([low, high]);
    let Ok(bytes) = probe.control_in(read(total)) else {
        return Verdict::Fail(format!("asked for {total} bytes, the device does not answer"));
    };
    let mut rest = bytes.get(usize::from(HEAD)..).unwrap_or_default();
    let mut found = 0;
    while let &[length, _, _, ..] = rest {
        if length < 3 {
            break;
        }
        found += 1;
        rest = rest.get(usize::from(length)..).unwrap_or_default();
    }
    let is_right = DescriptorKind::from(kind) == DescriptorKind::Bos
        && bytes.len() == usize::from(total)
        && found == capabilities
        && rest.is_empty();
    Verdict::of(is_right, || {
        format!(
            "it announces {total} bytes and {capabilities} capabilities, and has {} and {found}",
            bytes.len()
        )
    })
}

fn unknown_descriptor(probe: &mut Probe<'_>) -> Verdict {
    const RESERVED: u8 = 0x77;
    let setup = SetupPacket::get_descriptor(DescriptorKind::from(RESERVED), 0, 64);
    match probe.control_in(setup) {
        Err(ControlFailure::Stalled) => Verdict::Pass,
        Err(ControlFailure::NoAnswer) => Verdict::Fail("the device does not answer".into()),
        Ok(bytes) => Verdict::Fail(format!("the device returns {} bytes: {}", bytes.len(), hex(&bytes))),
    }
}

fn status(probe: &mut Probe<'_>) -> Verdict {
    let read = |request, length| SetupPacket {
        direction: Direction::In,
        length,
        ..SetupPacket::of_standard(Recipient::Device, request, 0)
    };
    /// Self-powered, remote wake-up, U1, U2, LTM.
    const DEFINED: u16 = 0x001f;
    match probe.control_in(read(StandardRequest::GetStatus, 2)).as_deref() {
        Ok(&[low, high]) if u16::from_le_bytes([low, high]) & !DEFINED == 0 => {}
        Ok(bytes) => return Verdict::Fail(format!("GET_STATUS returns {}", hex(bytes))),
        Err(_) => return Verdict::Fail("the device does not answer GET_STATUS".into()),
    }
    let expected = probe.device().probe.configuration.head.value;
    match probe.control_in(read(StandardRequest::GetConfiguration, 1)).as_deref() {
        Ok(&[value]) if value == expected => Verdict::Pass,
        Ok(bytes) => Verdict::Fail(format!("configuration {expected} is in use; it returns {}", hex(bytes))),
        Err(_) => Verdict::Fail("the device does not answer GET_CONFIGURATION".into()),
    }
}

fn halt(probe: &mut Probe<'_>, plan: &BotPlan) -> Verdict {
    for end in [plan.bulk_in, plan.bulk_out] {
        let address = u8::from(end.address);
        let of_endpoint = |request, value| SetupPacket {
            index: address.into(),
            ..SetupPacket::of_standard(Recipient::Endpoint, request, value)
        };
        let ask =
            SetupPacket { direction: Direction::In, length: 2, ..of_endpoint(StandardRequest::GetStatus, 0) };
        let set = of_endpoint(StandardRequest::SetFeature, EndpointFeature::Halt.into());
        if probe.control(set).is_err() {
            return Verdict::Fail(format!("endpoint {} rejects SET_FEATURE(ENDPOINT_HALT)", end.address));
        }
        let halted = probe.control_in(ask);
        probe.clear_halt(end.address);
        let cleared = probe.control_in(ask);
        if halted.as_deref() != Ok(&[1, 0]) || cleared.as_deref() != Ok(&[0, 0]) {
            return Verdict::Fail(format!(
                "endpoint {}: GET_STATUS returns {halted:02x?} while halted, {cleared:02x?} afterwards",
                end.address
            ));
        }
    }
    Verdict::Pass
}
