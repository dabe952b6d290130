//! Wrappers, class requests and recovery of Bulk-Only Transport.
//!
//! Each test ends with a command that must work. Left out: the thirteen cases, which are in `bot_cases`.

use crate::bus::ControlFailure;
use crate::exchange::AnnouncedData;
use crate::probe::{Probe, hex, status_name};
use crate::test::{Group, Run, Test, Verdict};
use bus::TransferStatus;
use initiator::BusAnswer;
use quirks::BotPlan;
use wire::bot::{Cbw, ClassRequest, CswStatus, LUN_MAX};
use wire::scsi::opcode::OperationCode;
use wire::usb::Direction;

const STUCK: &str = "After an error on the bus, the drive may hang until it is unplugged.";

/// Bytes of standard INQUIRY data that every device has.
const INQUIRY_BYTES: u8 = 36;

/// bmCBWFlags of data to the host, with a reserved bit.
const IN_AND_RESERVED: u8 = 0x81;

pub(super) const TESTS: &[Test] = &[
    Test {
        id: "bot-max-lun",
        group: Group::Bot,
        title: "Get Max LUN answers 0 to 15, or is stalled",
        clause: "BOT 1.0 clause 3.2",
        means: "Hosts miss units of the drive.",
        run: Run::Bot(max_lun),
    },
    Test {
        id: "bot-max-lun-strict",
        group: Group::Bot,
        title: "A class request with a wrong field is stalled",
        clause: "BOT 1.0 clause 3",
        means: STUCK,
        run: Run::Bot(malformed_requests),
    },
    Test {
        id: "bot-tag",
        group: Group::Bot,
        title: "The CSW carries the tag of its CBW",
        clause: "BOT 1.0 clause 6.3.1",
        means: "Hosts take the answer for that of another command, and reset the drive.",
        run: Run::Bot(tags),
    },
    Test {
        id: "bot-cbw-signature",
        group: Group::Bot,
        title: "A CBW with a wrong signature halts Bulk-In until reset recovery",
        clause: "BOT 1.0 clause 6.6.1",
        means: STUCK,
        run: Run::Bot(|probe, plan| {
            let mut bytes = inquiry_cbw(probe).encode();
            bytes[3] ^= 0x10;
            invalid(probe, plan, &bytes)
        }),
    },
    Test {
        id: "bot-cbw-short",
        group: Group::Bot,
        title: "A CBW of 30 bytes halts Bulk-In until reset recovery",
        clause: "BOT 1.0 clause 6.6.1",
        means: STUCK,
        run: Run::Bot(|probe, plan| {
            let bytes = inquiry_cbw(probe).encode();
            invalid(probe, plan, &bytes[..Cbw::LEN - 1])
        }),
    },
    Test {
        id: "bot-cbw-long",
        group: Group::Bot,
        title: "A CBW of 32 bytes halts Bulk-In until reset recovery",
        clause: "BOT 1.0 clause 6.6.1",
        means: STUCK,
        run: Run::Bot(|probe, plan| {
            let bytes = [&inquiry_cbw(probe).encode()[..], &[0]].concat();
            invalid(probe, plan, &bytes)
        }),
    },
    Test {
        id: "bot-cbw-lun",
        group: Group::Bot,
        title: "After a CBW for a unit that does not exist, the drive can be recovered",
        clause: "BOT 1.0 clause 6.2.2",
        means: STUCK,
        run: Run::Bot(|probe, plan| {
            let cbw = inquiry_cbw(probe);
            meaningless(probe, plan, Cbw { lun: LUN_MAX, ..cbw })
        }),
    },
    Test {
        id: "bot-cbw-length",
        group: Group::Bot,
        title: "After a CBW with an empty command block, the drive can be recovered",
        clause: "BOT 1.0 clause 6.2.2",
        means: STUCK,
        run: Run::Bot(|probe, plan| {
            let cbw = inquiry_cbw(probe);
            meaningless(probe, plan, Cbw { command_len: 0, ..cbw })
        }),
    },
    Test {
        id: "bot-cbw-reserved",
        group: Group::Bot,
        title: "After a CBW with reserved bits, the drive can be recovered",
        clause: "BOT 1.0 clause 6.2.2",
        means: STUCK,
        run: Run::Bot(|probe, plan| {
            let cbw = inquiry_cbw(probe);
            meaningless(probe, plan, Cbw { flags: IN_AND_RESERVED, ..cbw })
        }),
    },
    Test {
        id: "bot-reset-before-data",
        group: Group::Bot,
        title: "Reset recovery works between CBW and data",
        clause: "BOT 1.0 clause 5.3.4",
        means: STUCK,
        run: Run::Bot(|probe, plan| {
            let cbw = inquiry_cbw(probe);
            probe.send(plan.bulk_out.plain(), &cbw.encode());
            recovers(probe, plan)
        }),
    },
    Test {
        id: "bot-reset-within-data",
        group: Group::Bot,
        title: "Reset recovery works within the data",
        clause: "BOT 1.0 clause 5.3.4",
        means: STUCK,
        run: Run::Bot(|probe, plan| {
            const ANNOUNCED: u32 = 4096;
            let tag = probe.tag();
            let read = [OperationCode::Read10.into(), 0, 0, 0, 0, 0, 0, 0, 8, 0];
            probe.send(plan.bulk_out.plain(), &Cbw::new(tag, ANNOUNCED, Direction::In, 0, &read).encode());
            probe.receive(plan.bulk_in.plain(), plan.bulk_in.packet_bytes.into());
            recovers(probe, plan)
        }),
    },
    Test {
        id: "bot-reset-before-status",
        group: Group::Bot,
        title: "Reset recovery works between data and CSW",
        clause: "BOT 1.0 clause 5.3.4",
        means: STUCK,
        run: Run::Bot(|probe, plan| {
            let cbw = inquiry_cbw(probe);
            probe.send(plan.bulk_out.plain(), &cbw.encode());
            probe.receive(plan.bulk_in.plain(), cbw.transfer_len);
            recovers(probe, plan)
        }),
    },
    Test {
        id: "bot-reset-idle",
        group: Group::Bot,
        title: "Reset recovery works while the drive is idle",
        clause: "BOT 1.0 clause 5.3.4",
        means: STUCK,
        run: Run::Bot(recovers),
    },
    Test {
        id: "bot-odd-lengths",
        group: Group::Bot,
        title: "INQUIRY returns as many bytes as asked for, odd numbers included",
        clause: "BOT 1.0 clause 6.7.2",
        means: STUCK,
        run: Run::Bot(odd_lengths),
    },
    Test {
        id: "bot-second-command",
        group: Group::Bot,
        title: "The medium answers 64 commands in a row",
        clause: "BOT 1.0 clause 5.3",
        means: STUCK,
        run: Run::Bot(|probe, plan| {
            const COMMANDS: usize = 64;
            for number in 1..=COMMANDS {
                if let Err(how) = works(probe, plan) {
                    return Verdict::Fail(format!("command {number} of {COMMANDS}: {how}"));
                }
            }
            Verdict::Pass
        }),
    },
];

fn inquiry_cbw(probe: &mut Probe<'_>) -> Cbw {
    inquiry_of(probe, INQUIRY_BYTES)
}

fn inquiry_of(probe: &mut Probe<'_>, bytes: u8) -> Cbw {
    let cdb = [OperationCode::Inquiry.into(), 0, 0, 0, bytes, 0];
    Cbw::new(probe.tag(), bytes.into(), Direction::In, 0, &cdb)
}

/// Whether INQUIRY works; otherwise what came.
fn works(probe: &mut Probe<'_>, plan: &BotPlan) -> Result<(), String> {
    let cbw = inquiry_cbw(probe);
    let exchange = probe.bot(plan, &cbw, AnnouncedData::In(cbw.transfer_len));
    match exchange.end() {
        Some((CswStatus::Passed, 0)) if exchange.data.len() == usize::from(INQUIRY_BYTES) => Ok(()),
        _ => Err(exchange.describe()),
    }
}

fn recovers(probe: &mut Probe<'_>, plan: &BotPlan) -> Verdict {
    probe.end_all();
    if !probe.reset_recovery(plan) {
        return Verdict::Fail("a step of reset recovery is rejected".into());
    }
    match works(probe, plan) {
        Ok(()) => Verdict::Pass,
        Err(how) => Verdict::Fail(format!("after reset recovery INQUIRY fails: {how}")),
    }
}

/// The device must halt Bulk-In, keep it halted until reset recovery, and then work.
fn invalid(probe: &mut Probe<'_>, plan: &BotPlan, bytes: &[u8]) -> Verdict {
    // The device may stall Bulk-Out at once, or take the bytes and discard them.
    probe.send(plan.bulk_out.plain(), bytes);
    let (first, bytes) = probe.receive(plan.bulk_in.plain(), 512);
    if first != TransferStatus::Stall {
        let came = if bytes.is_empty() { status_name(first).to_owned() } else { hex(&bytes) };
        return match recovers(probe, plan) {
            Verdict::Pass => Verdict::Fail(format!("Bulk-In is not halted: {came}")),
            _ => Verdict::Fail(format!("Bulk-In is not halted: {came}; reset recovery does not help either")),
        };
    }
    let cleared = probe.clear_halt(plan.bulk_in.address);
    let (again, _) = probe.receive(plan.bulk_in.plain(), 512);
    match recovers(probe, plan) {
        Verdict::Pass if cleared == BusAnswer::Done && again != TransferStatus::Stall => Verdict::Warning(
            "a cleared halt alone ends the error; the clause asks for it to stay until reset recovery".into(),
        ),
        verdict => verdict,
    }
}

/// Passes whatever the device does, if it works again afterwards.
fn meaningless(probe: &mut Probe<'_>, plan: &BotPlan, cbw: Cbw) -> Verdict {
    let exchange = probe.bot(plan, &cbw, AnnouncedData::In(cbw.transfer_len));
    match recovers(probe, plan) {
        Verdict::Pass => Verdict::Pass,
        _ => Verdict::Fail(format!("{}; reset recovery does not help", exchange.describe())),
    }
}

fn max_lun(probe: &mut Probe<'_>, plan: &BotPlan) -> Verdict {
    let request = ClassRequest::GetMaxLun { interface: plan.place.interface };
    match probe.control_in(request.encode()).as_deref() {
        Ok(&[highest]) if highest <= LUN_MAX => Verdict::Pass,
        Err(ControlFailure::Stalled) => Verdict::Note(
            "the request is stalled, which means one unit; some hosts wait before they go on".into(),
        ),
        Err(ControlFailure::NoAnswer) => Verdict::Fail("the device does not answer".into()),
        Ok(bytes) => Verdict::Fail(format!("the device returns {}", hex(bytes))),
    }
}

fn malformed_requests(probe: &mut Probe<'_>, plan: &BotPlan) -> Verdict {
    let right = ClassRequest::GetMaxLun { interface: plan.place.interface }.encode();
    let wrong = [
        ("wValue 1", wire::usb::SetupPacket { value: 1, ..right }),
        ("another interface", wire::usb::SetupPacket { index: right.index + 8, ..right }),
    ];
    for (name, setup) in wrong {
        if let Ok(bytes) = probe.control_in(setup) {
            return Verdict::Warning(format!("Get Max LUN with {name} returns {}", hex(&bytes)));
        }
    }
    match works(probe, plan) {
        Ok(()) => Verdict::Pass,
        Err(how) => Verdict::Fail(format!("after a stalled request INQUIRY fails: {how}")),
    }
}

fn tags(probe: &mut Probe<'_>, plan: &BotPlan) -> Verdict {
    for tag in [0, 1, 0x8000_0000, 0xffff_ffff, 0x1234_5678] {
        let cbw = Cbw { tag, ..inquiry_cbw(probe) };
        let exchange = probe.bot(plan, &cbw, AnnouncedData::In(cbw.transfer_len));
        if exchange.end().is_none() {
            return Verdict::Fail(format!("CBW tag {tag:#010x}: {}", exchange.describe()));
        }
    }
    Verdict::Pass
}

fn odd_lengths(probe: &mut Probe<'_>, plan: &BotPlan) -> Verdict {
    for bytes in [5, 13, 31, 35, 36] {
        let cbw = inquiry_of(probe, bytes);
        let exchange = probe.bot(plan, &cbw, AnnouncedData::In(bytes.into()));
        let is_right =
            exchange.end() == Some((CswStatus::Passed, 0)) && exchange.data.len() == usize::from(bytes);
        if !is_right {
            let (got, how) = (exchange.data.len(), exchange.describe());
            return Verdict::Fail(format!("asked for {bytes} bytes, the device sends {got}; {how}"));
        }
    }
    Verdict::Pass
}
