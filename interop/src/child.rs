//! Commands on the host: run to the end, or kept on a leash.

use std::{
    ffi::OsStr,
    process::{Child, Command, Stdio},
    time::Duration,
};

use crate::{
    Error, Result,
    supervised::{self, Limits, Report},
};

/// Time limit of a command that neither builds nor installs.
const COMMAND_LIMIT: Duration = Duration::from_secs(480);

/// Time limit of a build or an installation.
pub(crate) const BUILD_LIMIT: Duration = Duration::from_secs(1_200);

/// Runs a command to its end and returns what it printed on its standard output. It has [`COMMAND_LIMIT`].
pub(crate) fn output_of(command: &mut Command) -> Result<Vec<u8>> {
    output_within(COMMAND_LIMIT, command)
}

/// As [`output_of`], with another limit.
pub(crate) fn output_within(limit: Duration, command: &mut Command) -> Result<Vec<u8>> {
    let report = report_within(limit, command)?;
    if report.end.is_success() {
        return Ok(report.stdout);
    }
    let printed = [report.stdout, report.stderr].concat();
    Err(Error::Command {
        line: line_of(command),
        status: report.end.to_string(),
        output: String::from_utf8_lossy(&printed).into_owned(),
    })
}

/// Runs a command whose exit status is no error of ours: a report with its output, whatever it is.
pub(crate) fn report_of(command: &mut Command) -> Result<Report> {
    report_within(COMMAND_LIMIT, command)
}

fn report_within(limit: Duration, command: &mut Command) -> Result<Report> {
    supervised::run(command, Limits::total(limit)).map_err(Error::io(format!("start `{}`", line_of(command))))
}

/// Like [`output_of`], as text.
pub(crate) fn text_of(command: &mut Command) -> Result<String> {
    output_of(command).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The command as one would type it.
pub(crate) fn line_of(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Does something when this program ends, however it ends, unless the leash is dropped before.
///
/// Statics hold the values that several tests share, and are never dropped. So a shell waits for
/// the end of a pipe that only this program holds open. It is deaf to the signals that a terminal
/// sends to all at once.
#[derive(Debug)]
pub(crate) struct Leash {
    shell: Child,
}

impl Leash {
    /// Runs the shell command `action` at the end, with `subject` as its `$1`.
    pub(crate) fn new(action: &str, subject: &OsStr) -> Result<Self> {
        let script = format!("trap '' INT TERM HUP; read -r end; {action}");
        let shell = Command::new("sh")
            .args(["-c", &script, "leash"])
            .arg(subject)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Ok(Self { shell: shell.map_err(Error::io("start sh"))? })
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// A child that is killed when it is dropped, and also when this program ends without dropping anything.
#[derive(Debug)]
pub(crate) struct Leashed {
    child: Child,
    leash: Option<Leash>,
}

impl Leashed {
    pub(crate) fn spawn(command: &mut Command) -> Result<Self> {
        let line = line_of(command);
        let child = command.stdin(Stdio::null()).spawn().map_err(Error::io(format!("start `{line}`")))?;
        let mut leashed = Self { child, leash: None };
        let pid = leashed.child.id().to_string();
        leashed.leash = Some(Leash::new(r#"kill -KILL "$1""#, pid.as_ref())?);
        Ok(leashed)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The exit status as text once the child has ended.
    pub(crate) fn ended(&mut self) -> Result<Option<String>> {
        let status = self.child.try_wait().map_err(Error::io("ask after a child"))?;
        Ok(status.map(|status| status.to_string()))
    }

    pub(crate) fn kill(&mut self) {
        // The leash goes first: afterwards the number may belong to another program.
        self.leash = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Leashed {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{path::PathBuf, time::Duration};

    #[test]
    fn the_error_of_a_failed_command_has_its_line_and_its_output() {
        let failed = text_of(Command::new("sh").args(["-c", "echo out; echo err >&2; exit 3"]));
        let text = failed.expect_err("exit 3").to_string();
        for part in ["sh -c", "exit status: 3", "out", "err"] {
            assert!(text.contains(part), "{part:?} in {text}");
        }
    }

    #[test]
    fn a_dropped_child_is_gone() {
        let child = Leashed::spawn(Command::new("sleep").arg("60")).expect("sleep starts");
        let path = PathBuf::from(format!("/proc/{}", child.id()));
        assert!(path.exists());
        drop(child);
        assert!(!path.exists());
    }

    #[test]
    fn a_child_process_is_killed_when_its_guard_is_dropped() {
        let mut child = Leashed::spawn(Command::new("sleep").arg("60")).expect("sleep starts");
        let leash = child.leash.as_mut().expect("tied");
        drop(leash.shell.stdin.take());
        let ended = crate::wait::until("the end", Duration::from_secs(5), String::new, || child.ended());
        assert!(ended.expect("ends").contains("signal: 9"));
    }
}
