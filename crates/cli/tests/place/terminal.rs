//! Output of the program on a terminal.

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};

/// Returns the output of a command on a terminal of so many columns; the command must succeed.
pub(crate) fn printed_on(columns: u16, mut command: Command) -> String {
    let owner = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&owner).and_then(|()| unlockpt(&owner)).expect("it can be opened");
    let name = ptsname(&owner, Vec::new()).expect("it has a name").into_string().expect("of letters");
    let terminal = fs::OpenOptions::new().read(true).write(true).open(name).expect("it is there");
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).expect("it takes a size");
    command.stdin(Stdio::null()).stdout(terminal).stderr(Stdio::null());
    // Read meanwhile: a terminal holds a few KiB.
    let mut child = command.spawn().expect("the program starts");
    drop(command);
    let (mut owner, mut bytes, mut piece) = (fs::File::from(owner), Vec::new(), [0; 4096]);
    // Once no process has the terminal open, a read returns end of file or an error.
    while let Ok(len @ 1..) = owner.read(&mut piece) {
        bytes.extend_from_slice(&piece[..len]);
    }
    assert!(child.wait().expect("it ends").success());
    String::from_utf8(bytes).expect("text").replace('\r', "")
}
