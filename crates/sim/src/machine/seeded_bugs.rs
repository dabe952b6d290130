//! Seeded bugs around a medium and around device statuses.
//!
//! Inactive without a seeded [`SeededBug`] or a status fault. Neither medium nor device is aware of
//! it.

use super::fixed_latency::FixedLatencyDrive;
use crate::engine::Random;
use crate::fault::{Faults, SeededBug};
use device::Inline;
use device::medium::{MediumCompletion, MediumDone, MediumOp, MediumRequest};
use wire::bot::{Csw, CswStatus};
use wire::scsi::Status;
use wire::scsi::sense::{Sense, SenseKey};
use wire::uas::{SenseIu, StatusIu};

/// Seeded bugs around a medium, and their state.
#[derive(Clone, Debug, Default)]
pub(super) struct BuggyMedium {
    /// A write that will be executed again.
    again: Option<(MediumRequest, Vec<u8>)>,
    /// A block as it was read earlier.
    read: Option<(u64, Vec<u8>)>,
}

impl BuggyMedium {
    /// Executes a request on the medium, with the seeded bug.
    pub(super) fn perform(
        &mut self,
        plain: &mut FixedLatencyDrive,
        request: &MediumRequest,
        buffer: &mut [u8],
        faults: &mut Faults,
    ) -> MediumCompletion {
        let done = MediumCompletion { id: request.id, result: Ok(MediumDone::Done) };
        let mut request = *request;
        match request.op {
            MediumOp::Flush if faults.triggers(SeededBug::SkippedFlush) => return done,
            MediumOp::Write { .. } if faults.triggers(SeededBug::LostWrite) => return done,
            MediumOp::Write { fua: true } if faults.triggers(SeededBug::IgnoredFua) => {
                request.op = MediumOp::Write { fua: false };
            }
            _ => {}
        }
        let completion = plain.perform(&request, buffer, faults);
        match request.op {
            MediumOp::Write { .. } => {
                if let Some((earlier, mut bytes)) = self.again.take() {
                    plain.perform(&earlier, &mut bytes, faults);
                }
                if faults.triggers(SeededBug::WriteTwice) {
                    self.again = Some((request, buffer.to_vec()));
                }
            }
            MediumOp::Read => self.read_stale(plain, &request, buffer, faults),
            _ => {}
        }
        completion
    }

    /// [`SeededBug::StaleRead`]: returns a block as an earlier read found it.
    fn read_stale(
        &mut self,
        plain: &FixedLatencyDrive,
        request: &MediumRequest,
        buffer: &mut [u8],
        faults: &mut Faults,
    ) {
        let block_bytes = plain.block_size().bytes() as usize;
        let Some(memory) = buffer.get_mut(request.range.as_usize()) else { return };
        let first = request.extent.lba.0;
        if let Some((block, bytes)) = &self.read
            && let Some(at) = block.checked_sub(first).and_then(|at| usize::try_from(at).ok())
            && let Some(place) = memory.chunks_exact_mut(block_bytes).nth(at)
        {
            place.copy_from_slice(bytes);
        }
        if faults.triggers(SeededBug::StaleRead) {
            self.read = memory.chunks_exact(block_bytes).next().map(|block| (first, block.to_vec()));
        }
    }
}

/// Returns a status with a wrong tag: SENSE or RESPONSE IU, or CSW.
pub(super) fn with_another_tag(status: &Inline, mut random: Random) -> Inline {
    let bytes = status.as_bytes();
    if let Ok(csw) = Csw::decode(bytes) {
        let tag = csw.tag.wrapping_add(1 + random.below(u64::from(u32::MAX)) as u32);
        return Inline::new(&Csw { tag, ..csw }.encode());
    }
    let Ok(StatusIu::Sense(iu)) = StatusIu::decode(bytes) else { return status.clone() };
    let tag = iu.tag.wrapping_add(1 + random.below(u64::from(u16::MAX)) as u16);
    encoded(&SenseIu { tag, ..iu })
}

/// Returns the tag of a UAS status.
pub(super) fn tag_of(status: &[u8]) -> Option<u16> {
    match StatusIu::decode(status) {
        Ok(StatusIu::Sense(iu)) => Some(iu.tag),
        _ => None,
    }
}

/// Returns whether a device transfer is a command status.
pub(super) fn is_status(inline: &Inline) -> bool {
    let bytes = inline.as_bytes();
    Csw::decode(bytes).is_ok() || matches!(StatusIu::decode(bytes), Ok(StatusIu::Sense(_)))
}

/// Returns whether a device transfer is a task management response.
pub(super) fn is_response(inline: &Inline) -> bool {
    matches!(StatusIu::decode(inline.as_bytes()), Ok(StatusIu::Response(_)))
}

/// [`SeededBug::ForgottenAttention`]: replaces a failure by GOOD; `None` if the status is GOOD.
pub(super) fn without_attention(status: &Inline) -> Option<Inline> {
    let bytes = status.as_bytes();
    if let Ok(csw) = Csw::decode(bytes) {
        let is_failed = csw.status == CswStatus::Failed;
        return is_failed.then(|| Inline::new(&Csw { status: CswStatus::Passed, ..csw }.encode()));
    }
    let Ok(StatusIu::Sense(iu)) = StatusIu::decode(bytes) else { return None };
    let is_attention = Sense::decode(iu.sense).is_ok_and(|sense| sense.key == SenseKey::UnitAttention);
    is_attention.then(|| encoded(&SenseIu { status: Status::Good, sense: &[], ..iu }))
}

fn encoded(iu: &SenseIu<'_>) -> Inline {
    let mut bytes = [0; device::INLINE_BYTES_MAX];
    let len = iu.encode(&mut bytes).unwrap_or(0);
    Inline::new(&bytes[..len])
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSW: [u8; 13] = [0x55, 0x53, 0x42, 0x53, 1, 0, 0, 0, 0, 0, 0, 0, 1];
    /// CHECK CONDITION for tag 2, unit attention.
    const ATTENTION: [u8; 34] = [
        0x03, 0, 0, 2, 0, 0, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 18, 0x70, 0, 6, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x29,
        0, 0, 0, 0, 0,
    ];

    #[test]
    fn a_wrong_tag_differs() {
        for seed in 0..100 {
            let tag = with_another_tag(&Inline::new(&CSW), Random::new(seed, "tag"));
            assert_ne!(Csw::decode(tag.as_bytes()).unwrap().tag, 1);
            let tag = with_another_tag(&Inline::new(&ATTENTION), Random::new(seed, "tag"));
            assert_ne!(SenseIu::decode(tag.as_bytes()).unwrap().tag, 2);
        }
    }

    #[test]
    fn only_unit_attentions_are_suppressed() {
        let good = without_attention(&Inline::new(&ATTENTION)).unwrap();
        let iu = SenseIu::decode(good.as_bytes()).unwrap();
        assert_eq!((iu.tag, iu.status, iu.sense.len()), (2, Status::Good, 0));
        assert!(without_attention(&good).is_none());
        let passed = without_attention(&Inline::new(&CSW)).unwrap();
        assert_eq!(Csw::decode(passed.as_bytes()).unwrap().status, CswStatus::Passed);
        assert!(without_attention(&passed).is_none());
    }

    #[test]
    fn responses_are_to_functions() {
        assert!(is_response(&Inline::new(&[0x04, 0, 0, 9, 0, 0, 0, 0])));
        assert!(!is_response(&Inline::new(&ATTENTION)) && !is_response(&Inline::new(&CSW)));
    }

    #[test]
    fn commands_end_with_a_status_and_data_are_none() {
        assert!(is_status(&Inline::new(&CSW)) && is_status(&Inline::new(&ATTENTION)));
        assert!(!is_status(&Inline::new(&[0; 13])) && !is_status(&Inline::new(&[])));
        // READ READY
        assert!(!is_status(&Inline::new(&[0x06, 0, 0, 2])));
    }
}
