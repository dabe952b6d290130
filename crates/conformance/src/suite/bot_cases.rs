//! The thirteen cases: what the host announces against what the device means to move (BOT 1.0 clause 6.7).
//!
//! The commands have no effect on the medium: TEST UNIT READY for no data, INQUIRY for data to the host, and MODE SELECT(6) of
//! an empty parameter list header for data to the device.

use crate::exchange::{AnnouncedData, BotExchange};
use crate::probe::Probe;
use crate::test::{Group, Run, Test, Verdict};
use bus::TransferStatus;
use quirks::BotPlan;
use wire::bot::{Cbw, CswStatus};
use wire::scsi::opcode::OperationCode;
use wire::usb::Direction;

/// Bytes of standard INQUIRY data that every device has.
const INQUIRY_BYTES: u8 = 36;

/// Bytes of a mode parameter header, all that MODE SELECT(6) sends here.
const HEADER_BYTES: u8 = 4;

/// Bytes that a host announces where the device means to move fewer.
const MORE: u32 = 512;

/// Bytes that a host announces where the device means to move more.
const FEWER: u32 = 2;

const WRONG_RESIDUE: &str =
    "Hosts that trust the residue lose the end of reads, or report errors on good ones.";
const STUCK: &str = "After an error of the host's, the drive may hang until it is unplugged.";

pub(super) const TESTS: &[Test] = &[
    Test {
        id: "bot-case-1",
        group: Group::Bot,
        title: "No data announced, none meant",
        clause: "BOT 1.0 clause 6.7.1",
        means: STUCK,
        run: Run::Bot(|probe, plan| {
            let exchange = run(probe, plan, Direction::Out, &test_unit_ready(), AnnouncedData::None);
            passed_with(&exchange, 0)
        }),
    },
    Test {
        id: "bot-case-2",
        group: Group::Bot,
        title: "No data announced, the device means to send: phase error",
        clause: "BOT 1.0 clause 6.7.1",
        means: STUCK,
        run: Run::Bot(|probe, plan| {
            phase_error(&run(probe, plan, Direction::Out, &inquiry(), AnnouncedData::None))
        }),
    },
    Test {
        id: "bot-case-3",
        group: Group::Bot,
        title: "No data announced, the device means to receive: phase error",
        clause: "BOT 1.0 clause 6.7.1",
        means: STUCK,
        run: Run::Bot(|probe, plan| {
            phase_error(&run(probe, plan, Direction::Out, &mode_select(), AnnouncedData::None))
        }),
    },
    Test {
        id: "bot-case-4",
        group: Group::Bot,
        title: "Data to the host announced, none meant",
        clause: "BOT 1.0 clause 6.7.2",
        means: WRONG_RESIDUE,
        run: Run::Bot(|probe, plan| {
            let exchange = run(probe, plan, Direction::In, &test_unit_ready(), AnnouncedData::In(MORE));
            passed_with(&exchange, MORE)
        }),
    },
    Test {
        id: "bot-case-5",
        group: Group::Bot,
        title: "More data announced than the device sends",
        clause: "BOT 1.0 clause 6.7.2",
        means: WRONG_RESIDUE,
        run: Run::Bot(more_than_sent),
    },
    Test {
        id: "bot-case-6",
        group: Group::Bot,
        title: "As much data announced as the device sends",
        clause: "BOT 1.0 clause 6.7.2",
        means: WRONG_RESIDUE,
        run: Run::Bot(|probe, plan| {
            let exchange =
                run(probe, plan, Direction::In, &inquiry(), AnnouncedData::In(INQUIRY_BYTES.into()));
            if exchange.data.len() != usize::from(INQUIRY_BYTES) {
                return Verdict::Fail(format!("the device sends {} bytes of 36", exchange.data.len()));
            }
            passed_with(&exchange, 0)
        }),
    },
    Test {
        id: "bot-case-7",
        group: Group::Bot,
        title: "Less data announced than the device sends: phase error",
        clause: "BOT 1.0 clause 6.7.2",
        means: STUCK,
        run: Run::Bot(|probe, plan| {
            phase_error(&run(probe, plan, Direction::In, &inquiry(), AnnouncedData::In(FEWER)))
        }),
    },
    Test {
        id: "bot-case-8",
        group: Group::Bot,
        title: "Data to the host announced, the device means to receive: phase error",
        clause: "BOT 1.0 clause 6.7.2",
        means: STUCK,
        run: Run::Bot(|probe, plan| {
            phase_error(&run(
                probe,
                plan,
                Direction::In,
                &mode_select(),
                AnnouncedData::In(HEADER_BYTES.into()),
            ))
        }),
    },
    Test {
        id: "bot-case-9",
        group: Group::Bot,
        title: "Data to the device announced, none meant",
        clause: "BOT 1.0 clause 6.7.3",
        means: STUCK,
        run: Run::Bot(|probe, plan| {
            let exchange =
                run(probe, plan, Direction::Out, &test_unit_ready(), AnnouncedData::Out(&[0; MORE as usize]));
            passed_with(&exchange, MORE)
        }),
    },
    Test {
        id: "bot-case-10",
        group: Group::Bot,
        title: "Data to the device announced, the device means to send: phase error",
        clause: "BOT 1.0 clause 6.7.3",
        means: STUCK,
        run: Run::Bot(|probe, plan| {
            phase_error(&run(
                probe,
                plan,
                Direction::Out,
                &inquiry(),
                AnnouncedData::Out(&[0; INQUIRY_BYTES as usize]),
            ))
        }),
    },
    Test {
        id: "bot-case-11",
        group: Group::Bot,
        title: "More data announced than the device takes",
        clause: "BOT 1.0 clause 6.7.3",
        means: STUCK,
        run: Run::Bot(|probe, plan| {
            let exchange =
                run(probe, plan, Direction::Out, &mode_select(), AnnouncedData::Out(&[0; MORE as usize]));
            // A device that rejects the command takes nothing.
            ended_with(&exchange, &[MORE - u32::from(HEADER_BYTES), MORE])
        }),
    },
    Test {
        id: "bot-case-12",
        group: Group::Bot,
        title: "As much data announced as the device takes",
        clause: "BOT 1.0 clause 6.7.3",
        means: STUCK,
        run: Run::Bot(|probe, plan| {
            let exchange = run(
                probe,
                plan,
                Direction::Out,
                &mode_select(),
                AnnouncedData::Out(&[0; HEADER_BYTES as usize]),
            );
            ended_with(&exchange, &[0, HEADER_BYTES.into()])
        }),
    },
    Test {
        id: "bot-case-13",
        group: Group::Bot,
        title: "Less data announced than the device takes: phase error",
        clause: "BOT 1.0 clause 6.7.3",
        means: STUCK,
        run: Run::Bot(|probe, plan| {
            let exchange =
                run(probe, plan, Direction::Out, &mode_select(), AnnouncedData::Out(&[0; FEWER as usize]));
            match exchange.end() {
                // The parameter list is cut before the device has looked whether it wants it.
                Some((CswStatus::Failed, _)) => Verdict::Pass,
                _ => phase_error(&exchange),
            }
        }),
    },
];

const fn test_unit_ready() -> [u8; 6] {
    [0; 6]
}

fn inquiry() -> [u8; 6] {
    [OperationCode::Inquiry.into(), 0, 0, 0, INQUIRY_BYTES, 0]
}

fn mode_select() -> [u8; 6] {
    /// PF: pages of the standard follow, if any.
    const PAGE_FORMAT: u8 = 0x10;
    [OperationCode::ModeSelect6.into(), PAGE_FORMAT, 0, 0, HEADER_BYTES, 0]
}

fn run(
    probe: &mut Probe<'_>,
    plan: &BotPlan,
    direction: Direction,
    cdb: &[u8],
    data: AnnouncedData<'_>,
) -> BotExchange {
    let length = match data {
        AnnouncedData::None => 0,
        AnnouncedData::In(length) => length,
        AnnouncedData::Out(bytes) => bytes.len() as u32,
    };
    let tag = probe.tag();
    probe.bot(plan, &Cbw::new(tag, length, direction, 0, cdb), data)
}

/// The command passed, with this residue.
fn passed_with(exchange: &BotExchange, residue: u32) -> Verdict {
    let expected = Some((CswStatus::Passed, residue));
    Verdict::of(exchange.end() == expected, || {
        format!("expected: passed, residue {residue}; {}", exchange.describe())
    })
}

/// The command passed or failed, with one of these residues.
fn ended_with(exchange: &BotExchange, residues: &[u32]) -> Verdict {
    let is_right = exchange.end().is_some_and(|(status, residue)| {
        matches!(status, CswStatus::Passed | CswStatus::Failed) && residues.contains(&residue)
    });
    Verdict::of(is_right, || format!("expected: residue {residues:?}; {}", exchange.describe()))
}

/// The device reports a phase error; where a host never provokes one, a device that fails the command in another way is
/// harmless as long as it ends.
fn phase_error(exchange: &BotExchange) -> Verdict {
    match exchange.end() {
        Some((CswStatus::PhaseError, _)) => Verdict::Pass,
        Some(_) => Verdict::Warning(format!("expected: phase error; {}", exchange.describe())),
        None => Verdict::Fail(format!("expected: phase error; {}", exchange.describe())),
    }
}

fn more_than_sent(probe: &mut Probe<'_>, plan: &BotPlan) -> Verdict {
    let expected = MORE - u32::from(INQUIRY_BYTES);
    let exchange = run(probe, plan, Direction::In, &inquiry(), AnnouncedData::In(MORE));
    if exchange.end() != Some((CswStatus::Passed, expected)) {
        return passed_with(&exchange, expected);
    }
    let is_padded = exchange.data.len() == MORE as usize;
    let is_stalled = exchange.stalled_csw || exchange.data_status == Some(TransferStatus::Stall);
    if is_padded || is_stalled {
        return Verdict::Pass;
    }
    Verdict::Note("the data end with a short packet alone; the clause asks for a STALL or for padding".into())
}
