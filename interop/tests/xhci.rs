//! Our own driver of xHCI controllers on one that we have not written: QEMU's, given to a program of the guest by VFIO.
//!
//! Behind it are QEMU's drives and ours; between them and the trial program is no kernel driver.

use std::{path::Path, time::Duration};

use serde_json::{Value, json};
use uaskit_interop::{
    Error, Result, Shared, drive,
    drive::Drive,
    qemu::{Machine, Vm},
    scratch::Scratch,
};

/// A guest without USB drivers, its controller, and the drives behind it.
struct Bench {
    vm: Vm,
    /// Where the controller is on the PCI bus.
    pci: String,
    drives: Vec<Drive>,
    images: Scratch,
}

/// Drives of QEMU's: device, serial number.
const QEMUS: &[(&str, &str)] =
    &[("usb-uas", "uas"), ("usb-storage", "storage"), ("usb-bot", "bot"), ("usb-uas", SLOW)];

/// The drive of QEMU's that does [`SLOW_COMMANDS`] a second.
const SLOW: &str = "slow";
const SLOW_COMMANDS: u32 = 40;

const PLUG_LIMIT: Duration = Duration::from_secs(60);

/// Drives of ours: serial number, arguments of `uaskit serve`.
const OURS: &[(&str, &[&str])] =
    &[("our-super", &[]), ("our-high", &["--speed", "high"]), ("our-many", &["--streams", "256"])];

/// For everything that a trial does.
const LIMIT: Duration = Duration::from_secs(60);

const IMAGE_BYTES: u64 = 32 << 20;

/// Modules of the guest's kernel: none of them is a driver of USB controllers.
const MODULES: &[&str] = &["virtio_pci", "virtio_console", "vfio_iommu_type1", "vfio-pci"];

static BENCH: Shared<Bench> = Shared::new(|| {
    let images = Scratch::new()?;
    let mut machine = Machine::new("xhci").modules(MODULES).iommu();
    let throttle = format!("throttle-group,id={SLOW},x-iops-total={SLOW_COMMANDS}");
    machine = machine.arguments(["-object".to_owned(), throttle]);
    for (kind, serial) in QEMUS {
        machine = machine.arguments(qemu_drive(kind, serial, &images.image(serial, IMAGE_BYTES)?));
    }
    let mut drives = Vec::new();
    for (serial, arguments) in OURS {
        let drive = Drive::serve(serial, &[&["--ram", "32M"], *arguments].concat())?;
        machine = machine.redirect(&drive.plug());
        drives.push(drive);
    }
    let mut vm = machine.boot()?;
    let pci = give_controller(&mut vm)?;
    vm.guest.install(&drive::example("controller")?)?;
    Ok(Bench { vm, pci, drives, images })
});

/// Binds vfio-pci to the guest's xHCI controller, as its owner would.
fn give_controller(vm: &mut Vm) -> Result<String> {
    let find = "cd /sys/bus/pci/devices && grep -l 0x0c0330 */class";
    let pci = vm.guest.stdout_of(find)?.trim().trim_end_matches("/class").to_owned();
    let bind = format!(
        "echo vfio-pci > /sys/bus/pci/devices/{pci}/driver_override && echo {pci} > /sys/bus/pci/drivers_probe"
    );
    vm.guest.stdout_of(&bind)?;
    Ok(pci)
}

/// A drive of QEMU's, with a serial number.
fn qemu_drive(kind: &str, serial: &str, image: &Path) -> Vec<String> {
    let bridge = bridge_of(serial);
    let file = format!("driver=file,filename={},locking=off", image.display());
    let node = match serial {
        SLOW => {
            format!("driver=throttle,node-name={serial},throttle-group={SLOW},{}", within("file.", &file))
        }
        _ => format!("driver=raw,node-name={serial},discard=unmap,{}", within("file.", &file)),
    };
    let device = match kind {
        "usb-storage" => {
            vec![format!("usb-storage,id={bridge},drive={serial},bus=xhci.0,serial={serial}")]
        }
        kind => vec![
            format!("{kind},id={bridge},bus=xhci.0,serial={serial}"),
            format!("scsi-hd,drive={serial},bus={bridge}.0"),
        ],
    };
    let devices = device.into_iter().flat_map(|device| ["-device".to_owned(), device]);
    ["-blockdev".to_owned(), node].into_iter().chain(devices).collect()
}

/// Properties of a node below another.
fn within(prefix: &str, properties: &str) -> String {
    properties.split(',').map(|property| format!("{prefix}{property}")).collect::<Vec<_>>().join(",")
}

/// Fills an image behind QEMU's back; each eight bytes follow from where they are.
fn fill(image: &Path) -> Result<Vec<u8>> {
    let words = (0..IMAGE_BYTES / 8).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    std::fs::write(image, &bytes).map_err(Error::io("fill an image"))?;
    Ok(bytes)
}

/// Returns the id of QEMU's device for a drive.
fn bridge_of(serial: &str) -> String {
    format!("{serial}-bridge")
}

impl Bench {
    /// Runs the trial program, which must find everything right, and returns what it printed.
    fn trial(&mut self, words: &str) -> Result<String> {
        let line = format!("controller {} {words}", self.pci);
        let output = self.vm.guest.run_within(LIMIT, &line)?;
        let text = format!("{line}\n{}{}", output.stdout, output.stderr);
        println!("{text}");
        if output.status == 0 {
            return Ok(text);
        }
        let evidence = format!("{text}\n{}", self.vm.guest.evidence());
        Err(Error::unexpected(line, evidence))
    }
}

#[track_caller]
fn has(text: &str, words: &str) {
    assert!(text.contains(words), "{words:?} is not in {text}");
}

#[test]
fn what_is_behind_the_ports_is_enumerated() -> Result<()> {
    let text = BENCH.lock()?.trial("list")?;
    for (_, serial) in QEMUS {
        has(&text, &format!(" {serial}: super speed"));
    }
    Ok(())
}

/// The transports that each drive is tried on.
const TRIALS: &[(&str, &[&str])] = &[
    ("storage", &["bot", "turbo"]),
    ("bot", &["bot"]),
    ("uas", &["uas"]),
    ("our-super", &["bot", "turbo", "uas"]),
    ("our-high", &["bot", "uas"]),
];

#[test]
fn each_transport_reads_what_it_wrote() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    for (serial, transports) in TRIALS {
        for transport in *transports {
            // Only UAS has more than one command in flight.
            let shapes: &[_] = &[(200, 4096, 30), (8, 512 << 10, 4), (200, 4096, 14)];
            let count = if *transport == "uas" { shapes.len() } else { 2 };
            for (pieces, bytes, depth) in &shapes[..count] {
                let text =
                    bench.trial(&format!("verify {serial} {transport} 2048 {pieces} {bytes} {depth}"))?;
                has(&text, &format!("verified={pieces} errors=0"));
                // Over BOT our drives stall Bulk-In behind data that are shorter than requested (BOT 1.0,
                // clause 6.7.2): six INQUIRY commands and a MODE SENSE(10) identify a disk.
                let is_stalled = serial.starts_with("our-") && *transport != "uas";
                is_clean_except(&text, if is_stalled { 7 } else { 0 });
                if *serial == "uas" {
                    has(&text, "uas: UAS with 16 streams");
                }
            }
        }
    }
    Ok(())
}

/// QEMU's controller has 256 stream contexts, of which the first is none: two streams less are commands at once.
#[test]
fn as_many_commands_are_in_flight_as_the_controller_has_streams() -> Result<()> {
    let text = BENCH.lock()?.trial("verify our-many uas 2048 1000 4096 253")?;
    has(&text, "UAS with 255 streams, depth 253");
    has(&text, "verified=1000 errors=0");
    is_clean(&text);
    Ok(())
}

#[test]
fn a_whole_disk_is_read_as_its_image_has_it() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    let bytes = fill(&bench.images.path("storage"))?;
    for (transport, piece, depth) in [("bot", 4096, 1), ("turbo", 4096, 14), ("bot", 1 << 20, 2)] {
        let text = bench.trial(&format!("dump storage {transport} {piece} {depth} /tmp/dump"))?;
        has(&text, "errors=0");
        is_clean(&text);
        assert!(bench.vm.guest.pull("/tmp/dump")? == bytes, "what was read is not what the image has");
    }
    Ok(())
}

/// Malformed wrappers, an unexpected status, and cancelled transfers behind it.
#[test]
fn a_stall_halts_the_endpoint_until_it_is_cleared() -> Result<()> {
    has(&BENCH.lock()?.trial("stall storage")?, "stalls=4");
    Ok(())
}

#[test]
fn transfers_that_wait_on_streams_are_cancelled() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    for serial in ["uas", "our-super"] {
        has(&bench.trial(&format!("cancel {serial}"))?, "cancels=56");
    }
    Ok(())
}

/// A ring of a stream has 127 places: any command past them is on the second lap. When an endpoint stops, QEMU's controller forgets on which lap its streams' rings are.
#[test]
fn transfers_cancelled_on_a_later_lap_of_the_rings_do_not_stop_the_others() -> Result<()> {
    has(&BENCH.lock()?.trial("cancel our-super 190")?, "cancels=56");
    Ok(())
}

/// On a drive that does forty commands a second, so that reads are in flight when their data transfers are cancelled.
#[test]
fn data_transfers_in_flight_are_cancelled_and_submitted_again() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    fill(&bench.images.path(SLOW))?;
    let text = bench.trial(&format!("cancel-data {SLOW}"))?;
    has(&text, "reads=56");
    Ok(())
}

/// QEMU's own UAS drive ends QEMU when a command is aborted whose data are waited for; so ours is asked.
#[test]
fn requests_that_are_given_up_leave_nothing_behind() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    for words in ["our-super uas 65536 14 8", "our-high uas 65536 14 8"] {
        let text = bench.trial(&format!("abort {words}"))?;
        has(&text, "errors=0");
        assert!(!text.contains("task_aborts: 0"), "nothing was aborted: {text}");
    }
    has(&bench.trial("abort our-super bot 65536 4 4")?, "errors=0");
    Ok(())
}

#[test]
fn a_reset_port_brings_the_device_back() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    for words in ["storage bot", "uas uas", "our-super uas", "our-high bot"] {
        has(&bench.trial(&format!("reset {words}"))?, "resets=3");
    }
    Ok(())
}

#[test]
fn manydrives_are_driven_at_once_from_one_thread() -> Result<()> {
    let disks = "storage:bot bot:bot uas:uas our-super:uas our-high:uas";
    let text = BENCH.lock()?.trial(&format!("together 2048 100 4096 14 {disks}"))?;
    has(&text, "verified=500 errors=0");
    is_clean(&text);
    Ok(())
}

#[test]
fn a_controller_that_was_given_up_is_taken_again() -> Result<()> {
    let text = BENCH.lock()?.trial("restart uas uas")?;
    assert_eq!(text.matches("verified=20 errors=0").count(), 2, "{text}");
    Ok(())
}

#[test]
fn a_drive_unplugged_in_mid_write_ends_everything_and_comes_back() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    for (serial, transport) in [("our-super", "uas"), ("storage", "bot"), ("our-high", "uas")] {
        let log = format!("/tmp/replug-{serial}");
        let line = format!("controller {} replug {serial} {transport} > {log} 2>&1", bench.pci);
        let job = bench.vm.guest.start(&line)?;
        let await_words = |vm: &mut Vm, words: &str| {
            // The failure has what it printed instead.
            let wait = format!(
                "for n in $(seq 400); do grep -q {words} {log} && break; sleep 0.1; done
                grep -q {words} {log} || {{ cat {log}; exit 1; }}; sleep 0.5"
            );
            vm.guest.stdout_within(PLUG_LIMIT, &wait)
        };
        await_words(&mut bench.vm, "^writing")?;
        let redirect = bench.drives.iter().map(Drive::plug).find(|redirect| redirect.id == serial);
        bench.vm.detach(&redirect.as_ref().map_or_else(|| bridge_of(serial), |found| found.id.clone()))?;
        await_words(&mut bench.vm, "^gone")?;
        match redirect {
            Some(redirect) => bench.vm.attach(&redirect)?,
            None => drop(bench.vm.qmp.execute("device_add", storage_again(serial))?),
        }
        let output = bench.vm.guest.finish(job, LIMIT)?;
        let text = bench.vm.guest.stdout_of(&format!("cat {log}"))?;
        println!("{text}");
        assert_eq!(output.status, 0, "{text}");
        has(&text, "gone=true");
        has(&text, "verified=100 errors=0");
    }
    Ok(())
}

/// The same drive, device and serial number, for `device_add`.
fn storage_again(serial: &str) -> Value {
    json!({ "driver": "usb-storage", "id": bridge_of(serial), "drive": serial, "bus": "xhci.0", "serial": serial })
}

/// The kernel reads back what it wrote, and we read what the kernel wrote.
#[test]
fn the_kernel_has_the_controller_before_and_after() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    let pci = bench.pci.clone();
    has(&bench.trial("verify storage bot 2048 64 4096 8")?, "verified=64 errors=0");
    let guest = &mut bench.vm.guest;
    let device = format!("/sys/bus/pci/devices/{pci}");
    let bind = |driver: &str| {
        format!(
            "echo {driver} > {device}/driver_override; echo {pci} > {device}/driver/unbind; \
             echo {pci} > /sys/bus/pci/drivers_probe"
        )
    };
    guest.stdout_of("modprobe -a sd_mod usb-storage uas xhci-pci")?;
    guest.stdout_of(&bind("xhci_hcd"))?;
    let path = guest.await_disk("storage", PLUG_LIMIT)?.path();
    let written =
        guest.stdout_of(&format!("dd if={path} bs=512 skip=2048 count=512 | od -An -v -tx8 -N 32"))?;
    // The first piece: its number, 0, and what follows from it.
    has(&written, "0000000000000000 14057b7ef767814f");
    let refused = guest.run(&format!("controller {pci} list"))?;
    has(&refused.stderr, &format!("{pci} is bound to driver `xhci_hcd`"));
    guest.stdout_of(&bind("vfio-pci"))?;
    has(&bench.trial("verify uas uas 2048 20 4096 8")?, "verified=20 errors=0");
    Ok(())
}

/// Nothing had to be borne: neither by the transport, nor by the driver, nor was an interrupt missed.
#[track_caller]
fn is_clean(text: &str) {
    is_clean_except(text, 0);
}

/// Like [`is_clean`], but each disk has stalled so many times.
#[track_caller]
fn is_clean_except(text: &str, stalls: u32) {
    let expected = format!("stalls: {stalls}");
    has(text, &expected);
    assert_eq!(text.matches("stalls: ").count(), text.matches(&format!("{expected},")).count(), "{text}");
    for counter in ["timeouts", "port_resets", "odd_statuses", "sent_again", "unsignalled"] {
        let none = format!("{counter}: 0");
        has(text, &none);
        assert_eq!(text.matches(counter).count(), text.matches(&none).count(), "{counter}: {text}");
    }
    for counter in ["stray_events", "late_events", "rings_full", "stop_races", "failed_endpoints"] {
        has(text, &format!("{counter}: 0"));
    }
}
