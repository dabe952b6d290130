//! `uaskit list` and `uaskit why` in guests: each answer is checked against what the kernel did.

mod followed;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use uaskit_interop::{
    Result, Shared,
    drive::{self, Drive, Ours},
    guest::Guest,
    qemu::{Bus, Machine, Vm},
    scratch::Scratch,
    tools::{
        texts,
        uaskit::{MET, ask, diagnosis, port_of, refused, verdict},
    },
};

/// A guest with drives, and `uaskit` in it.
struct Bench {
    vm: Vm,
    drives: Vec<Drive>,
    _images: Scratch,
}

const PLUG_LIMIT: Duration = Duration::from_secs(60);

/// Boots `machine` with drives of ours, and waits for `disks` of them.
fn boot(machine: Machine, ours: &[Ours], disks: usize, images: Scratch) -> Result<Bench> {
    let (machine, drives) = drive::serve_all(machine, ours, "16M")?;
    let mut vm = machine.boot()?;
    vm.guest.await_disks(disks, PLUG_LIMIT)?;
    vm.guest.install(&drive::binary()?)?;
    Ok(Bench { vm, drives, _images: images })
}

fn check<'a>(diagnosis: &'a Value, name: &str) -> &'a Value {
    let checks = diagnosis["checks"].as_array().expect("checks");
    checks.iter().find(|check| check["check"] == name).expect("it was looked at")
}

/// With one drive more, every port of the SuperSpeed controller is taken but the last, into which QEMU puts a hub.
const KINDS: &[Ours] = &[
    ("streams", Bus::Xhci, &[]),
    ("bot-alone", Bus::Xhci, &["--transport", "bot"]),
    ("asm1153", Bus::Xhci, &["--usb-id", "174c:55aa"]),
    ("asm1051", Bus::Xhci, &["--usb-id", "174c:55aa", "--bus-power", "144"]),
    ("asm1053", Bus::Xhci, &["--usb-id", "174c:55aa", "--bus-power", "144", "--streams", "16"]),
    ("jms566", Bus::Xhci, &["--usb-id", "357d:7788"]),
    ("seagate", Bus::Ehci, &["--usb-id", "0bc2:ab38", "--speed", "high"]),
    ("turns", Bus::Ehci, &["--speed", "high"]),
    ("asm-high", Bus::Ehci, &["--usb-id", "174c:5106", "--bus-power", "144", "--speed", "high"]),
];

/// QEMU's UAS drive, which has no BOT to fall back to.
fn uas_alone(id: &str, bus: &str, image: &Path) -> [String; 6] {
    [
        "-blockdev".into(),
        format!("driver=raw,node-name={id},file.driver=file,file.filename={}", image.display()),
        "-device".into(),
        format!("usb-uas,id={id}-bridge,bus={bus},serial={id}"),
        "-device".into(),
        format!("scsi-hd,drive={id},bus={id}-bridge.0"),
    ]
}

static BENCH: Shared<Bench> = Shared::new(|| {
    let images = Scratch::new()?;
    let (first, second) = (images.image("first", 16 << 20)?, images.image("second", 16 << 20)?);
    let machine = Machine::new("diagnose")
        .arguments(["-device".into(), "qemu-xhci,id=plain,streams=off".into()])
        .arguments(uas_alone("uas-alone", "xhci.0", &first))
        .arguments(uas_alone("no-streams", "plain.0", &second));
    boot(machine, KINDS, KINDS.len() + 1, images)
});

#[test]
fn uas_is_explained() -> Result<()> {
    let guest = &mut BENCH.lock()?.vm.guest;
    for serial in ["streams", "turns", "uas-alone", "asm1153", "asm1053", "seagate"] {
        assert_eq!(verdict(guest, serial)?, MET, "{serial}");
    }
    Ok(())
}

#[test]
fn bot_is_explained_by_the_rule_that_the_kernel_went_by() -> Result<()> {
    let guest = &mut BENCH.lock()?.vm.guest;
    assert_eq!(verdict(guest, "bot-alone")?, refused("alternate-setting"));
    for serial in ["asm1051", "asm-high", "jms566"] {
        assert_eq!(verdict(guest, serial)?, refused("not-ignored"), "{serial}");
        let port = port_of(guest, serial)?;
        let said = format!("usb {port}: UAS is ignored for this device, using usb-storage instead");
        assert!(guest.dmesg()?.contains(&said), "{said}");
    }
    let port = port_of(guest, "asm1051")?;
    let printed = guest.stdout_of(&format!("uaskit why {port}"))?;
    println!("{printed}");
    assert!(
        printed.contains("\nIt uses BOT, queue depth 1: the ASMedia chip draws current from the bus"),
        "{printed}"
    );
    Ok(())
}

#[test]
fn a_controller_without_streams_is_found_out() -> Result<()> {
    let guest = &mut BENCH.lock()?.vm.guest;
    assert_eq!(verdict(guest, "no-streams")?, ["none", "decided", "streams"]);
    let said = "does not support streams, which are required by the UAS driver";
    assert!(guest.dmesg()?.contains(said));
    // Without the log, debugfs has the reason.
    guest.stdout_of("dmesg > /tmp/log; mv /dev/kmsg /dev/kmsg-away")?;
    let without = verdict(guest, "no-streams");
    guest.stdout_of("mv /dev/kmsg-away /dev/kmsg")?;
    assert_eq!(without?, ["none", "decided", "streams"]);
    // And the log alone, from a file.
    let port = port_of(guest, "no-streams")?;
    let answer = ask(guest, &format!("why {port} --log /tmp/log"))?;
    let rules = answer["drives"][0]["diagnoses"][0]["rules"].as_array().expect("rules").clone();
    let streams = rules.iter().find(|rule| rule["rule"] == "streams").expect("asked");
    assert_eq!(streams["readings"][0]["place"], "/tmp/log", "{streams:#}");
    // Our own drivers find the same.
    let measured = guest.run(&format!("uaskit bench {port} --transport uas --rw read --seconds 1"))?;
    assert_ne!(measured.status, 0, "{}", measured.stdout);
    assert!(measured.stderr.contains("the host controller does not support streams"), "{}", measured.stderr);
    Ok(())
}

#[test]
fn a_user_other_than_root_gets_the_diagnosis_that_root_gets() -> Result<()> {
    let guest = &mut BENCH.lock()?.vm.guest;
    let port = port_of(guest, "no-streams")?;
    let unprivileged = "echo tester:x:65534:65534::/:/bin/sh > /etc/passwd; start-stop-daemon -S -c tester -x /usr/bin/uaskit --";
    let restricted = format!("echo 1 > /proc/sys/kernel/dmesg_restrict; {unprivileged} why {port} --json");
    let answer: Value = serde_json::from_str(&guest.stdout_of(&restricted)?).expect("it prints JSON");
    let diagnosis = &answer["drives"][0]["diagnoses"][0];
    assert_eq!(
        (&diagnosis["decision"], &diagnosis["rule"]),
        (&"supposed".into(), &"streams".into()),
        "{diagnosis:#}"
    );
    assert!(check(diagnosis, "resets")["root_adds"].is_string(), "{diagnosis:#}");
    Ok(())
}

/// This kernel does not show the BOS. Root may ask the drive for it, and its answer goes into the record.
#[test]
fn a_drive_is_asked_whether_it_could_be_faster() -> Result<()> {
    let guest = &mut BENCH.lock()?.vm.guest;
    let port = port_of(guest, "turns")?;
    let attribute = format!("/sys/bus/usb/devices/{port}/bos_descriptors");
    assert_ne!(guest.run(&format!("test -e {attribute}"))?.status, 0, "this kernel shows it");
    assert_eq!(check(&diagnosis(guest, "turns")?, "link")["health"], "good");
    let recorded =
        guest.stdout_of("uaskit list --record /tmp/bos.tree; grep bos_descriptors /tmp/bos.tree")?;
    assert!(recorded.contains(" : 050f0c0001071002"), "{recorded}");
    guest.stdout_of("mv /dev/bus/usb /tmp/usb-away")?;
    let without = diagnosis(guest, "turns");
    guest.stdout_of("mv /tmp/usb-away /dev/bus/usb")?;
    assert_eq!(check(&without?, "link")["health"], "unknown");
    Ok(())
}

#[test]
fn quirks_that_leave_uas_on_are_in_force() -> Result<()> {
    let guest = &mut BENCH.lock()?.vm.guest;
    // 240 sectors are 120 KiB.
    let limit = "cat /sys/block/$(ls /sys/bus/usb/devices/PORT:1.0/host*/target*/*:*:*:*/block)/queue/max_hw_sectors_kb";
    let port = port_of(guest, "asm1053")?;
    assert_eq!(guest.stdout_of(&limit.replace("PORT", &port))?.trim(), "120");
    assert_eq!(diagnosis(guest, "asm1053")?["quirks"]["letters"], "g");
    let seagate = diagnosis(guest, "seagate")?;
    assert_eq!(seagate["quirks"]["letters"], "t");
    assert_eq!(check(&seagate, "smart")["health"], "concern");
    let disk = guest.await_disk("seagate", PLUG_LIMIT)?;
    assert_ne!(guest.run(&format!("smartctl -d sat -i {}", disk.path()))?.status, 0);
    let disk = guest.await_disk("streams", PLUG_LIMIT)?;
    assert_eq!(guest.run(&format!("smartctl -d sat -i {}", disk.path()))?.status, 0);
    Ok(())
}

#[test]
fn trim_is_reported_as_the_kernel_sends_it() -> Result<()> {
    let guest = &mut BENCH.lock()?.vm.guest;
    // Over BOT the kernel does not ask how, and takes WRITE SAME since READ CAPACITY says that something will do.
    for (serial, how) in [("streams", "unmap"), ("asm1051", "writesame_16")] {
        let diagnosed = diagnosis(guest, serial)?;
        let trim = check(&diagnosed, "trim");
        assert_eq!(
            (&trim["health"], &trim["readings"][0]["found"]),
            (&"good".into(), &how.into()),
            "{trim:#}"
        );
        let disk = guest.await_disk(serial, PLUG_LIMIT)?;
        let accepted = guest.run(&format!("blkdiscard {}", disk.path()))?.status == 0;
        assert!(accepted || serial == "asm1051", "UNMAP is accepted");
        // A kernel that does not know the limits of a drive may send more than it takes, and gives up then.
        let diagnosed = diagnosis(guest, serial)?;
        let health = if accepted { "good" } else { "concern" };
        assert_eq!(check(&diagnosed, "trim")["health"], health, "{diagnosed:#}");
    }
    Ok(())
}

#[test]
fn a_reset_is_counted() -> Result<()> {
    let guest = &mut BENCH.lock()?.vm.guest;
    assert_eq!(check(&diagnosis(guest, "turns")?, "resets")["health"], "good");
    let disk = guest.await_disk("turns", PLUG_LIMIT)?;
    guest.stdout_of(&format!(
        "sg_reset --device {} || sg_reset --bus {}",
        disk.generic_path(),
        disk.generic_path()
    ))?;
    let logged = guest.dmesg()?.contains(&format!("usb {}: reset high-speed USB device", disk.port));
    assert!(logged, "{}", guest.dmesg()?);
    let resets = diagnosis(guest, "turns")?;
    assert!(
        check(&resets, "resets")["because"].as_str().is_some_and(|reason| reason.contains("resets: ")),
        "{resets:#}"
    );
    Ok(())
}

#[test]
fn what_is_recorded_here_says_the_same_elsewhere() -> Result<()> {
    let guest = &mut BENCH.lock()?.vm.guest;
    guest.stdout_of("uaskit list --record /tmp/machine.tree")?;
    let all = ask(guest, "list --all")?;
    let devices = all["devices"].as_array().expect("devices");
    let serials: Vec<&str> = devices.iter().filter_map(|device| device["serial"].as_str()).collect();
    for words in ["list --all", "why"] {
        let mut here = ask(guest, words)?;
        let mut there = ask(guest, &format!("{words} --from /tmp/machine.tree"))?;
        for answer in [&mut here, &mut there] {
            blank(answer, &|text| serials.contains(&text) || text.starts_with("SERIAL-"));
        }
        assert!(here == there, "{words}: {here:#}\n{there:#}");
    }
    Ok(())
}

/// Replaces the texts that are serial numbers, which a record leaves out.
fn blank(value: &mut Value, is_serial: &dyn Fn(&str) -> bool) {
    match value {
        Value::String(text) if is_serial(text) => *text = "-".into(),
        Value::Array(values) => values.iter_mut().for_each(|value| blank(value, is_serial)),
        Value::Object(fields) => fields.values_mut().for_each(|value| blank(value, is_serial)),
        _ => {}
    }
}

/// Nothing that is asked waits for a time-out: those of a control transfer are seconds long, and there are ten drives and a hub. Under
/// emulation a list takes a fraction of a second, a shell and all.
#[test]
fn a_list_has_every_disk_and_waits_for_nothing() -> Result<()> {
    const LIMIT: Duration = Duration::from_secs(20);
    let guest = &mut BENCH.lock()?.vm.guest;
    let begun = Instant::now();
    let listed = guest.stdout_of("uaskit list")?;
    let taken = begun.elapsed();
    println!("in {taken:?}:\n{listed}");
    assert_eq!(listed.lines().filter(|line| line.contains("/dev/sd")).count(), KINDS.len() + 1);
    assert!(taken < LIMIT, "{taken:?}");
    Ok(())
}

const DYING: Ours = ("dying", Bus::Xhci, &["--usb-id", "1209:0004", "--fault", "lose-status@100"]);

/// The guest's modprobe knows the module by its name with an underscore.
static QUIRKS: Shared<Bench> = Shared::new(|| {
    let machine =
        Machine::new("diagnose-quirks").kernel_words("usb_storage.quirks=1209:0001:u,357d:7788:f,174c:55aa:");
    let kinds = [KINDS[0], KINDS[3], KINDS[5], DYING];
    boot(machine, &kinds, kinds.len(), Scratch::new()?)
});

#[test]
fn the_users_quirks_are_obeyed_and_explained() -> Result<()> {
    let guest = &mut QUIRKS.lock()?.vm.guest;
    assert_eq!(verdict(guest, "streams")?, refused("not-ignored"));
    assert_eq!(verdict(guest, "asm1051")?, MET);
    assert_eq!(verdict(guest, "jms566")?, MET);
    assert_eq!(diagnosis(guest, "jms566")?["quirks"]["letters"], "f");
    Ok(())
}

/// The line that `why` prints for the time until the next boot does what it says, and so does the line that undoes it.
#[test]
fn the_advised_line_works_and_can_be_undone() -> Result<()> {
    let guest = &mut QUIRKS.lock()?.vm.guest;
    let port = port_of(guest, "streams")?;
    let diagnosed = diagnosis(guest, "streams")?;
    let rules = diagnosed["rules"].as_array().expect("rules");
    let advice = &rules.iter().find(|rule| rule["rule"] == "not-ignored").expect("asked")["advice"][0];
    let line = |steps: &Value| {
        let steps = steps.as_array().expect("steps");
        let step =
            steps.iter().find(|step| step["place"].as_str().is_some_and(|place| place.contains("next boot")));
        step.and_then(|step| step["line"].as_str()).expect("a line").replace("sudo ", "")
    };
    let plugged = |guest: &mut Guest, line: String| {
        let usb = "/sys/bus/usb/drivers/usb";
        guest.stdout_of(&format!("{line}; echo {port} > {usb}/unbind; echo {port} > {usb}/bind"))?;
        guest.await_disk("streams", PLUG_LIMIT)
    };
    assert_eq!(plugged(guest, line(&advice["steps"]))?.driver, "uas");
    assert_eq!(verdict(guest, "streams")?, MET);
    let settings = check(&diagnosis(guest, "streams")?, "settings").clone();
    assert_eq!(settings["health"], "concern", "{settings:#}");
    assert_eq!(plugged(guest, line(&advice["back"]))?.driver, "usb-storage");
    assert_eq!(verdict(guest, "streams")?, refused("not-ignored"));
    Ok(())
}

#[test]
fn texts_of_the_machine_give_the_verdicts_of_the_machine() -> Result<()> {
    texts::assert_same_verdicts(&mut BENCH.lock()?.vm.guest)?;
    let guest = &mut QUIRKS.lock()?.vm.guest;
    let dying = guest.await_disk(DYING.0, PLUG_LIMIT)?;
    guest.read_impatiently(&dying)?;
    assert_eq!(diagnosis(guest, DYING.0)?["causes"][0]["cause"], "transport");
    texts::assert_same_verdicts(guest)
}

/// A guest without the driver `uas`: no driver binds to its drive. One test, since each step follows from the last.
#[test]
fn without_the_module_no_driver_binds_to_the_drive() -> Result<()> {
    let modules = ["virtio_pci", "virtio_console", "sd_mod", "sg", "usb-storage", "xhci-pci"];
    let machine = Machine::new("diagnose-no-uas").modules(&modules);
    let mut bench = boot(machine, &KINDS[..2], 1, Scratch::new()?)?;
    let guest = &mut bench.vm.guest;
    assert_eq!(verdict(guest, "streams")?, ["none", "decided", "loaded"]);
    assert_eq!(verdict(guest, "bot-alone")?, refused("alternate-setting"));
    // No module at all.
    let hide = "cd /lib/modules/*; mv modules.dep /tmp; grep -v ^[^:]*/uas.ko /tmp/modules.dep > modules.dep; cat modules.dep | wc -l";
    guest.stdout_of(hide)?;
    let absent = diagnosis(guest, "streams")?;
    assert_eq!((&absent["decision"], &absent["rule"]), (&"decided".into(), &"loaded".into()));
    assert!(absent.to_string().contains("there is no module uas"), "{absent:#}");
    // What `why` advises when the module is there.
    guest.stdout_of("cp /tmp/modules.dep /lib/modules/*/ && modprobe uas")?;
    let disk = guest.await_disk("streams", PLUG_LIMIT)?;
    assert_eq!(verdict(guest, "streams")?, MET);
    // A program that was killed while it held the interface leaves it like this.
    let interface = format!("{}:1.0", disk.port);
    guest.stdout_of(&format!("echo {interface} > /sys/bus/usb/drivers/uas/unbind"))?;
    let listed = guest.stdout_of("uaskit list")?;
    let line = format!("echo {interface} | sudo tee /sys/bus/usb/drivers_probe");
    assert!(listed.contains(&line), "{listed}");
    assert_eq!(verdict(guest, "streams")?, ["none", "decided", "started"]);
    guest.stdout_of(&line.replace("sudo ", ""))?;
    guest.await_disk("streams", PLUG_LIMIT)?;
    assert_eq!(verdict(guest, "streams")?, MET);
    // The same with usb-storage, which the rules lead to.
    let interface = format!("{}:1.0", port_of(guest, "bot-alone")?);
    guest.stdout_of(&format!("echo {interface} > /sys/bus/usb/drivers/usb-storage/unbind"))?;
    let forsaken = diagnosis(guest, "bot-alone")?;
    assert_eq!((&forsaken["decision"], &forsaken["agrees"]), (&"not-taken".into(), &false.into()));
    let line = forsaken["advice"][0]["steps"][0]["line"].as_str().expect("a line").replace("sudo ", "");
    guest.stdout_of(&line)?;
    guest.await_disk("bot-alone", PLUG_LIMIT)?;
    assert_eq!(verdict(guest, "bot-alone")?, refused("alternate-setting"));
    Ok(())
}

/// Exports a drive from the guest to the guest itself, by USB/IP over its loopback, and waits for its disk there.
fn through_usbip(guest: &mut Guest, serial: &str) -> Result<()> {
    let port = port_of(guest, serial)?;
    guest.stdout_of(&format!(
        "usbip bind -b {port} && usbip attach -r 127.0.0.1 -b {port} || {{ usbip port; dmesg | tail -n 20; exit 1; }}"
    ))?;
    let disk = guest.await_disk(serial, PLUG_LIMIT)?;
    assert_ne!(disk.port, port, "it is on another bus now");
    Ok(())
}

/// USB/IP has no streams: a drive at high speed is on UAS through it, one at super speed is not.
#[test]
fn through_usbip_uas_needs_high_speed() -> Result<()> {
    let machine = Machine::new("diagnose-usbip").modules(&[
        "virtio_pci",
        "virtio_console",
        "sd_mod",
        "sg",
        "usb-storage",
        "uas",
        "vhci-hcd",
        "usbip-host",
        "ehci-pci",
        "xhci-pci",
    ]);
    let kinds: &[Ours] = &[("turns", Bus::Ehci, &["--speed", "high"]), ("streams", Bus::Xhci, &[])];
    let mut bench = boot(machine, kinds, kinds.len(), Scratch::new()?)?;
    let guest = &mut bench.vm.guest;
    assert_eq!(
        (verdict(guest, "turns")?, verdict(guest, "streams")?),
        (MET.map(str::to_owned), MET.map(str::to_owned))
    );
    guest.stdout_of("mkdir -p /var/run; ip link set lo up; usbipd -D")?;
    through_usbip(guest, "turns")?;
    assert_eq!(verdict(guest, "turns")?, MET);
    through_usbip(guest, "streams")?;
    assert_eq!(verdict(guest, "streams")?, refused("streams"));
    // Without the log, the name of the driver is the reason.
    let rules = |diagnosis: &Value| diagnosis["rules"].as_array().expect("rules").clone();
    guest.stdout_of("mv /dev/kmsg /dev/kmsg-away")?;
    let diagnosed = diagnosis(guest, "streams")?;
    let streams = rules(&diagnosed).into_iter().find(|rule| rule["rule"] == "streams").expect("asked");
    assert_eq!(streams["because"], "vhci_hcd never has streams", "{streams:#}");
    let listed = guest.stdout_of("uaskit list")?;
    assert_eq!(listed.matches("usbip-host").count(), 2, "the exported ones, {listed}");
    Ok(())
}
