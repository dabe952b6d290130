//! The virtual drive passes every test; and each test finds a drive that breaks its rule.

mod liar;

use bus::Speed;
use device::Transports;
use liar::{Answer, HONEST, Liar, Lie, alter_cdb, alter_csw};
use std::collections::BTreeSet;
use uaskit_conformance::{
    CheckPlan, ControlFailure, DeviceBus, Scorecard, TestedDevice, Verdict, VirtualBus, VirtualDriveConfig,
    check, suite,
};
use wire::bot::{Cbw, ClassRequest, Csw, CswStatus};
use wire::scsi::opcode::OperationCode;
use wire::uas::{CommandIu, IuId, ResponseCode};
use wire::usb::{DescriptorKind, Recipient, RequestKind, SetupPacket, StandardRequest};

fn drive(speed: Speed, transports: Transports) -> VirtualBus {
    VirtualDriveConfig::new(speed, transports).plug().expect("some megabytes of memory")
}

fn run(bus: &mut dyn DeviceBus, speed: Speed) -> Scorecard {
    let device = TestedDevice::read(bus, speed).expect("descriptors");
    check(bus, &device, CheckPlan::of(&suite::read_only()), |_| true)
}

fn complaints(scorecard: &Scorecard) -> Vec<String> {
    let bad = |verdict: &Verdict| matches!(verdict, Verdict::Fail(_) | Verdict::Warning(_));
    let bad = scorecard.outcomes.iter().filter(|outcome| bad(&outcome.verdict));
    bad.map(|outcome| {
        let steps: Vec<String> = outcome.steps.iter().map(ToString::to_string).collect();
        format!("{}: {:?}\n  {}", outcome.test.id, outcome.verdict, steps.join("\n  "))
    })
    .collect()
}

#[test]
fn an_honest_drive_passes_everything() {
    for speed in [Speed::Full, Speed::High, Speed::Super] {
        for transports in [Transports::Dual, Transports::BotOnly, Transports::UasOnly] {
            let scorecard = run(&mut drive(speed, transports), speed);
            let complaints = complaints(&scorecard);
            assert!(complaints.is_empty(), "{speed}, {transports:?}:\n{}", complaints.join("\n"));
            let passed = scorecard.count(None, "pass");
            assert!(passed >= 20, "{speed}, {transports:?}: only {passed} tests passed");
        }
    }
}

/// Leaves out the last byte.
fn shorten(answer: &mut Answer) {
    if let Ok(bytes) = answer {
        bytes.pop();
    }
}

/// Whether this is GET_DESCRIPTOR of a kind.
fn asks_for(setup: &SetupPacket, kind: DescriptorKind) -> bool {
    setup.standard() == Some(StandardRequest::GetDescriptor) && setup.descriptor().0 == kind
}

/// Gives RESPONSE IUs of one code another one.
fn alter_response(bytes: &mut [u8], from: ResponseCode, to: ResponseCode) {
    if bytes.first() == Some(&IuId::Response.into()) && bytes[7] == u8::from(from) {
        bytes[7] = to.into();
    }
}

/// Changes a byte of the data that a command returned, which are neither a CSW nor an IU.
fn alter_data(opcode: OperationCode, cdb: &[u8], bytes: &mut [u8], at: usize) {
    let is_data = Csw::decode(bytes).is_err();
    if is_data && cdb.first() == Some(&opcode.into()) && bytes.len() > at {
        bytes[at] = bytes[at].wrapping_add(1);
    }
}

const LIES: &[Lie] = &[
    Lie {
        name: "short device descriptor",
        found_by: &["usb-device-descriptor"],
        control: |setup, answer| {
            if asks_for(setup, DescriptorKind::Device) && setup.length == 64 {
                answer.iter_mut().for_each(|bytes| bytes.truncate(8));
            }
        },
        ..HONEST
    },
    Lie {
        name: "cut configuration",
        found_by: &["usb-configuration-length"],
        control: |setup, answer| {
            if asks_for(setup, DescriptorKind::Configuration) && setup.length < 255 && setup.length > 9 {
                shorten(answer);
            }
        },
        ..HONEST
    },
    Lie {
        name: "packets of 16 bytes",
        found_by: &["usb-bot-interface", "usb-uas-interface"],
        control: |setup, answer| {
            if let Ok(bytes) = answer
                && asks_for(setup, DescriptorKind::Configuration)
            {
                for at in 0..bytes.len().saturating_sub(6) {
                    // Endpoint descriptors of bulk endpoints.
                    if bytes[at..at + 2] == [7, 5] && bytes[at + 3] == 2 {
                        bytes[at + 4..at + 6].copy_from_slice(&[16, 0]);
                    }
                }
            }
        },
        ..HONEST
    },
    Lie {
        name: "short serial number",
        found_by: &["usb-serial-number"],
        control: |setup, answer| {
            if asks_for(setup, DescriptorKind::String) {
                *answer = Ok(vec![6, 3, b'4', 0, b'2', 0]);
            }
        },
        ..HONEST
    },
    Lie {
        name: "cut BOS",
        found_by: &["usb-bos"],
        control: |setup, answer| {
            if asks_for(setup, DescriptorKind::Bos) && setup.length > 5 {
                shorten(answer);
            }
        },
        ..HONEST
    },
    Lie {
        name: "a descriptor of every kind",
        found_by: &["usb-unknown-descriptor"],
        control: |setup, answer| {
            if setup.standard() == Some(StandardRequest::GetDescriptor) && answer.is_err() {
                *answer = Ok(vec![2, 0x77]);
            }
        },
        ..HONEST
    },
    Lie {
        name: "status without halts and with reserved bits",
        found_by: &["usb-status", "usb-halt"],
        control: |setup, answer| {
            if setup.standard() == Some(StandardRequest::GetStatus) {
                let is_endpoint = setup.recipient == Recipient::Endpoint;
                *answer = Ok(if is_endpoint { vec![0, 0] } else { vec![0xff, 0xff] });
            }
        },
        ..HONEST
    },
    Lie {
        name: "32 as highest unit",
        found_by: &["bot-max-lun", "bot-max-lun-strict"],
        control: |setup, answer| {
            if setup.kind == RequestKind::Class && setup.request == ClassRequest::GET_MAX_LUN {
                *answer = Ok(vec![32]);
            }
        },
        ..HONEST
    },
    Lie {
        name: "residue one too many",
        found_by: &[
            "bot-case-1",
            "bot-case-4",
            "bot-case-5",
            "bot-case-6",
            "bot-case-9",
            "bot-case-11",
            "bot-case-12",
            "bot-odd-lengths",
            "bot-second-command",
        ],
        received: |_, bytes| alter_csw(bytes, |csw| csw.residue = csw.residue.wrapping_add(1)),
        ..HONEST
    },
    Lie {
        name: "no phase errors",
        found_by: &["bot-case-2", "bot-case-3", "bot-case-7", "bot-case-8", "bot-case-10", "bot-case-13"],
        received: |_, bytes| {
            alter_csw(bytes, |csw| {
                if csw.status == CswStatus::PhaseError {
                    csw.status = CswStatus::Passed;
                }
            });
        },
        ..HONEST
    },
    Lie {
        name: "tags cut to 31 bits",
        found_by: &["bot-tag"],
        received: |_, bytes| alter_csw(bytes, |csw| csw.tag &= 0x7fff_ffff),
        ..HONEST
    },
    Lie {
        name: "takes every CBW",
        found_by: &["bot-cbw-signature", "bot-cbw-short", "bot-cbw-long"],
        sent: |bytes| {
            if matches!(bytes.len(), 30..=32) && bytes.starts_with(b"USB") {
                bytes.resize(Cbw::LEN, 0);
                bytes[3] = b'C';
            }
        },
        ..HONEST
    },
    Lie {
        name: "no mass storage reset",
        found_by: &[
            "bot-cbw-lun",
            "bot-cbw-length",
            "bot-cbw-reserved",
            "bot-reset-before-data",
            "bot-reset-within-data",
            "bot-reset-before-status",
            "bot-reset-idle",
        ],
        control: |setup, answer| {
            if setup.kind == RequestKind::Class && setup.request == ClassRequest::MASS_STORAGE_RESET {
                *answer = Err(ControlFailure::Stalled);
            }
        },
        ..HONEST
    },
    Lie {
        name: "tags of IUs one too high",
        found_by: &[
            "uas-command",
            "uas-highest-tag",
            "uas-abort-task",
            "uas-abort-task-set",
            "uas-clear-task-set",
            "uas-clear-aca",
            "uas-query-task-set",
            "uas-query-event",
            "uas-unit-reset",
            "uas-nexus-reset",
        ],
        received: |_, bytes| {
            if matches!(IuId::from(bytes[0]), IuId::Sense | IuId::Response) && Csw::decode(bytes).is_err() {
                bytes[3] = bytes[3].wrapping_add(1);
            }
        },
        ..HONEST
    },
    Lie {
        name: "QUERY TASK finds what has ended",
        found_by: &["uas-query-task"],
        received: |_, bytes| {
            alter_response(
                bytes,
                ResponseCode::TaskManagementComplete,
                ResponseCode::TaskManagementSucceeded,
            );
        },
        ..HONEST
    },
    Lie {
        name: "refuses nothing",
        found_by: &["uas-unknown-iu", "uas-short-iu", "uas-tmf-lun", "uas-unknown-tmf"],
        received: |_, bytes| {
            for code in [
                ResponseCode::InvalidIu,
                ResponseCode::IncorrectLun,
                ResponseCode::TaskManagementNotSupported,
            ] {
                alter_response(bytes, code, ResponseCode::TaskManagementComplete);
            }
        },
        ..HONEST
    },
    Lie {
        name: "one unit under every number",
        found_by: &["uas-command-lun"],
        sent: |bytes| {
            if bytes.first() == Some(&IuId::Command.into()) && bytes.len() == CommandIu::LEN {
                bytes[8..16].fill(0);
            }
        },
        ..HONEST
    },
    Lie {
        name: "changed INQUIRY data",
        found_by: &["scsi-inquiry", "scsi-vpd-pages"],
        received: |cdb, bytes| {
            let at = if cdb.get(1) == Some(&1) { 1 } else { 4 };
            alter_data(OperationCode::Inquiry, cdb, bytes, at);
        },
        ..HONEST
    },
    Lie {
        name: "knows every page and every command",
        found_by: &["scsi-vpd-unknown", "scsi-unknown-opcode"],
        sent: |bytes| {
            alter_cdb(bytes, &[0x12, 1, 0x7f], &[0x12, 1, 0]);
            alter_cdb(bytes, &[0x1f], &[0x00]);
        },
        ..HONEST
    },
    Lie {
        name: "old sense",
        found_by: &["scsi-sense-after-good"],
        received: |cdb, bytes| alter_data(OperationCode::RequestSense, cdb, bytes, 2),
        ..HONEST
    },
    Lie {
        name: "capacity one block too high",
        found_by: &["scsi-capacity", "scsi-last-block"],
        received: |cdb, bytes| alter_data(OperationCode::ReadCapacity10, cdb, bytes, 3),
        ..HONEST
    },
    Lie {
        name: "changed mode data",
        found_by: &["scsi-mode-sense"],
        received: |cdb, bytes| alter_data(OperationCode::ModeSense6, cdb, bytes, 0),
        ..HONEST
    },
    Lie {
        name: "another LUN list",
        found_by: &["scsi-report-luns"],
        received: |cdb, bytes| alter_data(OperationCode::ReportLuns, cdb, bytes, 9),
        ..HONEST
    },
];

/// The tests that complain of a drive with this lie.
fn complaining(lie: Lie, transports: Transports) -> BTreeSet<&'static str> {
    let drive = drive(Speed::Super, transports);
    let mut liar = Liar { drive, lie, cdb: Vec::new() };
    let scorecard = run(&mut liar, Speed::Super);
    let bad = |verdict: &Verdict| matches!(verdict, Verdict::Fail(_) | Verdict::Warning(_));
    let bad = scorecard.outcomes.iter().filter(|outcome| bad(&outcome.verdict));
    bad.map(|outcome| outcome.test.id).collect()
}

#[test]
fn each_lie_is_found_and_each_test_finds_one() {
    let mut finding = BTreeSet::new();
    for lie in LIES {
        let found = complaining(*lie, Transports::Dual);
        for expected in lie.found_by {
            assert!(
                found.contains(expected),
                "{}: {expected} does not find it; found by {found:?}",
                lie.name
            );
        }
        finding.extend(found);
    }
    let blind: Vec<&str> =
        suite::read_only().iter().map(|test| test.id).filter(|id| !finding.contains(id)).collect();
    assert!(blind.is_empty(), "tests that find nothing: {blind:?}");
}
