//! Echoes: what a socket and two processes cost when no byte is parsed.
//!
//! An echo plays a tape. For every so many bytes that arrive it sends the next answer on the tape; the answers are those
//! of a drive that completes commands in order, so that the load on the other end runs the same code against both. It
//! parses nothing and copies nothing. The tape itself comes over the socket first. There are three:
//!
//! - *Plain*: reads what is there and answers each command with a write, as an untuned echo does.
//! - *Batching*: answers all that it has read with one write. No drive can be that bare: it fetches a block from its
//!   medium, or stores one, and where the medium is larger than the caches that takes as long as all the rest.
//! - *With memory*: batches, and for each answer copies a block between a random place in memory and one fixed place.

use super::link::Link;
use super::load::{BLOCK_BYTES, Load};
use anyhow::{Context, Result};
use clap::ValueEnum;
use std::hint::black_box;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use wire::usb::Direction;
use wire::usbredir::Capabilities;

/// Arguments of the echo.
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
    /// Which echo.
    #[arg(long, value_enum)]
    kind: EchoKind,
    /// Blocks of the echo with memory.
    #[arg(long)]
    memory_blocks: usize,
    /// Copy to that memory, not from it.
    #[arg(long)]
    stores: bool,
}

/// Which echo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum EchoKind {
    /// A write for each command.
    Plain,
    /// A write for all commands that were read.
    Batching,
    /// The same, and a block of memory is moved for each command.
    Memory,
}

impl EchoKind {
    /// All of them.
    pub(super) const ALL: [Self; 3] = [Self::Plain, Self::Batching, Self::Memory];

    /// How tables call it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain echo",
            Self::Batching => "batching echo",
            Self::Memory => "echo with memory",
        }
    }
}

/// An echo in a separate process, in the place of a drive.
#[derive(Debug)]
pub(super) struct Echo {
    pub(super) link: Link,
    /// Its process.
    pub(super) pid: u32,
    child: Child,
}

impl Echo {
    /// Starts an echo that answers this load; `memory_blocks` are for the one with memory.
    pub(super) fn start(
        kind: EchoKind,
        load: &Load,
        capabilities: Capabilities,
        memory_blocks: u32,
    ) -> Result<Self> {
        let tape = load.answers()?;
        let (mut near, far) = UnixStream::pair().context("make a pair of sockets")?;
        let words = [
            ("--request-len", load.request_len()),
            ("--answer-len", tape[0].len()),
            ("--answers", tape.len()),
            ("--memory-blocks", memory_blocks as usize),
        ];
        let mut command = Command::new(std::env::current_exe().context("find this program")?);
        let name = kind.to_possible_value().context("every echo has a name")?;
        command.args(["bench", "echo", "--kind", name.get_name()]);
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
    let EchoArguments { request_len, answer_len, answers, kind, memory_blocks, stores } = arguments;
    let mut tape = vec![0; answers * answer_len];
    socket.read_exact(&mut tape).context("read the tape")?;
    // Twice, so that as many answers as there are follow each other from any place.
    tape.extend_from_within(..);
    let mut arrived = vec![0; 1 << 20];
    let mut memory = Memory::new(if kind == EchoKind::Memory { memory_blocks } else { 0 }, stores);
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
        let answers_due = &tape[start..start + due * answer_len];
        let write_len = if kind == EchoKind::Plain { answer_len } else { answers_due.len().max(1) };
        for bytes in answers_due.chunks(write_len) {
            socket.write_all(bytes).context("answer")?;
        }
        played = (played + due) % answers;
    }
}

/// As much memory as a medium has, or none.
struct Memory {
    blocks: Vec<[u8; BLOCK_BYTES]>,
    /// The block that stays in the caches.
    near: [u8; BLOCK_BYTES],
    stores: bool,
    random: fastrand::Rng,
}

impl Memory {
    fn new(blocks: usize, stores: bool) -> Self {
        // Written to, so that every block has its own memory.
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

    /// Requests of three bytes, answers of two.
    const SMALL: EchoArguments = EchoArguments {
        request_len: 3,
        answer_len: 2,
        answers: 2,
        kind: EchoKind::Plain,
        memory_blocks: 0,
        stores: false,
    };

    #[test]
    fn each_request_gets_the_next_answer_of_the_tape() {
        for kind in EchoKind::ALL {
            answers_come_in_the_order_of_the_tape(kind);
        }
    }

    fn answers_come_in_the_order_of_the_tape(kind: EchoKind) {
        let (mut near, far) = UnixStream::pair().unwrap();
        let echo = thread::spawn(move || play(far, EchoArguments { kind, ..SMALL }));
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
            kind: EchoKind::Memory,
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
