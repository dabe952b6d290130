//! Checks that every medium must pass, whatever it is made of: one set, called by each medium's own tests.
//!
//! The model of a medium is a vector of bytes. Jobs are drawn at random and given one at a time, so that the outcome
//! is certain; several at once are drawn on separate blocks.

use super::{CompletedJob, Job, Medium};
use device::command::{CommandId, DataLocation};
use device::medium::{MediumDone, MediumError, MediumOp, MediumRequest, MediumRequestId};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::RefCell;
use std::time::{Duration, Instant};
use units::{BlockSize, ByteCount, ByteRange, Extent};

/// A request for `extent` with `len` bytes of payload at the start of the buffer.
pub(super) fn request(op: MediumOp, extent: Extent, len: u32) -> MediumRequest {
    let id = MediumRequestId { command: CommandId { slot: 3, generation: 5 }, part: 7 };
    MediumRequest { id, unit: 0, op, extent, location: DataLocation::Buffer, range: ByteRange::new(0, len) }
}

/// Submits one job and waits for it.
pub(super) fn run(medium: &mut dyn Medium, job: Job) -> CompletedJob {
    let id = job.request.id;
    if let Some(finished) = medium.submit(job) {
        return finished;
    }
    medium.flush_submissions();
    let finished = wait(medium);
    assert_eq!(finished.completion.id, id);
    finished
}

/// Waits for the next job, by the event descriptor as a loop would.
pub(super) fn wait(medium: &mut dyn Medium) -> CompletedJob {
    let deadline = Instant::now() + Duration::from_secs(20);
    while Instant::now() < deadline {
        if let Some(finished) = medium.poll() {
            return finished;
        }
        let fd = medium.event_fd().expect("a medium without a descriptor finishes on the spot");
        let mut set = [rustix::event::PollFd::new(&fd, rustix::event::PollFlags::IN)];
        let second = rustix::event::Timespec { tv_sec: 1, tv_nsec: 0 };
        // Interrupted or timed out: ask again.
        let _ = rustix::event::poll(&mut set, Some(&second));
    }
    panic!("the job never finished");
}

/// Runs one job without payload.
pub(super) fn bare(medium: &mut dyn Medium, op: MediumOp, extent: Extent) -> Result<MediumDone, MediumError> {
    run(medium, Job { request: request(op, extent, 0), buffer: Vec::new() }).completion.result
}

/// Writes bytes from a block on.
pub(super) fn write(
    medium: &mut dyn Medium,
    lba: u64,
    bytes: &[u8],
    fua: bool,
) -> Result<MediumDone, MediumError> {
    let extent = Extent::new(lba, bytes.len() as u64 / u64::from(medium.block_size().bytes()));
    let request = request(MediumOp::Write { fua }, extent, bytes.len() as u32);
    run(medium, Job { request, buffer: bytes.to_vec() }).completion.result
}

/// Reads blocks.
pub(super) fn read(medium: &mut dyn Medium, extent: Extent) -> Result<Vec<u8>, MediumError> {
    let len = extent.blocks.0 as usize * medium.block_size().bytes() as usize;
    let job = Job { request: request(MediumOp::Read, extent, len as u32), buffer: vec![0xee; len] };
    let finished = run(medium, job);
    finished.completion.result.map(|_| finished.buffer)
}

/// A job drawn at random: the operation, where, and the byte that its payload is made of.
#[derive(Clone, Debug)]
struct Draw {
    op: MediumOp,
    extent: Extent,
    seed: u8,
    /// Whether payload that is compared is what the medium holds.
    equal: bool,
}

const BLOCKS: u64 = 96;

fn draw() -> impl Strategy<Value = Draw> {
    let op = prop_oneof![
        4 => Just(MediumOp::Read),
        4 => any::<bool>().prop_map(|fua| MediumOp::Write { fua }),
        2 => any::<bool>().prop_map(|fua| MediumOp::WriteAtomic { fua }),
        2 => Just(MediumOp::Compare),
        2 => any::<bool>().prop_map(|fua| MediumOp::CompareAndWrite { fua }),
        2 => any::<bool>().prop_map(|fua| MediumOp::Or { fua }),
        1 => Just(MediumOp::CompareSame),
        2 => any::<bool>().prop_map(|unmap| MediumOp::WriteSame { unmap }),
        2 => Just(MediumOp::WriteZeroes),
        2 => Just(MediumOp::Unmap),
        1 => Just(MediumOp::Verify),
        1 => Just(MediumOp::Flush),
        1 => Just(MediumOp::Status),
        1 => Just(MediumOp::Prefetch),
    ];
    let extent = (0..BLOCKS).prop_flat_map(|lba| (Just(lba), 0..=BLOCKS - lba));
    (op, extent, any::<u8>(), any::<bool>()).prop_map(|(op, (lba, blocks), seed, equal)| Draw {
        op,
        extent: Extent::new(lba, blocks),
        seed,
        equal,
    })
}

/// Random jobs bring the results that a vector of bytes brings, and leave the same bytes.
pub(super) fn behaves_like_the_model(make: impl FnMut(ByteCount, BlockSize) -> Box<dyn Medium>) {
    // The runner wants to call without changing anything.
    let make = RefCell::new(make);
    let cases = vec(draw(), 1..24);
    let mut runner = TestRunner::new(Config { cases: 48, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&(cases, any::<bool>()), |(draws, large)| {
        let block_size = if large { BlockSize::B4096 } else { BlockSize::B512 };
        let block = block_size.bytes() as usize;
        let mut medium = make.borrow_mut()(ByteCount(BLOCKS * block as u64), block_size);
        let mut model = vec![0; BLOCKS as usize * block];
        for draw in draws {
            check_draw(medium.as_mut(), &mut model, &draw, block);
        }
        assert_eq!(read(medium.as_mut(), Extent::new(0, BLOCKS)), Ok(model));
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}\n{runner}");
    }
}

/// Gives one job to the medium and to the model.
fn check_draw(medium: &mut dyn Medium, model: &mut [u8], draw: &Draw, block: usize) {
    let (start, blocks) = (draw.extent.lba.0 as usize * block, draw.extent.blocks.0 as usize);
    if blocks == 0 && draw.op == MediumOp::Status {
        return;
    }
    let stored = &mut model[start..start + blocks * block];
    let mut payload = payload(draw, stored, block);
    let request = MediumRequest {
        // The payload does not always start at the start of the buffer.
        range: ByteRange::new(block as u32, payload.len() as u32),
        ..request(draw.op, draw.extent, 0)
    };
    let mut buffer = vec![0xee; block];
    buffer.extend_from_slice(&payload);
    let finished = run(medium, Job { request, buffer });
    let expected = apply(draw.op, stored, &mut payload, block);
    match (finished.completion.result, draw.op) {
        (Ok(MediumDone::Provisioning { mapped, blocks }), MediumOp::Status) => {
            assert!(blocks.0 >= 1 && blocks <= draw.extent.blocks, "{draw:?}");
            let run = &stored[..blocks.0 as usize * block];
            assert!(mapped || run.iter().all(|&byte| byte == 0), "{draw:?}: unmapped, but not zero");
        }
        (result, _) => assert_eq!(result, expected.map(|()| MediumDone::Done), "{draw:?}"),
    }
    assert_eq!(finished.buffer[..block], vec![0xee; block], "{draw:?}: bytes outside the range");
    assert!(finished.buffer[block..] == payload, "{draw:?}: the payload");
}

/// The payload that goes with a job.
fn payload(draw: &Draw, stored: &[u8], block: usize) -> Vec<u8> {
    let noise = |len: usize| (0..len).map(|at| draw.seed.wrapping_mul(31).wrapping_add((at / 7) as u8));
    let mut compared = stored.to_vec();
    if !draw.equal
        && let Some(byte) = compared.get_mut(stored.len() / 3)
    {
        *byte = byte.wrapping_add(draw.seed | 1);
    }
    match draw.op {
        MediumOp::Read => vec![0xdd; stored.len()],
        MediumOp::Write { .. } | MediumOp::WriteAtomic { .. } | MediumOp::Or { .. } => {
            noise(stored.len()).collect()
        }
        MediumOp::Compare => compared,
        MediumOp::CompareAndWrite { .. } => {
            compared.extend(noise(stored.len()));
            compared
        }
        MediumOp::CompareSame if draw.equal => vec![0; block],
        MediumOp::WriteSame { .. } if draw.equal => vec![0; block],
        MediumOp::CompareSame | MediumOp::WriteSame { .. } => noise(block).collect(),
        _ => Vec::new(),
    }
}

/// Applies a job to a vector of bytes, spelt out byte by byte.
fn apply(op: MediumOp, stored: &mut [u8], payload: &mut [u8], block: usize) -> Result<(), MediumError> {
    let differs = |at: Option<usize>| match at {
        None => Ok(()),
        Some(at) => Err(MediumError::Miscompare { offset: at as u32 }),
    };
    match op {
        MediumOp::Read => payload.copy_from_slice(stored),
        MediumOp::Write { .. } | MediumOp::WriteAtomic { .. } => stored.copy_from_slice(payload),
        MediumOp::Compare => differs((0..stored.len()).find(|&at| stored[at] != payload[at]))?,
        MediumOp::CompareAndWrite { .. } => {
            differs((0..stored.len()).find(|&at| stored[at] != payload[at]))?;
            stored.copy_from_slice(&payload[stored.len()..]);
        }
        MediumOp::Or { .. } => (0..stored.len()).for_each(|at| stored[at] |= payload[at]),
        MediumOp::CompareSame => differs((0..stored.len()).find(|&at| stored[at] != payload[at % block]))?,
        MediumOp::WriteSame { .. } => (0..stored.len()).for_each(|at| stored[at] = payload[at % block]),
        MediumOp::WriteZeroes | MediumOp::Unmap => stored.fill(0),
        MediumOp::Verify | MediumOp::Flush | MediumOp::Status | MediumOp::Prefetch | MediumOp::SaveState => {}
    }
    Ok(())
}

/// Blocks beyond the end and payload that does not go with them are refused, and nothing is touched.
pub(super) fn refuses_what_the_target_never_asks(medium: &mut dyn Medium) {
    let end = medium.capacity().0;
    let beyond = request(MediumOp::Read, Extent::new(end, 1), 512);
    let finished = run(medium, Job { request: beyond, buffer: vec![0xee; 512] });
    assert_eq!(finished.completion.result, Err(MediumError::Shrunk));
    assert_eq!(finished.buffer, [0xee; 512]);

    let outside = request(MediumOp::Read, Extent::new(0, 1), 512);
    let finished = run(medium, Job { request: outside, buffer: vec![0xee; 511] });
    assert_eq!(finished.completion.result, Err(MediumError::Unsupported));

    let little = request(MediumOp::CompareAndWrite { fua: false }, Extent::new(0, 1), 512);
    let finished = run(medium, Job { request: little, buffer: vec![0; 1024] });
    assert_eq!(finished.completion.result, Err(MediumError::Unsupported));
}

/// State that is saved, either way, is loaded.
pub(super) fn keeps_the_state_of_the_unit(medium: &mut dyn Medium) {
    assert_eq!(medium.load_state().unwrap(), None);
    medium.save_state(b"first").unwrap();
    assert_eq!(medium.load_state().unwrap().as_deref(), Some(&b"first"[..]));
    let job = Job { request: request(MediumOp::SaveState, Extent::default(), 0), buffer: b"second".to_vec() };
    let finished = run(medium, job);
    assert_eq!(finished.completion.result, Ok(MediumDone::Done));
    assert_eq!(finished.buffer, b"second");
    assert_eq!(medium.load_state().unwrap().as_deref(), Some(&b"second"[..]));
}
