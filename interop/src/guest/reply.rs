//! Replies of the agent: one line, and after some lines bytes, whose lengths are in the line.
//!
//! ```text
//! ready RELEASE                     the agent has started, after boot or reboot
//! running ID                        the command has not ended
//! over ID STATUS OUT ERR            it has: OUT bytes of output follow, then ERR bytes of errors
//! file ID LENGTH                    LENGTH bytes follow
//! stored ID                         what was sent is in the file
//! absent ID                         no such file, no such command
//! ```

/// One message of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Ready { release: String },
    Answer { id: u64, answer: Answer },
}

/// The answer to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Running,
    Over { status: u8, stdout: Vec<u8>, stderr: Vec<u8> },
    File(Vec<u8>),
    Stored,
    Absent,
}

/// Result of parsing the bytes received so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// A reply and the bytes it took.
    Whole(Reply, usize),
    /// The beginning of one.
    Partial,
    /// A line that no agent says.
    Nonsense(String),
}

impl Reply {
    pub(super) fn parse(bytes: &[u8]) -> Parsed {
        let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else { return Parsed::Partial };
        let (line, rest) = bytes.split_at(end);
        let body = rest.get(1..).unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let mut words = line.split(' ');
        let verb = words.next().unwrap_or_default();
        if verb == "ready" {
            let release = words.next().unwrap_or_default().into();
            return Parsed::Whole(Self::Ready { release }, end + 1);
        }
        let numbers: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
        let Some((&id, numbers)) = numbers.as_deref().and_then(<[u64]>::split_first) else {
            return Parsed::Nonsense(line.into_owned());
        };
        let (answer, body_len) = match (verb, numbers) {
            ("running", []) => (Answer::Running, 0),
            ("stored", []) => (Answer::Stored, 0),
            ("absent", []) => (Answer::Absent, 0),
            ("file", &[len]) => {
                let Some(file) = body.get(..len as usize) else { return Parsed::Partial };
                (Answer::File(file.into()), file.len())
            }
            ("over", &[status, out, err]) => {
                let Some(both) = body.get(..out.saturating_add(err) as usize) else { return Parsed::Partial };
                let (stdout, stderr) = both.split_at(out as usize);
                // A status above 255 does not exist; 255 is what a shell makes of it.
                let status = u8::try_from(status).unwrap_or(u8::MAX);
                (Answer::Over { status, stdout: stdout.into(), stderr: stderr.into() }, both.len())
            }
            _ => return Parsed::Nonsense(line.into_owned()),
        };
        Parsed::Whole(Self::Answer { id, answer }, end + 1 + body_len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ended_command_brings_its_output_and_its_errors() {
        let answer = Answer::Over { status: 1, stdout: b"a\nb".into(), stderr: b"!".into() };
        assert_eq!(
            Reply::parse(b"over 7 1 3 1\na\nb!next"),
            Parsed::Whole(Reply::Answer { id: 7, answer }, 17)
        );
    }

    #[test]
    fn every_beginning_of_a_reply_is_partial() {
        let whole = b"over 7 1 3 1\na\nb!";
        for len in 0..whole.len() {
            assert_eq!(Reply::parse(&whole[..len]), Parsed::Partial, "{len} bytes");
        }
    }

    #[test]
    fn a_line_that_no_agent_says_is_nonsense() {
        for line in ["", "over 7", "over 7 x 1 1", "hello 1", "running", "file 7 1 2"] {
            let parsed = Reply::parse(format!("{line}\n").as_bytes());
            assert_eq!(parsed, Parsed::Nonsense(line.into()));
        }
    }

    #[test]
    fn a_started_agent_reports_its_kernel() {
        let ready = Reply::Ready { release: "6.1.0-56-amd64".into() };
        assert_eq!(Reply::parse(b"ready 6.1.0-56-amd64\n"), Parsed::Whole(ready, 21));
    }
}
