//! The tutorials of the book, followed as a reader follows them.
//!
//! A page is taken apart into steps (`page.rs`); [`follow`] does what it says, from top to bottom: commands on the host run in an
//! empty directory with `uaskit` on the path (those of Cargo in the checkout), those of the guest in a machine that
//! has the page's QEMU arguments. Each must succeed and print the lines that the page shows.

mod page;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use page::{Place, Step};

use crate::{
    Error, Result, child, child::Leashed, drive, guest::Guest, qemu::Machine, qemu::Vm, scratch,
    scratch::Scratch, wait,
};

/// How long a command of a page may take. What is measured on a slow machine needs its time.
const STEP_LIMIT: Duration = Duration::from_secs(240);
/// How long the guest may take to find its drives.
const PLUG_LIMIT: Duration = Duration::from_secs(60);

/// State of a reader who follows a page.
struct Reader {
    name: String,
    program: PathBuf,
    place: Scratch,
    background: Vec<Leashed>,
    vm: Option<Vm>,
}

/// Follows the page of that name in `docs/book/src`; how many commands it has.
pub fn follow(name: &str) -> Result<usize> {
    let file = scratch::workspace().join("docs/book/src").join(format!("{name}.md"));
    let text = fs::read_to_string(&file).map_err(Error::io(format!("read {}", file.display())))?;
    let steps = page::steps(&text).map_err(|problem| Error::unexpected(format!("{name}.md"), problem))?;
    let program = drive::binary()?;
    let mut reader = Reader {
        name: name.replace('/', "-"),
        program,
        place: Scratch::new()?,
        background: vec![],
        vm: None,
    };
    for step in &steps {
        reader.take(step)?;
    }
    Ok(steps.len())
}

/// The names of the pages that the book's summary lists, without their endings.
pub fn pages() -> Result<Vec<String>> {
    let file = scratch::workspace().join("docs/book/src/SUMMARY.md");
    let text = fs::read_to_string(&file).map_err(Error::io(format!("read {}", file.display())))?;
    Ok(page::links(&text))
}

impl Reader {
    fn take(&mut self, step: &Step) -> Result<()> {
        let printed = match step.place {
            Place::Host => self.on_host(&step.command)?,
            Place::Background => return self.left_running(step),
            Place::Guest => self.guest()?.stdout_within(STEP_LIMIT, &step.command)?,
            Place::Machine => return self.boot(&step.command),
        };
        step.compare(&printed).map_err(|line| self.complaint(step, &line, &printed))
    }

    fn on_host(&self, line: &str) -> Result<String> {
        child::text_of(&mut self.shell(line))
    }

    /// A command that goes on; it is waited for until it has printed what the page shows.
    fn left_running(&mut self, step: &Step) -> Result<()> {
        let log = scratch::log(&format!("book-{}-{}.log", self.name, self.background.len()))?;
        let file = fs::File::create(&log).map_err(Error::io(format!("create {}", log.display())))?;
        let errors = file.try_clone().map_err(Error::io("share a log"))?;
        let mut command = self.shell(&format!("exec {}", step.command));
        let mut running = Leashed::spawn(command.stdout(file).stderr(Stdio::from(errors)))?;
        let printed = || fs::read_to_string(&log).unwrap_or_default();
        wait::until(&format!("`{}` to be ready", step.command), STEP_LIMIT, printed, || {
            match running.ended()? {
                Some(status) => Err(Error::unexpected(&*step.command, format!("{status}: {}", printed()))),
                None => Ok(step.compare(&printed()).ok()),
            }
        })?;
        self.background.push(running);
        Ok(())
    }

    fn boot(&mut self, arguments: &str) -> Result<()> {
        let place = format!("path={}/", self.place.path("").display()).replace("//", "/");
        let arguments = arguments.split_whitespace().map(|word| word.replace("path=", &place));
        let machine = Machine::new(&format!("book-{}", self.name)).arguments(arguments);
        let mut vm = machine.boot()?;
        let drives = self.background.len();
        vm.guest.await_disks(drives, PLUG_LIMIT)?;
        vm.guest.install(&self.program)?;
        self.vm = Some(vm);
        Ok(())
    }

    fn guest(&mut self) -> Result<&mut Guest> {
        let missing = || Error::unexpected("a command in a guest", "the page has booted none");
        self.vm.as_mut().map(|vm| &mut vm.guest).ok_or_else(missing)
    }

    fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-ec", line]);
        let directory = self.program.parent().unwrap_or(Path::new("/"));
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}:/usr/sbin:/sbin", directory.display()));
        command.env("XDG_DATA_HOME", self.place.path("data"));
        let in_checkout = line.starts_with("cargo ");
        command.current_dir(if in_checkout { scratch::workspace() } else { self.place.path("") });
        command
    }

    fn complaint(&self, step: &Step, line: &str, printed: &str) -> Error {
        let what = format!("{}.md, `{}`", self.name, step.command);
        Error::unexpected(what, format!("no line is like\n    {line}\nin\n{printed}"))
    }
}
