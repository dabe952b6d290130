//! The advice of `why` and `list` is followed to the letter, in guests that load modules and apply rules as
//! Debian does: the kernel then does what was promised, and `why` names the reason.
//!
//! No guest boots from a disk: what is written to `/etc/modprobe.d` counts when modules are loaded again, in place of an
//! initramfs that is rebuilt.

use super::*;
use uaskit_interop::{guest::Output, tools::udev};

const FOLLOWED: &[Ours] = &[KINDS[0], KINDS[5], KINDS[6]];

/// No driver of drives: udev loads them.
const MODULES: &[&str] = &["virtio_pci", "virtio_console", "sd_mod", "sg", "ehci-pci", "xhci-pci"];

/// The active user of the guest's seat, and another user.
const ACTIVE_USER: u32 = 65534;
const OTHER_USER: u32 = 1000;

static DEBIAN: Shared<Bench> = Shared::new(|| debian("diagnose-debian", ""));

/// In a guest everybody who may say `sudo` is root already. What was installed is meant, and not the shell's own idea of it.
const SUDO: &str = "#!/bin/sh\nprogram=$(which \"$1\"); shift; exec \"$program\" \"$@\"\n";

/// Boots a guest with udev, and these words on its kernel's command line.
fn debian(name: &str, words: &str) -> Result<Bench> {
    let machine = Machine::new(name).modules(MODULES).kernel_words("usb_storage.delay_use=0");
    let mut bench = boot(machine.kernel_words(words), FOLLOWED, 0, Scratch::new()?)?;
    let guest = &mut bench.vm.guest;
    let users = format!(
        "active:x:{ACTIVE_USER}:{ACTIVE_USER}::/:/bin/sh\\nother:x:{OTHER_USER}:{OTHER_USER}::/:/bin/sh\\n"
    );
    guest.stdout_of(&format!("printf '{users}' > /etc/passwd"))?;
    guest.stdout_of(&format!("cat > /usr/bin/sudo << 'END'\n{SUDO}END\nchmod 755 /usr/bin/sudo"))?;
    udev::activate_user(guest, ACTIVE_USER)?;
    udev::start(guest)?;
    guest.await_disks(FOLLOWED.len(), PLUG_LIMIT)?;
    Ok(bench)
}

impl Bench {
    /// "unplug the drive and plug it in again"
    fn plug_in_again(&mut self, serial: &str) -> Result<()> {
        let drive = self.drives.iter().find(|drive| drive.plug().id == serial).expect("it is served");
        let mut plug = drive.plug();
        plug.bus = FOLLOWED.iter().find(|ours| ours.0 == serial).expect("it is ours").1;
        let port = port_of(&mut self.vm.guest, serial)?;
        self.vm.detach(&plug.id)?;
        self.vm.guest.stdout_of(&format!("while [ -e /sys/bus/usb/devices/{port} ]; do sleep 0.1; done"))?;
        self.vm.attach(&plug)?;
        let there = format!("grep -qsx {serial} /sys/bus/usb/devices/*/serial");
        let line = format!("until {there}; do sleep 0.1; done; sleep 0.5; udevadm settle");
        self.vm.guest.stdout_of(&line).map(drop)
    }
}

/// The advice with these words in its purpose, as `why --json` has it. The text of `why` has each of its lines as well.
fn advice(guest: &mut Guest, serial: &str, purpose: &str) -> Result<Value> {
    let diagnosed = diagnosis(guest, serial)?;
    let within = ["rules", "checks"].map(|field| diagnosed[field].as_array().expect("an array"));
    let parts = within.into_iter().flatten().chain([&diagnosed]);
    let mut given = parts.flat_map(|part| part["advice"].as_array().expect("an array"));
    let advice = given.find(|one| one["purpose"].as_str().is_some_and(|text| text.contains(purpose)));
    let advice = advice.unwrap_or_else(|| panic!("no {purpose:?} in {diagnosed:#}")).clone();
    let port = port_of(guest, serial)?;
    let printed = guest.stdout_of(&format!("uaskit why {port}"))?;
    for step in ["steps", "back"].into_iter().flat_map(|field| advice[field].as_array().expect("an array")) {
        let line = step["line"].as_str().expect("a line");
        assert!(printed.lines().any(|one| one.trim() == line), "{line:?} is not in {printed}");
    }
    Ok(advice)
}

/// The line of the step with these words in its place.
#[track_caller]
fn line<'a>(steps: &'a Value, place: &str) -> &'a str {
    let mut all = steps.as_array().expect("steps").iter();
    let step = all.find(|step| step["place"].as_str().is_some_and(|text| text.contains(place)));
    step.and_then(|step| step["line"].as_str()).unwrap_or_else(|| panic!("no {place:?} in {steps:#}"))
}

const COMMAND_LINE: &str = "on the kernel command line";
const MODPROBE_FILE: &str = "/etc/modprobe.d/uaskit.conf";

/// Applies a step to modprobe's file, and deletes the file with its last line.
fn write(guest: &mut Guest, line: &str) -> Result<()> {
    let there = guest.stdout_of(&format!("cat {MODPROBE_FILE} 2>/dev/null || true"))?;
    let taken = match line.strip_prefix("take out: ") {
        Some(taken) => taken,
        None if line == "remove the line" => there.trim_end(),
        None => return guest.stdout_of(&format!("echo '{line}' > {MODPROBE_FILE}")).map(drop),
    };
    let remaining: Vec<&str> = there.lines().filter(|one| *one != taken).collect();
    assert_eq!(there.lines().count(), remaining.len() + 1, "{taken:?} in {there}");
    let remaining = remaining.join("\n");
    let line = match remaining.as_str() {
        "" => format!("rm {MODPROBE_FILE}"),
        _ => format!("echo '{remaining}' > {MODPROBE_FILE}"),
    };
    guest.stdout_of(&line).map(drop)
}

/// Loads the drivers as a boot does.
fn restart(guest: &mut Guest) -> Result<()> {
    guest.stdout_of("udevadm settle; sudo rmmod uas usb-storage")?;
    udev::start_again(guest)?;
    guest.await_disks(FOLLOWED.len(), PLUG_LIMIT).map(drop)
}

/// The drive is on BOT since the user says so, with this value in all.
#[track_caller]
fn is_kept_off(guest: &mut Guest, serial: &str, value: &str) -> Result<()> {
    assert_eq!(verdict(guest, serial)?, refused("not-ignored"));
    let diagnosed = diagnosis(guest, serial)?;
    let rules = diagnosed["rules"].as_array().expect("rules");
    let rule = rules.iter().find(|rule| rule["rule"] == "not-ignored").expect("asked");
    assert_eq!(rule["because"], "usb-storage.quirks= has the letter u for 1209:0001");
    let source = json!({ "place": "/sys/module/usb_storage/parameters/quirks", "found": value });
    assert!(rule["readings"].as_array().expect("readings").contains(&source), "{rule:#}");
    let settings = check(&diagnosed, "settings");
    assert_eq!(settings["because"], "the same is in force now and after the next boot", "{settings:#}");
    Ok(())
}

const KEEP_OFF: &str = "Keep it off UAS";
const USE_UAS: &str = "Use UAS nevertheless";
const WITHDRAW: &str = "Use UAS: remove the entry";

#[test]
fn the_line_for_modprobe_takes_effect_and_is_withdrawn() -> Result<()> {
    let guest = &mut DEBIAN.lock()?.vm.guest;
    let off = advice(guest, "streams", KEEP_OFF)?;
    write(guest, line(&off["steps"], MODPROBE_FILE))?;
    // What is written there counts for nothing yet.
    assert_eq!(verdict(guest, "streams")?, MET);
    restart(guest)?;
    is_kept_off(guest, "streams", "1209:0001:u")?;
    // The line for a second drive has the first one's entry, too.
    let on = advice(guest, "jms566", USE_UAS)?;
    write(guest, line(&on["steps"], "in place of the line there"))?;
    restart(guest)?;
    assert_eq!(verdict(guest, "jms566")?, MET);
    is_kept_off(guest, "streams", "1209:0001:u,357d:7788:f")?;
    let back = advice(guest, "streams", WITHDRAW)?;
    write(guest, line(&back["steps"], MODPROBE_FILE))?;
    restart(guest)?;
    assert_eq!(
        (verdict(guest, "streams")?, verdict(guest, "jms566")?),
        (MET.map(Into::into), MET.map(Into::into))
    );
    write(guest, line(&off["back"], MODPROBE_FILE))?;
    restart(guest)?;
    assert_eq!(verdict(guest, "streams")?, MET);
    assert_eq!(verdict(guest, "jms566")?, refused("not-ignored"));
    Ok(())
}

/// A boot for each of the words: for one drive, for a second one besides, and without the first one's entry again.
#[test]
fn the_word_for_the_kernels_command_line_takes_effect_and_is_withdrawn() -> Result<()> {
    let off = advice(&mut DEBIAN.lock()?.vm.guest, "streams", KEEP_OFF)?;
    assert_eq!(line(&off["back"], COMMAND_LINE), "remove the parameter");
    let word = line(&off["steps"], COMMAND_LINE);
    let second = {
        let guest = &mut debian("diagnose-word", word)?.vm.guest;
        is_kept_off(guest, "streams", "1209:0001:u")?;
        assert_eq!(verdict(guest, "jms566")?, refused("not-ignored"));
        let back = advice(guest, "streams", WITHDRAW)?;
        assert_eq!(line(&back["steps"], COMMAND_LINE), format!("take out: {word}"));
        let on = advice(guest, "jms566", USE_UAS)?;
        assert_eq!(line(&on["back"], COMMAND_LINE), word);
        line(&on["steps"], COMMAND_LINE).to_owned()
    };
    let third = {
        let guest = &mut debian("diagnose-words", &second)?.vm.guest;
        assert_eq!(verdict(guest, "jms566")?, MET);
        is_kept_off(guest, "streams", "1209:0001:u,357d:7788:f")?;
        let back = advice(guest, "streams", WITHDRAW)?;
        line(&back["steps"], COMMAND_LINE).to_owned()
    };
    let guest = &mut debian("diagnose-word-back", &third)?.vm.guest;
    assert_eq!(
        (verdict(guest, "streams")?, verdict(guest, "jms566")?),
        (MET.map(Into::into), MET.map(Into::into))
    );
    Ok(())
}

#[test]
fn a_drive_of_which_no_configuration_is_set_is_had_again() -> Result<()> {
    let guest = &mut DEBIAN.lock()?.vm.guest;
    let device = format!("/sys/bus/usb/devices/{}", port_of(guest, "streams")?);
    for (taken_away, purpose, place) in [
        ("echo 0 > {}/authorized", "Authorize the device", "until it is unplugged"),
        ("echo -1 > {}/bConfigurationValue", "Set a configuration", "if nothing happens"),
    ] {
        guest.stdout_of(&format!("udevadm settle; {}", taken_away.replace("{}", &device)))?;
        assert_eq!(verdict(guest, "streams")?, ["none", "decided", "configured"]);
        assert!(guest.stdout_of("uaskit list")?.contains("not configured"));
        let again = advice(guest, "streams", purpose)?;
        guest.stdout_of(line(&again["steps"], place))?;
        guest.await_disks(FOLLOWED.len(), PLUG_LIMIT)?;
        assert_eq!(verdict(guest, "streams")?, MET);
    }
    Ok(())
}

#[test]
fn a_driver_that_is_not_loaded_or_forbidden_is_had_again() -> Result<()> {
    let guest = &mut DEBIAN.lock()?.vm.guest;
    // With neither driver `list` says how both are had.
    guest.stdout_of("udevadm settle; sudo rmmod uas usb-storage")?;
    let listed = guest.stdout_of("uaskit list")?;
    let load = listed
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("sudo modprobe"))
        .expect("a command to load them");
    guest.stdout_of(load)?;
    guest.await_disks(FOLLOWED.len(), PLUG_LIMIT)?;
    assert_eq!(verdict(guest, "streams")?, MET);
    let none = ["none", "decided", "loaded"];
    guest.stdout_of("sudo rmmod uas")?;
    assert_eq!(verdict(guest, "streams")?, none);
    let load = advice(guest, "streams", "Load the driver")?;
    guest.stdout_of(line(&load["steps"], "now"))?;
    guest.await_disk("streams", PLUG_LIMIT)?;
    assert_eq!(verdict(guest, "streams")?, MET);
    guest.stdout_of(line(&load["back"], "to unload it again"))?;
    assert_eq!(verdict(guest, "streams")?, none);
    assert_eq!(verdict(guest, "jms566")?, refused("not-ignored"), "it is left what it has");
    // Forbidden, so that it cannot be loaded.
    let forbidden = "install uas /bin/false";
    write(guest, forbidden)?;
    assert_ne!(guest.run("sudo modprobe uas")?.status, 0);
    let allow = advice(guest, "streams", "Allow the driver")?;
    assert_eq!(line(&allow["back"], MODPROBE_FILE), forbidden);
    write(guest, line(&allow["steps"], MODPROBE_FILE))?;
    guest.stdout_of(line(&allow["steps"], "then"))?;
    guest.await_disks(FOLLOWED.len(), PLUG_LIMIT)?;
    assert_eq!(verdict(guest, "streams")?, MET);
    Ok(())
}

/// As a guide to hardening has it. A blacklist that names usb-storage alone is not in the way of `uas`, and stays.
#[test]
fn drivers_that_several_lines_forbid_are_allowed_by_all_of_them() -> Result<()> {
    const COMMAND: &str = "install usb-storage /bin/false";
    let guest = &mut DEBIAN.lock()?.vm.guest;
    let lines = [COMMAND, "blacklist usb-storage", "blacklist uas", "install uas /bin/true"];
    guest.stdout_of("udevadm settle; sudo rmmod uas usb-storage")?;
    write(guest, &lines.join("\n"))?;
    for driver in ["uas", "usb-storage"] {
        guest.run(&format!("sudo modprobe {driver}"))?;
        assert_ne!(guest.run(&format!("test -e /sys/bus/usb/drivers/{driver}"))?.status, 0, "{driver}");
    }
    // Of a drive that uas has refused, `list` names what keeps the other driver from it, and no command that fails.
    let listed = guest.stdout_of("uaskit list")?;
    assert!(listed.contains(COMMAND) && !listed.contains("modprobe uas"), "{listed}");
    let allow = advice(guest, "streams", "Allow the driver")?;
    let steps = allow["steps"].as_array().expect("steps").iter();
    let of_file = steps.filter(|step| step["place"] == MODPROBE_FILE);
    for step in of_file {
        write(guest, step["line"].as_str().expect("a line"))?;
    }
    assert_eq!(guest.stdout_of(&format!("cat {MODPROBE_FILE}"))?.trim_end(), lines[1]);
    guest.stdout_of(line(&allow["steps"], "then"))?;
    guest.await_disks(FOLLOWED.len(), PLUG_LIMIT)?;
    assert_eq!(verdict(guest, "streams")?, MET);
    // The next boot loads both as well.
    restart(guest)?;
    assert_eq!(verdict(guest, "streams")?, MET);
    write(guest, &format!("take out: {}", lines[1]))
}

/// At run time, on drives that are pulled out and plugged in: a built-in flag is removed, and so is a flag of the user's that leaves a
/// drive without driver.
#[test]
fn lines_until_the_next_boot_take_effect_and_are_withdrawn() -> Result<()> {
    let bench = &mut *DEBIAN.lock()?;
    let smart = |guest: &mut Guest| {
        let path = guest.await_disk("seagate", PLUG_LIMIT)?.path();
        guest.run(&format!("smartctl -d sat -i {path}")).map(|output| output.status == 0)
    };
    assert!(!smart(&mut bench.vm.guest)?);
    let through = advice(&mut bench.vm.guest, "seagate", "Allow ATA pass-through")?;
    for (steps, is_let_through) in [(&through["steps"], true), (&through["back"], false)] {
        bench.vm.guest.stdout_of(line(steps, "until the next boot"))?;
        bench.plug_in_again("seagate")?;
        assert_eq!(smart(&mut bench.vm.guest)?, is_let_through);
    }
    bench.vm.guest.stdout_of("echo 1209:0001:iu > /sys/module/usb_storage/parameters/quirks")?;
    bench.plug_in_again("streams")?;
    let guest = &mut bench.vm.guest;
    assert_eq!(verdict(guest, "streams")?, ["none", "left-alone", "not-ignored"]);
    let without = advice(guest, "streams", "Let usb-storage bind")?;
    guest.stdout_of(line(&without["steps"], "until the next boot"))?;
    bench.plug_in_again("streams")?;
    let guest = &mut bench.vm.guest;
    guest.await_disk("streams", PLUG_LIMIT)?;
    assert_eq!(verdict(guest, "streams")?, refused("not-ignored"));
    let back = advice(guest, "streams", WITHDRAW)?;
    guest.stdout_of(line(&back["steps"], "until the next boot"))?;
    bench.plug_in_again("streams")?;
    bench.vm.guest.await_disk("streams", PLUG_LIMIT)?;
    assert_eq!(verdict(&mut bench.vm.guest, "streams")?, MET);
    Ok(())
}

/// How the kernel unmaps blocks of a disk.
fn provisioning(guest: &mut Guest, serial: &str) -> Result<String> {
    let name = guest.await_disk(serial, PLUG_LIMIT)?.name;
    let mode = guest.stdout_of(&format!("cat /sys/block/{name}/device/scsi_disk/*/provisioning_mode"))?;
    Ok(mode.trim_end().to_owned())
}

#[test]
fn the_rule_for_trim_has_blocks_unmapped() -> Result<()> {
    let bench = &mut *DEBIAN.lock()?;
    let guest = &mut bench.vm.guest;
    let before = provisioning(guest, "jms566")?;
    let disk = guest.await_disk("jms566", PLUG_LIMIT)?;
    let (name, path) = (&disk.name, disk.path());
    guest
        .stdout_of(&format!("echo full > $(echo /sys/block/{name}/device/scsi_disk/*/provisioning_mode)"))?;
    let written = "4096 bytes that are no zeroes";
    let discard = format!(
        "yes '{written}' | dd of={path} bs=64k count=1 iflag=fullblock oflag=direct 2>/dev/null && blkdiscard -o 0 -l 65536 {path} 2>&1"
    );
    assert_ne!(guest.run(&discard)?.status, 0, "there is nothing to mend");
    let ask = advice(guest, "jms566", "Check whether the drive supports UNMAP")?;
    let printed = guest.stdout_of(line(&ask["steps"], "maximum unmap LBA count"))?;
    let most = printed.lines().find_map(|line| line.trim().strip_prefix("Maximum unmap LBA count: "));
    assert_eq!(most, Some("-1 [unbounded]"), "{printed}");
    let printed = guest.stdout_of(line(&ask["steps"], "LBPU"))?;
    assert!(printed.contains("(LBPU): 1"), "{printed}");
    let rule = advice(guest, "jms566", "Send TRIM as UNMAP")?;
    let [first, second] = [0, 1].map(|at| &rule["steps"][at]);
    let file = first["place"].as_str().and_then(|place| place.strip_prefix("in ")).expect("a file");
    guest.stdout_of(&format!("cat > {file} << 'END'\n{}\nEND", first["line"].as_str().expect("a rule")))?;
    guest.stdout_of(&format!("{} && udevadm settle", second["line"].as_str().expect("a line")))?;
    assert_eq!(provisioning(guest, "jms566")?, "unmap");
    guest.stdout_of(&discard)?;
    let zeroes = guest
        .stdout_of(&format!("dd if={path} bs=64k count=1 iflag=direct 2>/dev/null | tr -d '\\0' | wc -c"))?;
    assert_eq!(zeroes.trim(), "0");
    assert_eq!(check(&diagnosis(guest, "jms566")?, "trim")["readings"][0]["found"], "unmap");
    // For a drive that comes as for one that is there; and not for another.
    bench.plug_in_again("jms566")?;
    let guest = &mut bench.vm.guest;
    assert_eq!(provisioning(guest, "jms566")?, "unmap");
    guest.stdout_of(line(&rule["back"], "remove the file"))?;
    // The daemon looks for changed rules every three seconds.
    guest.stdout_of("sleep 3.5")?;
    bench.plug_in_again("jms566")?;
    assert_eq!(provisioning(&mut bench.vm.guest, "jms566")?, before);
    assert_ne!(before, "unmap");
    Ok(())
}

/// Has a user other than root drive the drive.
fn try_as(guest: &mut Guest, user: &str, serial: &str) -> Result<Output> {
    let port = port_of(guest, serial)?;
    let words = format!("bench {port} --transport uas --rw read --seconds 0.2 --rounds 1");
    guest.run(&format!("start-stop-daemon -S -c {user} -x /usr/bin/uaskit -- {words}"))
}

#[test]
fn the_rule_for_access_lets_the_active_user_drive_a_drive() -> Result<()> {
    let bench = &mut *DEBIAN.lock()?;
    let guest = &mut bench.vm.guest;
    let refused = try_as(guest, "active", "streams")?;
    assert_ne!(refused.status, 0, "{refused:?}");
    assert!(refused.stderr.contains("install the udev rule that `uaskit list --udev` prints"), "{refused:?}");
    // As the help says, and then as what was printed says.
    let help = guest.stdout_of("uaskit list --help")?;
    let install = help
        .lines()
        .map(str::trim)
        .find(|line| line.contains("--udev | sudo tee"))
        .expect("a command to install the rule");
    let rules = guest.stdout_of(install)?;
    let then =
        rules.lines().find_map(|line| line.strip_prefix("# To apply it: ")).expect("a command for after it");
    guest.stdout_of(&format!("{then} && udevadm settle"))?;
    for round in ["it is there", "it comes"] {
        let guest = &mut bench.vm.guest;
        let let_in = try_as(guest, "active", "streams")?;
        assert_eq!(let_in.status, 0, "{round}: {let_in:?}");
        assert_eq!(guest.await_disk("streams", PLUG_LIMIT)?.driver, "uas");
        // The other user is refused as before.
        assert_eq!(try_as(guest, "other", "streams")?.status, refused.status, "{round}");
        bench.plug_in_again("streams")?;
        bench.vm.guest.await_disk("streams", PLUG_LIMIT)?;
    }
    let file = install.rsplit(' ').next().expect("a file");
    bench.vm.guest.stdout_of(&format!("rm {file}; udevadm control --reload"))?;
    bench.plug_in_again("streams")?;
    let guest = &mut bench.vm.guest;
    guest.await_disk("streams", PLUG_LIMIT)?;
    assert_eq!(try_as(guest, "active", "streams")?.status, refused.status);
    Ok(())
}
