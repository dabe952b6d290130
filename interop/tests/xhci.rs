//! Our own driver of xHCI controllers on one that we have not written: QEMU's, given to a program of the guest by VFIO.
//!
//! Behind it are QEMU's drives and ours; between them and the trial program is no kernel driver.

use std::{path::Path, time::Duration};

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
    _drives: Vec<Drive>,
    images: Scratch,
}

/// Drives of QEMU's: device, serial number.
const QEMUS: &[(&str, &str)] =
    &[("usb-uas", "uas"), ("usb-storage", "storage"), ("usb-bot", "bot"), ("usb-storage", "dumped")];

/// Drives of ours: serial number, arguments of `uaskit serve`.
const OURS: &[(&str, &[&str])] = &[("our-super", &[]), ("our-high", &["--speed", "high"])];

/// For everything that a trial does.
const LIMIT: Duration = Duration::from_secs(60);

const IMAGE_BYTES: u64 = 32 << 20;

/// What the guest's kernel must not have: a driver of USB controllers.
const MODULES: &[&str] = &["virtio_pci", "virtio_console", "vfio_iommu_type1", "vfio-pci"];

static BENCH: Shared<Bench> = Shared::new(|| {
    let images = Scratch::new()?;
    let mut machine = Machine::new("xhci").modules(MODULES).iommu();
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
    Ok(Bench { vm, pci, _drives: drives, images })
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
    let file = format!("file.driver=file,file.filename={},file.locking=off", image.display());
    let node = format!("driver=raw,node-name={serial},discard=unmap,{file}");
    let device = match kind {
        "usb-storage" => {
            vec![format!("usb-storage,id={serial}-bridge,drive={serial},bus=xhci.0,serial={serial}")]
        }
        bridge => vec![
            format!("{bridge},id={serial}-bridge,bus=xhci.0,serial={serial}"),
            format!("scsi-hd,drive={serial},bus={serial}-bridge.0"),
        ],
    };
    let devices = device.into_iter().flat_map(|device| ["-device".to_owned(), device]);
    ["-blockdev".to_owned(), node].into_iter().chain(devices).collect()
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
            for (pieces, bytes, depth) in [(200, 4096, 14), (200, 4096, 30), (16, 512 << 10, 4)] {
                let text =
                    bench.trial(&format!("verify {serial} {transport} 2048 {pieces} {bytes} {depth}"))?;
                has(&text, &format!("verified={pieces} errors=0"));
                is_clean(&text);
            }
        }
    }
    Ok(())
}

#[test]
fn a_whole_disk_is_read_as_its_image_has_it() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    let image = bench.images.path("dumped");
    let bytes: Vec<u8> =
        (0..IMAGE_BYTES / 8).flat_map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()).collect();
    std::fs::write(&image, &bytes).map_err(Error::io("fill an image"))?;
    for (transport, piece, depth) in [("bot", 4096, 1), ("turbo", 4096, 14), ("bot", 1 << 20, 2)] {
        let text = bench.trial(&format!("dump dumped {transport} {piece} {depth} /tmp/dump"))?;
        has(&text, "errors=0");
        is_clean(&text);
        assert!(bench.vm.guest.pull("/tmp/dump")? == bytes, "what was read is not what the image has");
    }
    Ok(())
}

#[test]
fn stalls() -> Result<()> {
    let text = BENCH.lock()?.trial("stall storage")?;
    has(&text, "stalls=4");
    Ok(())
}

#[test]
fn cancels() -> Result<()> {
    let text = BENCH.lock()?.trial("cancel uas")?;
    has(&text, "cancels=56");
    let text = BENCH.lock()?.trial("cancel our-super")?;
    has(&text, "cancels=56");
    Ok(())
}

#[test]
fn resets() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    for words in ["storage bot", "uas uas", "our-super uas", "our-high bot"] {
        has(&bench.trial(&format!("reset {words}"))?, "resets=3");
    }
    Ok(())
}

#[test]
fn all_at_once() -> Result<()> {
    let disks = "storage:bot bot:bot uas:uas our-super:uas our-high:uas";
    let text = BENCH.lock()?.trial(&format!("together 2048 100 4096 14 {disks}"))?;
    has(&text, "verified=500 errors=0");
    is_clean(&text);
    Ok(())
}

#[test]
fn restarts() -> Result<()> {
    let text = BENCH.lock()?.trial("restart uas uas")?;
    assert_eq!(text.matches("verified=20 errors=0").count(), 2, "{text}");
    Ok(())
}

/// Nothing had to be borne: neither by the transport, nor by the driver, nor was an interrupt missed.
#[track_caller]
fn is_clean(text: &str) {
    for trouble in ["stalls", "timeouts", "port_resets", "odd_statuses", "sent_again", "unsignalled"] {
        let none = format!("{trouble}: 0");
        assert_eq!(text.matches(trouble).count(), text.matches(&none).count(), "{trouble}: {text}");
    }
    for trouble in ["stray_events", "late_events", "rings_full", "stop_races", "failed_endpoints"] {
        has(text, &format!("{trouble}: 0"));
    }
}
