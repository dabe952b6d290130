//! The bare echo: what a socket and two processes cost when nobody looks at a byte.
//!
//! It plays a tape. For every so many bytes that arrive it sends the next answer on the tape; the answers are those
//! of a drive that completes commands in order, so that the load on the other end runs the same code against both.
//! It reads all that is there and answers it with one write, copies nothing and parses nothing. The tape itself
//! comes over the socket first.

use super::link::Link;
use super::load::Load;
use anyhow::{Context, Result};
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
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
    /// Starts the echo that answers this load.
    pub(super) fn start(load: &Load, capabilities: Capabilities) -> Result<Self> {
        let tape = load.answers()?;
        let (mut near, far) = UnixStream::pair().context("make a pair of sockets")?;
        let words = [
            ("--request-len", load.request_len()),
            ("--answer-len", tape[0].len()),
            ("--answers", tape.len()),
        ];
        let mut command = Command::new(std::env::current_exe().context("find this program")?);
        command.args(["bench", "echo"]);
        for (option, number) in words {
            command.args([option, &number.to_string()]);
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
    let EchoArguments { request_len, answer_len, answers } = arguments;
    let mut tape = vec![0; answers * answer_len];
    socket.read_exact(&mut tape).context("read the tape")?;
    // Twice, so that as many answers as there are follow each other from any place.
    tape.extend_from_within(..);
    let mut arrived = vec![0; 1 << 20];
    let (mut unanswered_len, mut played) = (0, 0);
    loop {
        unanswered_len += match socket.read(&mut arrived).context("read requests")? {
            0 => return Ok(()),
            len => len,
        };
        let due = unanswered_len / request_len;
        unanswered_len %= request_len;
        let start = played * answer_len;
        socket.write_all(&tape[start..start + due * answer_len]).context("answer")?;
        played = (played + due) % answers;
    }
}

#[cfg(test)]
mod tests {
    use super::super::load::Sweep;
    use super::*;
    use std::thread;
    use wire::usb::Direction;

    /// Tape and request of three bytes, one answer at a time.
    #[test]
    fn each_request_gets_the_next_answer_of_the_tape() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let echo = thread::spawn(|| play(far, EchoArguments { request_len: 3, answer_len: 2, answers: 2 }));
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
        };
        let echo = thread::spawn(move || play(far, arguments));
        let mut link = Link::new(near, Load::EXAMPLE_CAPABILITIES);
        link.queue(&answers.concat());
        assert_eq!(load.run(&mut link, &mut Sweep::new(10)).unwrap().0, 10);
        drop(link);
        echo.join().unwrap().unwrap();
    }
}
