//! The bare echo: what a socket and two processes cost when nobody looks at a byte.
//!
//! It plays a tape. For every so many bytes that arrive it sends the next answer on the tape; the answers are those
//! of a drive that completes commands in order, so that the load on the other end runs the same code against both.
//! It reads all that is there and answers it with one write, copies nothing and parses nothing. The tape itself
//! comes over the socket first.
//!
//! No drive can be that bare: it fetches a block from its medium, or stores one, and where the medium is larger than
//! the caches that takes as long as all the rest. So there is an echo that does that as well, and nothing more: for
//! each answer it copies a block between a random place in memory and one fixed place.

use super::link::Link;
use super::load::{BLOCK_BYTES, Load};
use anyhow::{Context, Result};
use std::hint::black_box;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use wire::usb::Direction;
use wire::usbredir::Capabilities;

/// What the echo needs to know.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct EchoArguments {
    /// Bytes that ask for an answer.
    #[arg(long)]
    request_len: usize,
    /// Bytes of an answer.
    #[arg(long)]
    answer_len: usize,
    /// Answers on the tape.
    #[arg(long)]
    answers: usize,
    /// Blocks of memory that a block is copied from, or to, for each answer; none for the bare echo.
    #[arg(long)]
    memory_blocks: usize,
    /// Copy to that memory, not from it.
    #[arg(long)]
    stores: bool,
}

/// An echo in a process of its own, in the place of a drive.
#[derive(Debug)]
pub(super) struct Echo {
    pub(super) link: Link,
    /// Its process.
    pub(super) pid: u32,
    child: Child,
}

impl Echo {
    /// Starts an echo that answers this load, with so many blocks of memory.
    pub(super) fn start(load: &Load, capabilities: Capabilities, memory_blocks: u32) -> Result<Self> {
        let tape = load.answers()?;
        let (mut near, far) = UnixStream::pair().context("make a pair of sockets")?;
        let words = [
            ("--request-len", load.request_len()),
            ("--answer-len", tape[0].len()),
            ("--answers", tape.len()),
            ("--memory-blocks", memory_blocks as usize),
        ];
        let mut command = Command::new(std::env::current_exe().context("find this program")?);
        command.args(["bench", "echo"]);
        for (option, number) in words {
            command.args([option, &number.to_string()]);
        }
        if load.direction() == Direction::Out {
            command.arg("--stores");
        }
        let child = command.stdin(Stdio::from(OwnedFd::from(far))).spawn().context("start the echo")?;
        near.write_all(&tape.concat()).context("hand over the tape")?;
        Ok(Self { link: Link::new(near, capabilities), pid: child.id(), child })
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        // It would end by itself when the socket closes; nothing is lost by being quick.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The echo's side: answers on standard input, which is the socket, until that is closed.
pub(crate) fn run(arguments: EchoArguments) -> Result<()> {
    let socket = std::io::stdin().as_fd().try_clone_to_owned().context("take the socket")?;
    play(UnixStream::from(socket), arguments)
}

fn play(mut socket: UnixStream, arguments: EchoArguments) -> Result<()> {
    let EchoArguments { request_len, answer_len, answers, memory_blocks, stores } = arguments;
    let mut tape = vec![0; answers * answer_len];
    socket.read_exact(&mut tape).context("read the tape")?;
    // Twice, so that as many answers as there are follow each other from any place.
    tape.extend_from_within(..);
    let mut arrived = vec![0; 1 << 20];
    let mut memory = Memory::new(memory_blocks, stores);
    let (mut unanswered_len, mut played) = (0, 0);
    loop {
        unanswered_len += match socket.read(&mut arrived).context("read requests")? {
            0 => return Ok(()),
            len => len,
        };
        let due = unanswered_len / request_len;
        unanswered_len %= request_len;
        (0..due).for_each(|_| memory.touch());
        let start = played * answer_len;
        socket.write_all(&tape[start..start + due * answer_len]).context("answer")?;
        played = (played + due) % answers;
    }
}

/// As much memory as a medium has, or none.
struct Memory {
    blocks: Vec<[u8; BLOCK_BYTES]>,
    /// The one block that stays in the caches.
    near: [u8; BLOCK_BYTES],
    stores: bool,
    random: fastrand::Rng,
}

impl Memory {
    fn new(blocks: usize, stores: bool) -> Self {
        // Written to, so that every block has memory of its own.
        let blocks = vec![[1; BLOCK_BYTES]; blocks];
        Self { blocks, near: [0; BLOCK_BYTES], stores, random: fastrand::Rng::with_seed(1) }
    }

    /// Moves one block.
    fn touch(&mut self) {
        if self.blocks.is_empty() {
            return;
        }
        let place = self.random.usize(..self.blocks.len());
        let far = &mut self.blocks[place];
        let (from, to) = if self.stores { (&self.near, far) } else { (&*far, &mut self.near) };
        to.copy_from_slice(from);
        black_box(to);
    }
}

#[cfg(test)]
mod tests {
    use super::super::load::Sweep;
    use super::*;
    use std::thread;

    const BARE: EchoArguments =
        EchoArguments { request_len: 3, answer_len: 2, answers: 2, memory_blocks: 0, stores: false };

    /// Tape and request of three bytes, one answer at a time.
    #[test]
    fn each_request_gets_the_next_answer_of_the_tape() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let echo = thread::spawn(|| play(far, BARE));
        near.write_all(b"aabb").unwrap();
        let mut answers = [0; 6];
        near.write_all(b"123123").unwrap();
        near.read_exact(&mut answers[..4]).unwrap();
        near.write_all(b"12").unwrap();
        near.write_all(b"3").unwrap();
        near.read_exact(&mut answers[4..]).unwrap();
        assert_eq!(&answers, b"aabbaa");
        drop(near);
        echo.join().unwrap().unwrap();
    }

    #[test]
    fn a_load_takes_the_tape_for_a_drive() {
        let (near, far) = UnixStream::pair().unwrap();
        let mut load = Load::example(Direction::Out, 3);
        let answers = load.answers().unwrap();
        let arguments = EchoArguments {
            request_len: load.request_len(),
            answer_len: answers[0].len(),
            answers: answers.len(),
            memory_blocks: 2,
            stores: true,
        };
        let echo = thread::spawn(move || play(far, arguments));
        let mut link = Link::new(near, Load::EXAMPLE_CAPABILITIES);
        link.queue(&answers.concat());
        assert_eq!(load.run(&mut link, &mut Sweep::new(10)).unwrap().0, 10);
        drop(link);
        echo.join().unwrap().unwrap();
    }
}
