//! Debian's udev in a guest: it loads modules for devices and applies rules to their nodes, as on a Debian that was installed.
//!
//! Modules are loaded by libkmod, which reads `/etc/modprobe.d` and the kernel's command line as modprobe does; modprobe and rmmod themselves
//! are kmod's from here on. There is no login manager: the file that it would write names the active user of the guest to udev
//! (systemd, `sd_seat_get_active`). Rules that look into disks are left out, so that no program has a disk open.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{Error, Result, debian, guest::Guest};

/// Rules that a guest has, with the packages that bring them.
const RULES: &[(&str, &str)] =
    &[("udev", "50-udev-default.rules"), ("udev", "80-drivers.rules"), ("systemd", "73-seat-late.rules")];

/// Starts the daemon and has it see all that is plugged in.
pub fn start(guest: &mut Guest) -> Result<()> {
    let modprobe = debian::find("modprobe").ok_or_else(|| Error::unexpected("find modprobe", "no kmod"))?;
    guest.install(&modprobe)?;
    // All of kmod is one program, which goes by its name.
    guest.stdout_of("ln -sf modprobe /usr/bin/rmmod")?;
    guest.install(&file(&debian::unpacked("udev")?, "bin/udevadm")?)?;
    guest.stdout_of("mkdir -p /etc/udev/rules.d /etc/modprobe.d /lib/udev/rules.d")?;
    for (package, rules) in RULES {
        let path = format!("lib/udev/rules.d/{rules}");
        guest.push(&file(&debian::unpacked(package)?, &path)?, &format!("/{path}"))?;
    }
    // The program is the daemon if it goes by this name.
    guest.stdout_of("ln -sf udevadm /usr/bin/systemd-udevd")?;
    plug_in(guest)
}

/// Restarts the daemon, as a boot does: it reads modprobe's files again when a file is added or removed, and not when one
/// changes.
pub fn start_again(guest: &mut Guest) -> Result<()> {
    guest.stdout_of("udevadm control --exit")?;
    plug_in(guest)
}

/// Starts the daemon, has it see all USB devices as new, which is what happens when a machine starts, and waits until it has.
fn plug_in(guest: &mut Guest) -> Result<()> {
    const TRIGGER: &str = "udevadm trigger --action=add --subsystem-match=usb && udevadm settle";
    guest.stdout_of(&format!("systemd-udevd --daemon && {TRIGGER}")).map(drop)
}

/// Makes a user the active one of the guest's seat, by the user's number.
pub fn activate_user(guest: &mut Guest, user: u32) -> Result<()> {
    let state = format!("ACTIVE=1\\nACTIVE_UID={user}\\n");
    guest
        .stdout_of(&format!("mkdir -p /run/systemd/seats && printf '{state}' > /run/systemd/seats/seat0"))
        .map(drop)
}

/// A file of a package; newer ones keep all below `usr`.
fn file(root: &Path, path: &str) -> Result<PathBuf> {
    let places = [root.join(path), root.join("usr").join(path)];
    let found = places.into_iter().find(|place| fs::exists(place).unwrap_or(false));
    found.ok_or_else(|| Error::unexpected(format!("look for {path}"), format!("not in {}", root.display())))
}
