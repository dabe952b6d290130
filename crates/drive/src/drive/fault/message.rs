//! Statuses as a faulty device sends them: CSW, SENSE IU and RESPONSE IU with one field changed.

use super::FaultKind;
use wire::bot::{Csw, CswStatus};
use wire::scsi::Status;
use wire::uas::{ResponseCode, ResponseIu, SenseIu};

/// The residue that [`FaultKind::WrongResidue`] invents, in bytes.
const WRONG_RESIDUE: u32 = 512;

/// A status on its way to the host.
pub(super) enum StatusMessage<'a> {
    Csw(Csw),
    Sense(SenseIu<'a>),
    Response(ResponseIu),
}

impl<'a> StatusMessage<'a> {
    /// Decodes a status; `None` if it is none of the three.
    pub(super) fn decode(bytes: &'a [u8]) -> Option<Self> {
        let csw = Csw::decode(bytes).ok().map(Self::Csw);
        let sense = || SenseIu::decode(bytes).ok().map(Self::Sense);
        let response = || ResponseIu::decode(bytes).ok().map(Self::Response);
        csw.or_else(sense).or_else(response)
    }

    /// The bytes of the status with the fault; `last_sense` are the sense data of the error before. `None`: as it is.
    pub(super) fn changed(&self, kind: FaultKind, last_sense: &[u8]) -> Option<Vec<u8>> {
        if kind == FaultKind::GarbageStatus {
            let mut bytes = self.encode();
            bytes[0] = !bytes[0];
            return Some(bytes);
        }
        let changed = match self {
            Self::Csw(csw) => Self::Csw(change_csw(*csw, kind)?),
            Self::Sense(iu) => return change_sense(*iu, kind, last_sense).map(encode_sense),
            Self::Response(iu) => Self::Response(change_response(*iu, kind)?),
        };
        Some(changed.encode())
    }

    fn encode(&self) -> Vec<u8> {
        match self {
            Self::Csw(csw) => csw.encode().to_vec(),
            Self::Sense(iu) => encode_sense(*iu),
            Self::Response(iu) => iu.encode().to_vec(),
        }
    }
}

fn encode_sense(iu: SenseIu<'_>) -> Vec<u8> {
    [&iu.head()[..], iu.sense].concat()
}

fn change_csw(mut csw: Csw, kind: FaultKind) -> Option<Csw> {
    match kind {
        FaultKind::WrongTag => csw.tag = csw.tag.wrapping_add(1),
        FaultKind::WrongStatus => {
            csw.status = match csw.status {
                CswStatus::Passed => CswStatus::Failed,
                _ => CswStatus::Passed,
            }
        }
        FaultKind::WrongResidue => csw.residue = if csw.residue == 0 { WRONG_RESIDUE } else { 0 },
        FaultKind::PhaseError => csw.status = CswStatus::PhaseError,
        _ => return None,
    }
    Some(csw)
}

fn change_sense<'a>(mut iu: SenseIu<'a>, kind: FaultKind, last_sense: &'a [u8]) -> Option<SenseIu<'a>> {
    match kind {
        FaultKind::WrongTag => iu.tag = iu.tag.wrapping_add(1),
        FaultKind::WrongStatus => {
            iu.status = if iu.status == Status::Good { Status::CheckCondition } else { Status::Good };
            iu.sense = &[];
        }
        FaultKind::StaleSense if !last_sense.is_empty() => iu.sense = last_sense,
        _ => return None,
    }
    Some(iu)
}

fn change_response(mut iu: ResponseIu, kind: FaultKind) -> Option<ResponseIu> {
    match kind {
        FaultKind::WrongTag => iu.tag = iu.tag.wrapping_add(1),
        FaultKind::WrongResponse => {
            let is_performed = matches!(
                iu.code,
                ResponseCode::TaskManagementComplete | ResponseCode::TaskManagementSucceeded
            );
            iu.code = if is_performed {
                ResponseCode::TaskManagementFailed
            } else {
                ResponseCode::TaskManagementComplete
            };
        }
        _ => return None,
    }
    Some(iu)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(bytes: &[u8], kind: FaultKind) -> Option<Vec<u8>> {
        StatusMessage::decode(bytes)?.changed(kind, &[0x70, 0, 6])
    }

    #[test]
    fn each_field_of_a_csw_can_be_wrong_and_nothing_else_is() {
        let passed = Csw { tag: 7, residue: 0, status: CswStatus::Passed };
        let short = Csw { residue: 36, status: CswStatus::Failed, ..passed };
        for (kind, sent, expected) in [
            (FaultKind::WrongTag, passed, Csw { tag: 8, ..passed }),
            (FaultKind::WrongStatus, passed, Csw { status: CswStatus::Failed, ..passed }),
            (FaultKind::WrongStatus, short, Csw { status: CswStatus::Passed, ..short }),
            (FaultKind::WrongResidue, passed, Csw { residue: 512, ..passed }),
            (FaultKind::WrongResidue, short, Csw { residue: 0, ..short }),
            (FaultKind::PhaseError, passed, Csw { status: CswStatus::PhaseError, ..passed }),
        ] {
            assert_eq!(changed(&sent.encode(), kind), Some(expected.encode().to_vec()), "{kind:?}");
        }
        assert_eq!(changed(&passed.encode(), FaultKind::StaleSense), None);
        let garbage = changed(&passed.encode(), FaultKind::GarbageStatus).expect("a CSW");
        assert!(Csw::decode(&garbage).is_err());
    }

    #[test]
    fn a_sense_iu_is_changed_in_tag_status_or_sense_data() {
        let sense = [0x70, 0, 5, 0];
        let iu = SenseIu { tag: 3, status_qualifier: 0, status: Status::CheckCondition, sense: &sense };
        let bytes = StatusMessage::Sense(iu).encode();
        let good = SenseIu { status: Status::Good, sense: &[], ..iu };
        let stale = SenseIu { sense: &[0x70, 0, 6], ..iu };
        for (kind, expected) in [
            (FaultKind::WrongTag, SenseIu { tag: 4, ..iu }),
            (FaultKind::WrongStatus, good),
            (FaultKind::StaleSense, stale),
        ] {
            let found = changed(&bytes, kind).expect("a SENSE IU");
            assert_eq!(SenseIu::decode(&found), Ok(expected), "{kind:?}");
        }
        assert_eq!(changed(&bytes, FaultKind::WrongResidue), None);
        assert_eq!(StatusMessage::Sense(iu).changed(FaultKind::StaleSense, &[]), None, "there is none");
    }

    #[test]
    fn a_response_is_that_of_another_outcome() {
        for (code, expected) in [
            (ResponseCode::TaskManagementComplete, ResponseCode::TaskManagementFailed),
            (ResponseCode::TaskManagementSucceeded, ResponseCode::TaskManagementFailed),
            (ResponseCode::IncorrectLun, ResponseCode::TaskManagementComplete),
            (ResponseCode::InvalidIu, ResponseCode::TaskManagementComplete),
        ] {
            let found = changed(&ResponseIu::new(2, code).encode(), FaultKind::WrongResponse);
            assert_eq!(found, Some(ResponseIu::new(2, expected).encode().to_vec()));
        }
    }
}
