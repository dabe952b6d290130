//! A command on the host that is run to its end, with limits: on how long it runs, and on how long it prints nothing.
//!
//! A command that passes a limit is killed with everything that it has started, and the error names those processes: a check that
//! hangs says where, instead of waiting until somebody stops it.

use std::{
    collections::BTreeMap,
    fmt,
    io::{self, Read},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// How long a command may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// From its start to its end.
    pub total: Duration,
    /// Between two pieces of its output.
    pub silence: Duration,
}

impl Limits {
    /// A limit on the whole time alone.
    pub fn total(total: Duration) -> Self {
        Self { total, silence: total }
    }
}

/// Result of a command.
#[derive(Debug)]
pub struct Report {
    /// How it ended, or which limit it passed.
    pub end: End,
    /// Everything that it printed on its standard output.
    pub stdout: Vec<u8>,
    /// Everything that it printed on its standard error.
    pub stderr: Vec<u8>,
}

/// How a command ended.
#[derive(Debug)]
pub enum End {
    /// By itself.
    Exited(ExitStatus),
    /// It passed a limit and was killed.
    Killed {
        /// The limit that it passed.
        limit: PassedLimit,
        /// The processes that ran then: one a line, with its command line.
        processes: String,
    },
}

/// The limit that a command passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassedLimit {
    /// It ran for longer than this.
    Total(Duration),
    /// It printed nothing for this long.
    Silence(Duration),
}

impl End {
    /// Whether the command ended by itself, and well.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Exited(status) if status.success())
    }

    /// The exit code of a command that ended by itself and not by a signal.
    pub fn code(&self) -> Option<i32> {
        match self {
            Self::Exited(status) => status.code(),
            Self::Killed { .. } => None,
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) => status.fmt(f),
            Self::Killed { limit: PassedLimit::Total(limit), processes } => {
                write!(f, "killed after {} s, while these ran:\n{processes}", limit.as_secs())
            }
            Self::Killed { limit: PassedLimit::Silence(limit), processes } => {
                write!(
                    f,
                    "killed since it printed nothing for {} s, while these ran:\n{processes}",
                    limit.as_secs()
                )
            }
        }
    }
}

/// Runs a command to its end, without standard input.
///
/// # Errors
///
/// The command cannot be started or waited for. That it fails or passes a limit is in the report.
pub fn run(command: &mut Command, limits: Limits) -> io::Result<Report> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let clock = Arc::new(OutputClock::new());
    let stdout = child.stdout.take().map(|pipe| read_all(pipe, &clock));
    let stderr = child.stderr.take().map(|pipe| read_all(pipe, &clock));
    let end = wait(&mut child, limits, &clock)?;
    let whole = |reader: Option<Reader>| reader.map(|reader| finish(reader, &clock)).unwrap_or_default();
    Ok(Report { end, stdout: whole(stdout), stderr: whole(stderr) })
}

/// When a command printed last.
struct OutputClock {
    start: Instant,
    /// Milliseconds from the start.
    last_ms: AtomicU64,
}

impl OutputClock {
    fn new() -> Self {
        Self { start: Instant::now(), last_ms: AtomicU64::new(0) }
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn note(&self) {
        let now = u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_ms.store(now, Ordering::Relaxed);
    }

    fn silence(&self) -> Duration {
        self.elapsed().saturating_sub(Duration::from_millis(self.last_ms.load(Ordering::Relaxed)))
    }
}

/// A thread that reads a pipe to its end, and the bytes so far.
struct Reader {
    thread: JoinHandle<()>,
    bytes: Arc<Mutex<Vec<u8>>>,
}

fn read_all(mut pipe: impl Read + Send + 'static, clock: &Arc<OutputClock>) -> Reader {
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let (sink, clock) = (Arc::clone(&bytes), Arc::clone(clock));
    let thread = std::thread::spawn(move || {
        let mut piece = [0; 64 << 10];
        while let Ok(length @ 1..) = pipe.read(&mut piece) {
            clock.note();
            lock(&sink).extend_from_slice(&piece[..length]);
        }
    });
    Reader { thread, bytes }
}

/// The bytes of a command that has ended. A process that outlives it and keeps the pipe open is not waited for.
fn finish(reader: Reader, clock: &OutputClock) -> Vec<u8> {
    const DRAIN: Duration = Duration::from_secs(5);
    clock.note();
    while !reader.thread.is_finished() && clock.silence() < DRAIN {
        std::thread::sleep(PAUSE);
    }
    std::mem::take(&mut lock(&reader.bytes))
}

fn lock(bytes: &Mutex<Vec<u8>>) -> MutexGuard<'_, Vec<u8>> {
    bytes.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait(child: &mut Child, limits: Limits, clock: &OutputClock) -> io::Result<End> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(End::Exited(status));
        }
        let limit = if clock.elapsed() >= limits.total {
            PassedLimit::Total(limits.total)
        } else if clock.silence() >= limits.silence {
            PassedLimit::Silence(limits.silence)
        } else {
            std::thread::sleep(PAUSE);
            continue;
        };
        let descendants = descendants_of(child.id());
        let processes = descendants.iter().map(|pid| format!("  {}\n", command_line(*pid))).collect();
        // Parents first: what a leaf's end would have let a parent start does not start.
        for pid in &descendants {
            kill(*pid);
        }
        let _ = child.kill();
        child.wait()?;
        return Ok(End::Killed { limit, processes });
    }
}

fn kill(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

/// The process itself and what it has started, parents before children.
fn descendants_of(root: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let parent =
            std::fs::read_to_string(entry.path().join("stat")).ok().and_then(|stat| parent_in(&stat));
        if let Some(parent) = parent {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = vec![root];
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        found.extend(children.remove(pid).unwrap_or_default());
        next += 1;
    }
    found
}

/// The parent in a line of `/proc/PID/stat` (proc(5)): the second field after the name, which is in parentheses and may contain any.
fn parent_in(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn command_line(pid: u32) -> String {
    const LONGEST: usize = 200;
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&words).replace('\0', " ");
    format!("{pid} {}", line.chars().take(LONGEST).collect::<String>().trim_end())
}

/// Between two looks at a command.
const PAUSE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(120);

    fn shell(script: &str, limits: Limits) -> Report {
        run(Command::new("sh").args(["-c", script]), limits).expect("sh starts")
    }

    #[test]
    fn a_command_within_its_limits_is_reported_whole() {
        let report = shell("echo out; echo err >&2; exit 3", Limits::total(LONG));
        assert_eq!((&report.stdout[..], &report.stderr[..]), (&b"out\n"[..], &b"err\n"[..]));
        assert!(!report.end.is_success());
        assert_eq!(report.end.to_string(), "exit status: 3");
    }

    #[test]
    fn a_silent_command_is_killed_with_its_children() {
        let limits = Limits { total: LONG, silence: Duration::from_millis(300) };
        let report = shell("echo begun; sleep 7654 & echo $!; wait", limits);
        let text = report.end.to_string();
        assert!(text.contains("printed nothing") && text.contains("sleep 7654"), "{text}");
        let printed = String::from_utf8(report.stdout).expect("text");
        let pid = printed.lines().nth(1).expect("the child's number").trim();
        let ended = crate::wait::until("the child's end", LONG, String::new, || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            Ok((stat.is_empty() || stat.contains(") Z ")).then_some(()))
        });
        ended.expect("killed");
    }

    #[test]
    fn a_command_that_prints_without_end_is_killed() {
        let limits = Limits { total: Duration::from_millis(300), silence: LONG };
        let report = shell("while :; do echo more; sleep 0.02; done", limits);
        assert!(matches!(report.end, End::Killed { limit: PassedLimit::Total(_), .. }), "{:?}", report.end);
        assert!(report.stdout.starts_with(b"more\n"));
    }

    #[test]
    fn a_process_that_outlives_the_command_does_not_hold_it() {
        let begun = Instant::now();
        let report = shell("sleep 100 & echo done", Limits::total(LONG));
        assert!(report.end.is_success());
        assert_eq!(report.stdout, b"done\n");
        assert!(begun.elapsed() < Duration::from_secs(90), "{:?}", begun.elapsed());
    }

    #[test]
    fn the_parent_is_read_behind_any_name() {
        assert_eq!(parent_in("12 (a) b (c) S 7 12 12 0"), Some(7));
        assert_eq!(parent_in("12 (a"), None);
    }
}
