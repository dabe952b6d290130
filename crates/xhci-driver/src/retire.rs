//! The retire table: what an event means for the TD that it names (xHCI 1.2 clauses 4.8.3, 4.10.1 to 4.10.3).
//!
//! One pure function of where in the TD the event points, its completion code, the length in it and whether a retry is
//! left. It says how the TD ends, what its length is reckoned from, and what the endpoint needs next. Everything that
//! ever went wrong with completions in drivers is a cell here, and is tested as one.
//!
//! A halt that names no TD is told of one all the same: with streams a device can refuse before any stream is current, and
//! a controller has no TRB to name then (clause 4.12.2). Whoever waits longest is told, so that the halt is cleared.
//!
//! Left out: isochronous rings. Always true: any other event that names no TD of ours ends none.

use bus::TransferStatus;
use wire::xhci::CompletionCode;

/// What of a TD an event points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Bulk: a TRB before the last.
    Inner,
    /// Bulk: the last TRB.
    Last,
    /// Bulk: its event data TRB; the length is what has moved.
    EventData,
    /// Control: the setup packet.
    Setup,
    /// Control: the data.
    ControlData,
    /// Control: the status.
    Status,
    /// A TD that was taken back and turned into nothing.
    NoOp,
    /// A place where no TD is any more.
    Finished,
    /// No place of any ring.
    Nowhere,
}

/// What the number of bytes moved is reckoned from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actual {
    /// None moved.
    Nothing,
    /// What lies before the TRB, and its length less the event's.
    ThisTrb,
    /// What lies before the TRB.
    BeforeTrb,
    /// The event's length.
    Told,
    /// What was noted before; if nothing was, all of it.
    Noted,
}

/// What becomes of the TD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It goes on, or there is none.
    Open,
    /// It goes on; so much has moved.
    Note(Actual),
    /// It is done, or short, by the bytes that moved.
    ByLength(Actual),
    /// It ended like this.
    With(TransferStatus, Actual),
    /// None was named; that which has waited longest ended like this.
    Oldest(TransferStatus),
    /// It was nothing, and is over.
    Dropped,
}

/// What the endpoint needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Nothing; it runs.
    Nothing,
    /// It is halted: Reset Endpoint, then Set TR Dequeue Pointer past the TD.
    Reset,
    /// It is halted: Reset Endpoint that preserves the state, then the doorbell; the TD is tried again.
    SoftRetry,
    /// It is in error: Set TR Dequeue Pointer past the TD.
    MoveDequeue,
    /// Nobody knows: Stop Endpoint, and its context says what it is.
    Stop,
}

/// What an event means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retirement {
    /// For the TD.
    pub ending: Ending,
    /// For the endpoint.
    pub recovery: Recovery,
}

/// The first of the codes that vendors define for information.
const VENDOR_DEFINED_INFO: u8 = 224;

/// What an event with `code` that points to `place` means. `residual` is the event's length; `may_retry` says that a
/// transaction error may be tried again.
pub fn retire(place: Place, code: CompletionCode, residual: u32, may_retry: bool) -> Retirement {
    use CompletionCode as Code;
    // What a vendor has to say beside (table 6-90) is no error.
    let code = if let Code::Unknown(VENDOR_DEFINED_INFO..) = code { Code::Success } else { code };
    match place {
        Place::Nowhere => return nowhere(code, may_retry),
        // Some controllers say too late where a halt was; the endpoint needs help all the same.
        Place::Finished => return Retirement::of(Ending::Open, recovery_of(code)),
        Place::NoOp => return Retirement::of(Ending::Dropped, recovery_of(code)),
        _ => {}
    }
    match code {
        Code::Success | Code::ShortPacket => Retirement::of(good(place, code, residual), Recovery::Nothing),
        Code::Stopped => Retirement::of(stopped(place, here(place)), Recovery::Nothing),
        Code::StoppedLengthInvalid => Retirement::of(stopped(place, Actual::BeforeTrb), Recovery::Nothing),
        Code::StoppedShortPacket => Retirement::of(stopped(place, Actual::Told), Recovery::Nothing),
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

/// What a code means that comes without a place. A halt of the device stays until somebody clears it, and whoever could
/// knows of it by a transfer only.
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

/// What a code that is not good says of the endpoint (clause 4.8.3 and table 6-90).
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
fn good(place: Place, code: CompletionCode, residual: u32) -> Ending {
    let is_short = code == CompletionCode::ShortPacket || residual > 0;
    match place {
        Place::Inner if is_short => Ending::ByLength(Actual::ThisTrb),
        Place::Last => Ending::ByLength(Actual::ThisTrb),
        Place::EventData => Ending::ByLength(Actual::Told),
        Place::ControlData if is_short => Ending::Note(Actual::ThisTrb),
        Place::Status => Ending::ByLength(Actual::Noted),
        _ => Ending::Open,
    }
}

/// A stopped TD stays where it is; how far it came is noted in case it is taken back.
fn stopped(place: Place, actual: Actual) -> Ending {
    match place {
        Place::Setup | Place::Status => Ending::Open,
        _ => Ending::Note(actual),
    }
}

fn here(place: Place) -> Actual {
    match place {
        Place::Setup => Actual::Nothing,
        Place::EventData => Actual::Told,
        Place::Status => Actual::Noted,
        _ => Actual::ThisTrb,
    }
}

fn is_bulk(place: Place) -> bool {
    matches!(place, Place::Inner | Place::Last | Place::EventData)
}

impl Retirement {
    const OPEN: Self = Self { ending: Ending::Open, recovery: Recovery::Nothing };

    fn of(ending: Ending, recovery: Recovery) -> Self {
        Self { ending, recovery }
    }

    fn with(status: TransferStatus, place: Place, code: CompletionCode) -> Self {
        Self { ending: Ending::With(status, here(place)), recovery: recovery_of(code) }
    }
}

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests {
    use super::*;
    use Place::{ControlData, EventData, Inner, Last, Setup, Status};
    use bus::TransferStatus::{Babble, Error, Stall};

    const SUCCESS: u8 = 1;
    const SHORT: u8 = 13;
    const BULK: [Place; 3] = [Inner, Last, EventData];
    const CONTROL: [Place; 3] = [Setup, ControlData, Status];

    fn cell(place: Place, code: u8, residual: u32) -> (Ending, Recovery) {
        let Retirement { ending, recovery } = retire(place, code.into(), residual, false);
        (ending, recovery)
    }

    fn endings<const N: usize>(places: [Place; N], code: u8, residual: u32) -> [Ending; N] {
        places.map(|place| {
            let (ending, recovery) = cell(place, code, residual);
            assert_eq!(recovery, Recovery::Nothing);
            ending
        })
    }

    #[test]
    fn success_ends_a_td_at_its_end_only() {
        let ends = [Ending::Open, Ending::ByLength(Actual::ThisTrb), Ending::ByLength(Actual::Told)];
        assert_eq!(endings(BULK, SUCCESS, 0), ends);
        assert_eq!(
            endings(CONTROL, SUCCESS, 0),
            [Ending::Open, Ending::Open, Ending::ByLength(Actual::Noted)]
        );
    }

    #[test]
    fn success_with_bytes_left_is_short() {
        let ends = [Actual::ThisTrb, Actual::ThisTrb, Actual::Told].map(Ending::ByLength);
        assert_eq!(endings(BULK, SUCCESS, 7), ends);
        assert_eq!(cell(ControlData, SUCCESS, 7).0, Ending::Note(Actual::ThisTrb));
    }

    #[test]
    fn a_short_packet_ends_a_bulk_td_anywhere_and_a_control_td_at_its_status() {
        let ends = [Actual::ThisTrb, Actual::ThisTrb, Actual::Told].map(Ending::ByLength);
        assert_eq!(endings(BULK, SHORT, 7), ends);
        let ends = [Ending::Open, Ending::Note(Actual::ThisTrb), Ending::ByLength(Actual::Noted)];
        assert_eq!(endings(CONTROL, SHORT, 7), ends);
    }

    #[test]
    fn a_stall_ends_every_td_and_resets_the_endpoint() {
        let actual =
            [Actual::ThisTrb, Actual::ThisTrb, Actual::Told, Actual::Nothing, Actual::ThisTrb, Actual::Noted];
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
        assert_eq!(cell(Inner, 28, 9).0, Ending::Note(Actual::Told));
        assert_eq!(cell(EventData, 26, 9).0, Ending::Note(Actual::Told));
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
    fn what_was_taken_back_is_dropped() {
        assert_eq!(cell(Place::NoOp, SUCCESS, 0), (Ending::Dropped, Recovery::Nothing));
        assert_eq!(cell(Place::NoOp, 6, 0), (Ending::Dropped, Recovery::Reset));
    }

    #[test]
    fn no_event_for_nobody_ends_anything_but_a_halt() {
        for code in 0..=u8::MAX {
            assert_eq!(cell(Place::Finished, code, 7).0, Ending::Open);
            let halts = matches!(code, 4 | 6 | 36);
            assert_eq!(cell(Place::Nowhere, code, 7).0 == Ending::Open, !halts, "{code}");
        }
    }

    #[test]
    fn a_halt_that_names_nobody_is_told_to_who_has_waited_longest() {
        assert_eq!(cell(Place::Nowhere, 6, 0), (Ending::Oldest(Stall), Recovery::Reset));
        for code in [4, 36] {
            assert_eq!(cell(Place::Nowhere, code, 0), (Ending::Oldest(Error), Recovery::Reset));
            let retried = retire(Place::Nowhere, CompletionCode::from(code), 0, true);
            assert_eq!(retried, Retirement::of(Ending::Open, Recovery::SoftRetry));
        }
    }

    #[test]
    fn a_halt_at_nobody_still_resets_the_endpoint() {
        for place in [Place::Finished, Place::Nowhere] {
            assert_eq!([6, 34].map(|code| cell(place, code, 0).1), [Recovery::Reset; 2]);
            assert_eq!([SUCCESS, SHORT, 26].map(|code| cell(place, code, 0).1), [Recovery::Nothing; 3]);
        }
    }

    #[test]
    fn codes_nobody_knows_end_a_td_and_stop_the_endpoint() {
        for code in [0, 7, 17, 30, 33, 200, 223] {
            assert_eq!(cell(Last, code, 0), (Ending::With(Error, Actual::ThisTrb), Recovery::Stop));
        }
    }
}
