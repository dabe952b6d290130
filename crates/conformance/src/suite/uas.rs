//! Information units and task management of USB Attached SCSI (UAS-2 clauses 4 and 6).
//!
//! INQUIRY is the command of all tests: no device may fail it for a unit attention. Left out: data to the device.

use crate::exchange::{AnnouncedData, UasExchange};
use crate::probe::Probe;
use crate::test::{Group, Run, Test, Verdict};
use bus::TransferStatus;
use quirks::UasPlan;
use wire::scsi::lun::{Lun, LunField};
use wire::scsi::opcode::OperationCode;
use wire::scsi::sense::AdditionalSense;
use wire::uas::{CommandIu, ResponseCode, TaskAttribute, TaskManagementFunction, TaskManagementIu};

const STUCK: &str =
    "Linux resets such a drive, which shows as `uas_eh_abort_handler` in its log, or the drive hangs.";

/// Bytes of standard INQUIRY data that every device has.
const INQUIRY_BYTES: u8 = 36;

/// The data phase of INQUIRY.
const INQUIRY_DATA: AnnouncedData<'_> = AnnouncedData::In(INQUIRY_BYTES as u32);

/// A unit that no drive has.
const NO_UNIT: u16 = 200;

/// Times that every stream is used.
const STREAM_ROUNDS: usize = 4;

pub(super) const TESTS: &[Test] = &[
    Test {
        id: "uas-command",
        group: Group::Uas,
        title: "A COMMAND IU is answered with a SENSE IU of its tag",
        clause: "UAS-2 clause 6.2.2",
        means: STUCK,
        run: Run::Uas(|probe, plan, _| answered(&inquiry(probe, plan, 1), 1)),
    },
    Test {
        id: "uas-highest-tag",
        group: Group::Uas,
        title: "The highest stream that the device announces can be used",
        clause: "UAS-2 clause 4.3",
        means: "Under load the drive hangs or is reset.",
        run: Run::Uas(|probe, plan, tag_max| answered(&inquiry(probe, plan, tag_max), tag_max)),
    },
    Test {
        id: "uas-all-tags",
        group: Group::Uas,
        title: "Commands on all tags at once end, each with its own tag and data",
        clause: "UAS-2 clause 4.3",
        means: "Under load data of one request may arrive in another.",
        run: Run::Uas(all_tags),
    },
    Test {
        id: "uas-unknown-iu",
        group: Group::Uas,
        title: "An IU of an unknown kind is answered: invalid information unit",
        clause: "UAS-2 clause 6.2.6",
        means: STUCK,
        run: Run::Uas(|probe, plan, _| {
            let mut bytes = task_management(TaskManagementFunction::QueryTask, Lun::Unit(0)).encode();
            bytes[0] = 0x7f;
            responds(probe, plan, &bytes, &[ResponseCode::InvalidIu])
        }),
    },
    Test {
        id: "uas-short-iu",
        group: Group::Uas,
        title: "A COMMAND IU of 16 bytes is answered: invalid information unit",
        clause: "UAS-2 clause 6.2.6",
        means: STUCK,
        run: Run::Uas(|probe, plan, _| {
            let iu = inquiry_iu(1);
            responds(probe, plan, &iu[..16], &[ResponseCode::InvalidIu])
        }),
    },
    Test {
        id: "uas-command-lun",
        group: Group::Uas,
        title: "A command to a unit that does not exist does not fail the transport",
        clause: "UAS-2 clause 6.2.2",
        means: STUCK,
        run: Run::Uas(|probe, plan, _| {
            let cdb = [OperationCode::TestUnitReady.into(), 0, 0, 0, 0, 0];
            let exchange =
                probe.uas_command(plan, 1, LunField::from(Lun::Unit(NO_UNIT)), &cdb, AnnouncedData::None);
            let is_refused = exchange.scsi().is_some_and(|answer| !answer.is_good())
                || exchange.response().is_some_and(|iu| iu.code == ResponseCode::IncorrectLun);
            let verdict = Verdict::of(is_refused, || exchange.describe());
            then_works(probe, plan, verdict)
        }),
    },
    Test {
        id: "uas-sense",
        group: Group::Uas,
        title: "Each SENSE IU has the sense data of the command that failed",
        clause: "UAS-2 clause 6.2.4, SAM-5 clause 5.13",
        means: "Hosts take one error for another: they retry what cannot succeed, or give up what can.",
        run: Run::Uas(own_sense),
    },
    Test {
        id: "uas-tmf-lun",
        group: Group::Uas,
        title: "Task management for a unit that does not exist is answered: incorrect logical unit number",
        clause: "UAS-2 clause 6.2.6",
        means: STUCK,
        run: Run::Uas(|probe, plan, _| {
            let iu = task_management(TaskManagementFunction::LogicalUnitReset, Lun::Unit(NO_UNIT));
            responds(probe, plan, &iu.encode(), &[ResponseCode::IncorrectLun])
        }),
    },
    Test {
        id: "uas-abort-task",
        group: Group::Uas,
        title: "ABORT TASK of a command that has ended: complete",
        clause: "UAS-2 clause 6.2.7",
        means: STUCK,
        run: Run::Uas(|probe, plan, _| manages(probe, plan, TaskManagementFunction::AbortTask)),
    },
    Test {
        id: "uas-abort-task-set",
        group: Group::Uas,
        title: "ABORT TASK SET is answered",
        clause: "UAS-2 clause 6.2.7",
        means: STUCK,
        run: Run::Uas(|probe, plan, _| manages(probe, plan, TaskManagementFunction::AbortTaskSet)),
    },
    Test {
        id: "uas-clear-task-set",
        group: Group::Uas,
        title: "CLEAR TASK SET is answered",
        clause: "UAS-2 clause 6.2.7",
        means: STUCK,
        run: Run::Uas(|probe, plan, _| manages(probe, plan, TaskManagementFunction::ClearTaskSet)),
    },
    Test {
        id: "uas-clear-aca",
        group: Group::Uas,
        title: "CLEAR ACA is answered",
        clause: "UAS-2 clause 6.2.7",
        means: STUCK,
        run: Run::Uas(|probe, plan, _| manages(probe, plan, TaskManagementFunction::ClearAca)),
    },
    Test {
        id: "uas-query-task",
        group: Group::Uas,
        title: "QUERY TASK of a command that has ended: not there",
        clause: "UAS-2 clause 6.2.7",
        means: STUCK,
        run: Run::Uas(|probe, plan, _| {
            let exchange = manage(probe, plan, TaskManagementFunction::QueryTask);
            let code = exchange.response().map(|iu| iu.code);
            let verdict = match code {
                Some(ResponseCode::TaskManagementSucceeded) => {
                    Verdict::Fail("the device says that the command is still there".into())
                }
                _ => judged(&exchange),
            };
            then_works(probe, plan, verdict)
        }),
    },
    Test {
        id: "uas-query-task-set",
        group: Group::Uas,
        title: "QUERY TASK SET while no command runs is answered",
        clause: "UAS-2 clause 6.2.7",
        means: STUCK,
        run: Run::Uas(|probe, plan, _| manages(probe, plan, TaskManagementFunction::QueryTaskSet)),
    },
    Test {
        id: "uas-query-event",
        group: Group::Uas,
        title: "QUERY ASYNCHRONOUS EVENT is answered",
        clause: "UAS-2 clause 6.2.7",
        means: STUCK,
        run: Run::Uas(|probe, plan, _| manages(probe, plan, TaskManagementFunction::QueryAsynchronousEvent)),
    },
    Test {
        id: "uas-unit-reset",
        group: Group::Uas,
        title: "LOGICAL UNIT RESET is answered, and the unit works afterwards",
        clause: "UAS-2 clause 6.2.7",
        means: "Linux' second step of error recovery fails, so that it resets the port.",
        run: Run::Uas(|probe, plan, _| manages(probe, plan, TaskManagementFunction::LogicalUnitReset)),
    },
    Test {
        id: "uas-nexus-reset",
        group: Group::Uas,
        title: "I_T NEXUS RESET is answered, and the unit works afterwards",
        clause: "UAS-2 clause 6.2.7",
        means: STUCK,
        run: Run::Uas(|probe, plan, _| manages(probe, plan, TaskManagementFunction::ItNexusReset)),
    },
    Test {
        id: "uas-unknown-tmf",
        group: Group::Uas,
        title: "An unknown task management function: not supported",
        clause: "UAS-2 clause 6.2.6",
        means: STUCK,
        run: Run::Uas(|probe, plan, _| {
            const RESERVED: u8 = 0x7e;
            let iu = task_management(TaskManagementFunction::from(RESERVED), Lun::Unit(0));
            let codes = [ResponseCode::TaskManagementNotSupported, ResponseCode::InvalidIu];
            responds(probe, plan, &iu.encode(), &codes)
        }),
    },
];

fn inquiry_cdb() -> [u8; 6] {
    [OperationCode::Inquiry.into(), 0, 0, 0, INQUIRY_BYTES, 0]
}

fn inquiry_iu(tag: u16) -> [u8; 32] {
    let mut cdb = [0; 16];
    cdb[..6].copy_from_slice(&inquiry_cdb());
    let attribute = TaskAttribute::Simple;
    CommandIu { tag, attribute, priority: 0, lun: [0; 8], cdb: &cdb, additional_cdb: &[] }.encode()
}

fn inquiry(probe: &mut Probe<'_>, plan: &UasPlan, tag: u16) -> UasExchange {
    probe.uas_command(plan, tag, LunField::default(), &inquiry_cdb(), INQUIRY_DATA)
}

/// The INQUIRY completed with GOOD, with this tag and its data.
fn answered(exchange: &UasExchange, tag: u16) -> Verdict {
    if let Some(ready) = exchange.ready.filter(|ready| *ready != tag) {
        return Verdict::Fail(format!("READ READY has tag {ready}, the command {tag}"));
    }
    let is_good = exchange.scsi().is_some_and(|answer| answer.is_good());
    let is_whole = exchange.data.len() == usize::from(INQUIRY_BYTES);
    Verdict::of(is_good && is_whole && exchange.tag() == Some(tag), || {
        format!("{}, with {} bytes of data", exchange.describe(), exchange.data.len())
    })
}

/// Two commands that fail for different reasons, one after the other.
fn own_sense(probe: &mut Probe<'_>, plan: &UasPlan, _: u16) -> Verdict {
    /// No standard gives this operation code a meaning.
    const UNKNOWN: u8 = 0x1f;
    /// A vital product data page that is reserved.
    const RESERVED_PAGE: u8 = 0x7f;
    let commands = [
        ([UNKNOWN, 0, 0, 0, 0, 0], AdditionalSense::INVALID_COMMAND_OPERATION_CODE),
        (
            [OperationCode::Inquiry.into(), 1, RESERVED_PAGE, 0, INQUIRY_BYTES, 0],
            AdditionalSense::INVALID_FIELD_IN_CDB,
        ),
    ];
    if !probe.is_ready_over_uas(plan) {
        return Verdict::NotTested("the device does not get ready over UAS".into());
    }
    for (cdb, expected) in commands {
        let exchange = probe.uas_command(plan, 1, LunField::default(), &cdb, INQUIRY_DATA);
        let Some(answer) = exchange.scsi() else { return Verdict::Fail(exchange.describe()) };
        let is_own = answer.sense.is_some_and(|sense| sense.additional == expected);
        if answer.is_good() || !is_own {
            let found = answer.describe();
            return Verdict::Fail(format!("{expected} is due for the command {:02X}h: {found}", cdb[0]));
        }
    }
    Verdict::Pass
}

fn all_tags(probe: &mut Probe<'_>, plan: &UasPlan, tag_max: u16) -> Verdict {
    /// Three transfers each.
    const AT_ONCE: u16 = crate::bus::SLOTS / 3;
    let tags = tag_max.min(AT_ONCE);
    if !matches!(plan.matching, quirks::Matching::Streams { .. }) {
        return Verdict::NotTested("without streams, the device chooses whose data move".into());
    }
    let expected = inquiry(probe, plan, 1).data;
    for _ in 0..STREAM_ROUNDS {
        let mut pending = Vec::new();
        for tag in 1..=tags {
            pending.push((tag, probe.uas_start(plan, tag, &inquiry_iu(tag), INQUIRY_DATA)));
        }
        for (tag, mut one) in pending {
            one.exchange.sent = probe.finish(one.command).map(|completed| completed.status);
            let exchange = probe.uas_finish(plan, one);
            let verdict = answered(&exchange, tag);
            if verdict != Verdict::Pass {
                return verdict;
            }
            if exchange.data != expected {
                return Verdict::Fail(format!("the data of tag {tag} are not those of the command"));
            }
        }
    }
    Verdict::Pass
}

const fn task_management(function: TaskManagementFunction, lun: Lun) -> TaskManagementIu {
    let lun = match lun {
        Lun::Unit(unit) => [0, unit as u8, 0, 0, 0, 0, 0, 0],
        Lun::WellKnown(_) => [0; 8],
    };
    TaskManagementIu { tag: 1, function, managed_tag: 2, lun }
}

fn manage(probe: &mut Probe<'_>, plan: &UasPlan, function: TaskManagementFunction) -> UasExchange {
    // A command that has ended is what most functions are about.
    inquiry(probe, plan, 2);
    probe.uas(plan, 1, &task_management(function, Lun::Unit(0)).encode(), AnnouncedData::None)
}

/// A task management function is answered by a RESPONSE IU of its tag, and the unit works afterwards.
fn manages(probe: &mut Probe<'_>, plan: &UasPlan, function: TaskManagementFunction) -> Verdict {
    let exchange = manage(probe, plan, function);
    then_works(probe, plan, judged(&exchange))
}

fn judged(exchange: &UasExchange) -> Verdict {
    match exchange.response() {
        Some(iu) if iu.tag != 1 => Verdict::Fail(format!("the RESPONSE IU has tag {}, not 1", iu.tag)),
        Some(iu) => match iu.code {
            ResponseCode::TaskManagementComplete | ResponseCode::TaskManagementSucceeded => Verdict::Pass,
            ResponseCode::TaskManagementNotSupported => {
                Verdict::Note("the device does not support this function".into())
            }
            code => Verdict::Fail(format!("the device answers {code}")),
        },
        None => Verdict::Fail(exchange.describe()),
    }
}

/// An IU is answered by a RESPONSE IU with one of these codes, and the unit works afterwards.
fn responds(probe: &mut Probe<'_>, plan: &UasPlan, iu: &[u8], codes: &[ResponseCode]) -> Verdict {
    let exchange = probe.uas(plan, 1, iu, AnnouncedData::None);
    if exchange.sent == Some(TransferStatus::Stall) {
        return Verdict::Fail("the command pipe is stalled".into());
    }
    let is_right = exchange.response().is_some_and(|iu| iu.tag == 1 && codes.contains(&iu.code));
    then_works(probe, plan, Verdict::of(is_right, || exchange.describe()))
}

/// The verdict, unless the device no longer works.
fn then_works(probe: &mut Probe<'_>, plan: &UasPlan, verdict: Verdict) -> Verdict {
    const TAG: u16 = 3;
    // A unit attention does not fail INQUIRY.
    let exchange = inquiry(probe, plan, TAG);
    match answered(&exchange, TAG) {
        Verdict::Pass => verdict,
        _ => Verdict::Fail(format!("afterwards INQUIRY fails: {}", exchange.describe())),
    }
}
