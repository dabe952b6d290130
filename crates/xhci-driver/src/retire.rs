//! The retire table: what an event means for the TD that it names (xHCI 1.2 clauses 4.8.3, 4.10.1
//! to 4.10.3).
//!
//! One pure function of the TRB within the TD that the event points to, its completion code, its
//! length and whether a retry is left. It returns how the TD ends, what its length is computed
//! from, and which recovery the endpoint needs. Every known failure of drivers with completions is
//! a cell of this table and is tested as one.
//!
//! A halt that names no TD completes the oldest one: with streams a device can stall before any
//! stream is current, and the controller has no TRB to name then (clause 4.12.2).
//!
//! Left out: isochronous rings. Always true: any other event that names no known TD completes none.

use bus::TransferStatus;
use wire::xhci::CompletionCode;

/// The part of a TD that an event points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventTarget {
    /// Bulk: a TRB before the last.
    Inner,
    /// Bulk: the last TRB.
    Last,
    /// Bulk: its event data TRB; the length is the bytes transferred.
    EventData,
    /// Control: the setup packet.
    Setup,
    /// Control: the data.
    ControlData,
    /// Control: the status.
    Status,
    /// A cancelled TD turned into no-ops.
    NoOp,
    /// The place of a TD that has ended.
    Finished,
    /// No place of any ring.
    Nowhere,
}

/// The source of the number of bytes transferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actual {
    /// None.
    Nothing,
    /// The bytes before the TRB, plus its length less the residual.
    ThisTrb,
    /// The bytes before the TRB.
    BeforeTrb,
    /// The event's length.
    EventLength,
    /// The bytes noted before; if none were noted, all.
    Noted,
}

/// The effect on the TD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It goes on, or there is none.
    Open,
    /// It goes on, with the bytes transferred noted.
    Note(Actual),
    /// It is done, or short, by the bytes transferred.
    ByLength(Actual),
    /// It ends with this status.
    With(TransferStatus, Actual),
    /// No TD is named; the oldest one ends with this status.
    Oldest(TransferStatus),
    /// A no-op TD that is over.
    Dropped,
}

/// The recovery that the endpoint needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// None; it runs.
    Nothing,
    /// It is halted: Reset Endpoint, then Set TR Dequeue Pointer past the TD.
    Reset,
    /// Halted: Reset Endpoint that preserves the transfer state, then the doorbell; the TD is
    /// retried.
    SoftRetry,
    /// In error: Set TR Dequeue Pointer past the TD.
    MoveDequeue,
    /// Unknown: Stop Endpoint, then its context gives the state.
    Stop,
}

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retirement {
    /// For the TD.
    pub ending: Ending,
    /// For the endpoint.
    pub recovery: Recovery,
}

/// The first vendor-defined informational code.
const VENDOR_DEFINED_INFO: u8 = 224;

/// Returns the meaning of an event with `code` that points to `place`. `residual` is the length of
/// the event; `may_retry` says whether a transaction error may be retried.
pub fn retire(place: EventTarget, code: CompletionCode, residual: u32, may_retry: bool) -> Retirement {
    use CompletionCode as Code;
    // What a vendor has to say beside (table 6-90) is no error.
    let code = if let Code::Unknown(VENDOR_DEFINED_INFO..) = code { Code::Success } else { code };
    match place {
        EventTarget::Nowhere => return nowhere(code, may_retry),
        // Some controllers say too late where a halt was; the endpoint needs help all the same.
        EventTarget::Finished => return Retirement::of(Ending::Open, recovery_of(code)),
        EventTarget::NoOp => return Retirement::of(Ending::Dropped, recovery_of(code)),
        _ => {}
    }
    match code {
        Code::Success | Code::ShortPacket => Retirement::of(good(place, code, residual), Recovery::Nothing),
        Code::Stopped => Retirement::of(stopped(place, here(place)), Recovery::Nothing),
        Code::StoppedLengthInvalid => Retirement::of(stopped(place, Actual::BeforeTrb), Recovery::Nothing),
        Code::StoppedShortPacket => Retirement::of(stopped(place, Actual::EventLength), Recovery::Nothing),
        Code::UsbTransactionError | Code::SplitTransaction if may_retry && is_bulk(place) => {
            Retirement::of(Ending::Open, Recovery::SoftRetry)
        }
        Code::RingUnderrun | Code::RingOverrun | Code::MissedService | Code::EventLost => Retirement::OPEN,
        Code::StallError => Retirement::with(TransferStatus::Stall, place, code),
        Code::BabbleDetected => Retirement::with(TransferStatus::Babble, place, code),
        // It was refused when it was read, so nothing of it has moved (clause 4.10.2.2).
        Code::TrbError => {
            Retirement::of(Ending::With(TransferStatus::Error, Actual::BeforeTrb), Recovery::MoveDequeue)
        }
        _ => Retirement::with(TransferStatus::Error, place, code),
    }
}

/// Returns the meaning of a code without a place. A halt of the device stays until it is cleared,
/// and the code that could knows of it by a transfer only.
fn nowhere(code: CompletionCode, may_retry: bool) -> Retirement {
    use CompletionCode as Code;
    match code {
        Code::StallError => Retirement::of(Ending::Oldest(TransferStatus::Stall), Recovery::Reset),
        Code::UsbTransactionError | Code::SplitTransaction if may_retry => {
            Retirement::of(Ending::Open, Recovery::SoftRetry)
        }
        Code::UsbTransactionError | Code::SplitTransaction => {
            Retirement::of(Ending::Oldest(TransferStatus::Error), Recovery::Reset)
        }
        _ => Retirement::of(Ending::Open, recovery_of(code)),
    }
}

/// Returns the recovery of the endpoint after a code that reports an error (clause 4.8.3 and table
/// 6-90).
fn recovery_of(code: CompletionCode) -> Recovery {
    use CompletionCode as Code;
    match code {
        Code::StallError
        | Code::BabbleDetected
        | Code::UsbTransactionError
        | Code::SplitTransaction
        | Code::DataBufferError
        | Code::InvalidStreamType
        | Code::InvalidStreamId => Recovery::Reset,
        Code::TrbError => Recovery::MoveDequeue,
        Code::Success
        | Code::ShortPacket
        | Code::Stopped
        | Code::StoppedLengthInvalid
        | Code::StoppedShortPacket
        | Code::RingUnderrun
        | Code::RingOverrun
        | Code::MissedService
        | Code::EventLost
        | Code::SlotNotEnabled
        | Code::EndpointNotEnabled => Recovery::Nothing,
        _ => Recovery::Stop,
    }
}

/// A success with bytes left is a short packet that the controller did not call by its name.
fn good(place: EventTarget, code: CompletionCode, residual: u32) -> Ending {
    let is_short = code == CompletionCode::ShortPacket || residual > 0;
    match place {
        EventTarget::Inner if is_short => Ending::ByLength(Actual::ThisTrb),
        EventTarget::Last => Ending::ByLength(Actual::ThisTrb),
        EventTarget::EventData => Ending::ByLength(Actual::EventLength),
        EventTarget::ControlData if is_short => Ending::Note(Actual::ThisTrb),
        EventTarget::Status => Ending::ByLength(Actual::Noted),
        _ => Ending::Open,
    }
}

/// A stopped TD stays where it is; how far it came is noted in case it is cancelled.
fn stopped(place: EventTarget, actual: Actual) -> Ending {
    match place {
        EventTarget::Setup | EventTarget::Status => Ending::Open,
        _ => Ending::Note(actual),
    }
}

fn here(place: EventTarget) -> Actual {
    match place {
        EventTarget::Setup => Actual::Nothing,
        EventTarget::EventData => Actual::EventLength,
        EventTarget::Status => Actual::Noted,
        _ => Actual::ThisTrb,
    }
}

fn is_bulk(place: EventTarget) -> bool {
    matches!(place, EventTarget::Inner | EventTarget::Last | EventTarget::EventData)
}

impl Retirement {
    const OPEN: Self = Self { ending: Ending::Open, recovery: Recovery::Nothing };

    fn of(ending: Ending, recovery: Recovery) -> Self {
        Self { ending, recovery }
    }

    fn with(status: TransferStatus, place: EventTarget, code: CompletionCode) -> Self {
        Self { ending: Ending::With(status, here(place)), recovery: recovery_of(code) }
    }
}

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests {
    use super::*;
    use EventTarget::{ControlData, EventData, Inner, Last, Setup, Status};
    use bus::TransferStatus::{Babble, Error, Stall};

    const SUCCESS: u8 = 1;
    const SHORT: u8 = 13;
    const BULK: [EventTarget; 3] = [Inner, Last, EventData];
    const CONTROL: [EventTarget; 3] = [Setup, ControlData, Status];

    fn cell(place: EventTarget, code: u8, residual: u32) -> (Ending, Recovery) {
        let Retirement { ending, recovery } = retire(place, code.into(), residual, false);
        (ending, recovery)
    }

    fn endings<const N: usize>(places: [EventTarget; N], code: u8, residual: u32) -> [Ending; N] {
        places.map(|place| {
            let (ending, recovery) = cell(place, code, residual);
            assert_eq!(recovery, Recovery::Nothing);
            ending
        })
    }

    #[test]
    fn success_ends_a_td_at_its_end_only() {
        let ends = [Ending::Open, Ending::ByLength(Actual::ThisTrb), Ending::ByLength(Actual::EventLength)];
        assert_eq!(endings(BULK, SUCCESS, 0), ends);
        assert_eq!(
            endings(CONTROL, SUCCESS, 0),
            [Ending::Open, Ending::Open, Ending::ByLength(Actual::Noted)]
        );
    }

    #[test]
    fn success_with_bytes_left_is_short() {
        let ends = [Actual::ThisTrb, Actual::ThisTrb, Actual::EventLength].map(Ending::ByLength);
        assert_eq!(endings(BULK, SUCCESS, 7), ends);
        assert_eq!(cell(ControlData, SUCCESS, 7).0, Ending::Note(Actual::ThisTrb));
    }

    #[test]
    fn a_short_packet_ends_a_bulk_td_anywhere_and_a_control_td_at_its_status() {
        let ends = [Actual::ThisTrb, Actual::ThisTrb, Actual::EventLength].map(Ending::ByLength);
        assert_eq!(endings(BULK, SHORT, 7), ends);
        let ends = [Ending::Open, Ending::Note(Actual::ThisTrb), Ending::ByLength(Actual::Noted)];
        assert_eq!(endings(CONTROL, SHORT, 7), ends);
    }

    #[test]
    fn a_stall_ends_every_td_and_resets_the_endpoint() {
        let actual = [
            Actual::ThisTrb,
            Actual::ThisTrb,
            Actual::EventLength,
            Actual::Nothing,
            Actual::ThisTrb,
            Actual::Noted,
        ];
        for (place, actual) in BULK.into_iter().chain(CONTROL).zip(actual) {
            assert_eq!(cell(place, 6, 7), (Ending::With(Stall, actual), Recovery::Reset));
        }
    }

    #[test]
    fn babble_and_buffer_errors_end_a_td_and_reset_the_endpoint() {
        assert_eq!(cell(Last, 3, 0), (Ending::With(Babble, Actual::ThisTrb), Recovery::Reset));
        assert_eq!(cell(Last, 2, 0), (Ending::With(Error, Actual::ThisTrb), Recovery::Reset));
    }

    #[test]
    fn a_transaction_error_is_tried_again_on_bulk_while_there_is_a_retry() {
        for code in [4, 36] {
            for place in BULK {
                let retried = retire(place, CompletionCode::from(code), 0, true);
                assert_eq!(retried, Retirement::of(Ending::Open, Recovery::SoftRetry));
            }
            assert_eq!(cell(Last, code, 0), (Ending::With(Error, Actual::ThisTrb), Recovery::Reset));
            let control = retire(ControlData, CompletionCode::from(code), 0, true);
            assert_eq!(control, Retirement::of(Ending::With(Error, Actual::ThisTrb), Recovery::Reset));
        }
    }

    #[test]
    fn a_trb_error_moves_the_dequeue_pointer() {
        assert_eq!(cell(Inner, 5, 0), (Ending::With(Error, Actual::BeforeTrb), Recovery::MoveDequeue));
    }

    #[test]
    fn stops_note_how_far_it_came() {
        assert_eq!(cell(Inner, 26, 9).0, Ending::Note(Actual::ThisTrb));
        assert_eq!(cell(Inner, 27, 9).0, Ending::Note(Actual::BeforeTrb));
        assert_eq!(cell(Inner, 28, 9).0, Ending::Note(Actual::EventLength));
        assert_eq!(cell(EventData, 26, 9).0, Ending::Note(Actual::EventLength));
        assert_eq!(endings([Setup, Status], 26, 0), [Ending::Open; 2]);
        assert_eq!(endings([ControlData], 26, 3), [Ending::Note(Actual::ThisTrb)]);
    }

    #[test]
    fn a_lost_endpoint_ends_a_td_and_is_left_alone() {
        for code in [11, 12] {
            assert_eq!(cell(Last, code, 0), (Ending::With(Error, Actual::ThisTrb), Recovery::Nothing));
        }
    }

    #[test]
    fn isochronous_events_mean_nothing() {
        assert_eq!([14, 15, 23, 32].map(|code| cell(Last, code, 0).0), [Ending::Open; 4]);
    }

    #[test]
    fn what_was_cancelled_is_dropped() {
        assert_eq!(cell(EventTarget::NoOp, SUCCESS, 0), (Ending::Dropped, Recovery::Nothing));
        assert_eq!(cell(EventTarget::NoOp, 6, 0), (Ending::Dropped, Recovery::Reset));
    }

    #[test]
    fn an_event_without_a_td_ends_none_unless_it_is_a_halt() {
        for code in 0..=u8::MAX {
            assert_eq!(cell(EventTarget::Finished, code, 7).0, Ending::Open);
            let halts = matches!(code, 4 | 6 | 36);
            assert_eq!(cell(EventTarget::Nowhere, code, 7).0 == Ending::Open, !halts, "{code}");
        }
    }

    #[test]
    fn a_halt_that_names_no_td_completes_the_oldest_transfer() {
        assert_eq!(cell(EventTarget::Nowhere, 6, 0), (Ending::Oldest(Stall), Recovery::Reset));
        for code in [4, 36] {
            assert_eq!(cell(EventTarget::Nowhere, code, 0), (Ending::Oldest(Error), Recovery::Reset));
            let retried = retire(EventTarget::Nowhere, CompletionCode::from(code), 0, true);
            assert_eq!(retried, Retirement::of(Ending::Open, Recovery::SoftRetry));
        }
    }

    #[test]
    fn a_halt_without_a_td_still_resets_the_endpoint() {
        for place in [EventTarget::Finished, EventTarget::Nowhere] {
            assert_eq!([6, 34].map(|code| cell(place, code, 0).1), [Recovery::Reset; 2]);
            assert_eq!([SUCCESS, SHORT, 26].map(|code| cell(place, code, 0).1), [Recovery::Nothing; 3]);
        }
    }

    #[test]
    fn unknown_codes_end_a_td_and_stop_the_endpoint() {
        for code in [0, 7, 17, 30, 33, 200, 223] {
            assert_eq!(cell(Last, code, 0), (Ending::With(Error, Actual::ThisTrb), Recovery::Stop));
        }
    }
}
