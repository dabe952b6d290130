//! Output of the usual tools about the drive: each asks in its own way, and each answer must make
//! sense.

use std::time::Duration;

use uaskit_interop::{
    Result, Shared,
    drive::Drive,
    guest::{Disk, Output},
    qemu::{Machine, Vm},
    scratch::Scratch,
};

/// One drive over UAS, used by one test after the other.
struct Bench {
    vm: Vm,
    disk: Disk,
    _drive: Drive,
    _images: Scratch,
}

const PLUG_LIMIT: Duration = Duration::from_secs(60);

static BENCH: Shared<Bench> = Shared::new(|| {
    let images = Scratch::new()?;
    let image = images.image("disk", 64 << 20)?.display().to_string();
    let identity = ["--vendor", "ACME", "--product", "Disk", "--temperature", "38"];
    let drive = Drive::serve("inspected", &[&[&*image], &identity[..]].concat())?;
    let mut vm = Machine::new("inspect").redirect(&drive.plug()).boot()?;
    let disk = vm.guest.await_disk("inspected", PLUG_LIMIT)?;
    Ok(Bench { vm, disk, _drive: drive, _images: images })
});

impl Bench {
    /// Runs a command with the disk's generic device as its last word.
    fn run(&mut self, command: &str) -> Result<Output> {
        let output = self.vm.guest.run(&format!("{command} {}", self.disk.generic_path()))?;
        println!("$ {command}\n{}{}", output.stdout, output.stderr);
        Ok(output)
    }

    /// Runs a command that must succeed, and finds each of `lines` in what it prints: words, however far apart.
    fn prints(&mut self, command: &str, lines: &[&str]) -> Result<()> {
        let Output { status, stdout, stderr } = self.run(command)?;
        assert_eq!(status, 0, "{command}");
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let printed: Vec<String> = stdout.lines().map(words).collect();
        for line in lines {
            assert!(
                printed.iter().any(|printed| printed.contains(line)),
                "{line:?} after {command}\n{stderr}"
            );
        }
        Ok(())
    }
}

#[test]
fn sg_inq_reads_who_it_is() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    bench.prints(
        "sg_inq",
        &[
            "Vendor identification: ACME",
            "Product identification: Disk",
            "Unit serial number: inspected",
            "Peripheral device type: disk",
            "CmdQue=1",
            "[SPC-4]",
            "NormACA=1",
        ],
    )
}

#[test]
fn sg_vpd_decodes_every_page() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    bench.prints(
        "sg_vpd -a",
        &[
            "Supported VPD pages VPD page:",
            "Unit serial number VPD page:",
            "Unit serial number: inspected",
            "Device Identification VPD page:",
            "designator type: NAA, code set: Binary",
            "extended INQUIRY data VPD page:",
            "ATA information VPD page",
            "Block limits VPD page (SBC)",
            "Block device characteristics VPD page (SBC)",
            "Non-rotating medium (e.g. solid state)",
            "Logical block provisioning VPD page (SBC)",
            "Unmap command supported (LBPU): 1",
        ],
    )
}

#[test]
fn sg_opcodes_lists_the_commands_with_their_timeouts() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    bench.prints(
        "sg_opcodes",
        &["Read(10)", "Write(16)", "Unmap", "Compare and write", "ATA pass-through(16)"],
    )?;
    bench.prints("sg_opcodes --rctd", &["Report supported operation codes"])?;
    bench.prints(
        "sg_opcodes --opcode=0x28",
        &["Command_name: Read(10)", "Command is supported", "Usage data: 28"],
    )?;
    bench.prints("sg_opcodes --tmf", &["Abort task", "Logical unit reset", "I_T nexus reset"])
}

#[test]
fn sg_readcap_reads_both_forms_of_the_capacity() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    let blocks = "Last LBA=131071 (0x1ffff), Number of logical blocks=131072";
    bench.prints("sg_readcap", &["Number of logical blocks=131072", "Logical block length=512 bytes"])?;
    bench.prints("sg_readcap --long", &[blocks, "Logical block length=512 bytes", "lbpme=1"])
}

#[test]
fn sg_persist_registers_reserves_and_releases() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    bench.prints(
        "sg_persist --in --report-capabilities",
        &["Persist Through Power Loss Capable(PTPL_C): 1", "Write Exclusive: 1"],
    )?;
    bench.prints("sg_persist --in --read-keys", &["there are NO registered reservation keys"])?;
    bench.prints("sg_persist --out --register --param-sark=abc123", &[])?;
    bench.prints("sg_persist --in --read-keys", &["1 registered reservation key follows:", "0xabc123"])?;
    bench.prints("sg_persist --out --reserve --param-rk=abc123 --prout-type=3", &[])?;
    bench.prints("sg_persist --in --read-reservation", &["Key=0xabc123", "type: Exclusive Access"])?;
    bench.prints("sg_persist --in --read-full-status", &["Key=0xabc123", "<< Reservation holder >>"])?;
    bench.prints("sg_persist --out --release --param-rk=abc123 --prout-type=3", &[])?;
    bench.prints("sg_persist --out --clear --param-rk=abc123", &[])?;
    bench.prints("sg_persist --in --read-keys", &["there are NO registered reservation keys"])
}

#[test]
fn sg_unmap_takes_blocks_away_and_leaves_zeroes() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    bench.prints("sg_write_same --in=/dev/urandom --lba=2048 --num=64 --xferlen=512", &[])?;
    bench.prints("sg_get_lba_status --lba=2048", &["mapped"])?;
    bench.prints("sg_unmap --lba=2048 --num=64", &[])?;
    bench.prints("sg_get_lba_status --lba=2048", &["deallocated"])?;
    let read = "sg_dd if=$(echo /dev/sg?) skip=2048 count=64 of=- 2>/dev/null | tr -d '\\0' | wc -c; true";
    assert_eq!(bench.run(read)?.stdout.trim(), "0");
    Ok(())
}

#[test]
fn sg_reset_resets_the_device_and_it_goes_on() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    bench.prints("sg_reset --device", &[])?;
    assert!(bench.run("sg_turs")?.stderr.contains("SCSI bus reset occurred"));
    bench.prints("sg_turs", &[])
}

#[test]
fn sg_modes_reads_every_page_of_parameters() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    bench.prints(
        "sg_modes",
        &["Read-Write error recovery", "Caching", "Control", "Informational exceptions"],
    )?;
    bench.prints("sg_wr_mode --page=8", &[])
}

#[test]
fn sg_logs_reads_every_log() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    bench.prints(
        "sg_logs -a",
        &[
            "Supported log pages",
            "Temperature page",
            "Current temperature = 38 C",
            "Informational Exceptions page",
        ],
    )
}

#[test]
fn sg_luns_finds_one_unit() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    bench.prints("sg_luns", &["Lun list length = 8 which imples 1 lun entry", "0000000000000000"])
}

#[test]
fn sg_senddiag_runs_the_self_test() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    bench.prints("sg_senddiag --test", &[])
}

#[test]
fn sg_sanitize_and_format_leave_the_drive_ready() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    bench.prints("sg_sanitize --overwrite --zero --quick --wait", &[])?;
    bench.prints("sg_format --format --quick --wait", &[])?;
    bench.prints("sg_turs", &[])
}

#[test]
fn smartctl_reads_health_and_attributes() -> Result<()> {
    let bench = &mut *BENCH.lock()?;
    bench.prints(
        "smartctl -a -d sat",
        &[
            "Device Model: ",
            "Serial Number: inspected",
            "SMART support is: Available - device has SMART capability.",
            "SMART support is: Enabled",
            "SMART overall-health self-assessment test result: PASSED",
            "Reallocated_Sector_Ct",
            "194 Temperature_Celsius 0x0002 062 062 000 Old_age Always - 38",
            "Total_LBAs_Written",
            "No Errors Logged",
        ],
    )
}

#[test]
fn hdparm_identifies_the_drive() -> Result<()> {
    let Bench { vm, disk, .. } = &mut *BENCH.lock()?;
    let printed = vm.guest.stdout_of(&format!("hdparm -I {}", disk.path()))?;
    for words in [
        "Serial Number:      inspected",
        "Solid State Device",
        "LBA48  user addressable sectors:      131072",
    ] {
        assert!(printed.contains(words), "{words:?} in\n{printed}");
    }
    Ok(())
}
