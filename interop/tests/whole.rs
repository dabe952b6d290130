//! `uaskit check --whole` in a guest: as fast as the drive, in little memory, and continued after Ctrl-C.

use std::time::{Duration, Instant};

use serde_json::Value;
use uaskit_interop::{
    Result, Shared, drive,
    drive::Drive,
    guest::{Guest, Output},
    qemu::{Machine, Vm},
};

const PLUG_LIMIT: Duration = Duration::from_secs(60);
const RUN_LIMIT: Duration = Duration::from_secs(240);

/// The serial number of the drive.
const SERIAL: &str = "whole";

struct Bench {
    vm: Vm,
    _drive: Drive,
}

static BENCH: Shared<Bench> = Shared::new(|| {
    let drive = Drive::serve(SERIAL, &["--ram", "32M", "--lie", "drop=24M"])?;
    let machine = Machine::new("whole").kernel_words("usb_storage.delay_use=0").redirect(&drive.plug());
    let mut vm = machine.boot()?;
    vm.guest.install(&drive::binary()?)?;
    Ok(Bench { vm, _drive: drive })
});

fn checked(guest: &mut Guest, port: &str, words: &str) -> Result<Output> {
    let line = format!("uaskit check {port} --whole={port} --yes --json {words}");
    guest.run_within(RUN_LIMIT, &line)
}

/// The test of all blocks in the output.
fn pass_of(output: &Output) -> Value {
    let document: Value = serde_json::from_str(&output.stdout).expect("JSON");
    let tests = document["tests"].as_array().expect("tests");
    tests.iter().find(|test| test["id"] == "whole-blocks").expect("it was run").clone()
}

#[test]
fn a_pass_over_all_blocks_is_continued_after_an_interruption() -> Result<()> {
    let guest = &mut BENCH.lock()?.vm.guest;
    let port = guest.await_disk(SERIAL, PLUG_LIMIT)?.port;
    let begun = Instant::now();
    let expected = pass_of(&checked(guest, &port, "--only whole-blocks")?);
    assert_eq!(expected["verdict"], "fail");
    // It depends on machine and build how long a pass takes.
    let mut limit = begun.elapsed().as_secs_f64() / 2.0;
    let words = "--only whole-blocks --resume /tmp/run";
    let mut times = 0;
    let last = loop {
        let interrupted = guest.run_within(
            RUN_LIMIT,
            &format!("timeout -s INT {limit:.2} uaskit check {port} --whole={port} --yes --json {words}"),
        )?;
        if guest.run("test -e /tmp/run")?.status != 0 {
            if times > 0 || limit < 0.1 {
                break interrupted;
            }
            println!("not interrupted after {limit:.2} s");
            limit *= 0.7;
            continue;
        }
        assert!(interrupted.stderr.contains("give the same command again"), "{}", interrupted.stderr);
        let run = guest.stdout_of("cat /tmp/run")?;
        let run: Value = serde_json::from_str(&run).expect("JSON");
        println!("written {}, read {}", run["written"], run["read"]);
        times += 1;
        if times == 3 {
            break checked(guest, &port, words)?;
        }
    };
    assert!(times > 0, "it was interrupted");
    assert_eq!(pass_of(&last)["found"], expected["found"]);
    assert_ne!(guest.run("test -e /tmp/run")?.status, 0, "a run that is complete is removed");
    let wrong = "echo '{\"check_run\": 9}' > /tmp/wrong; uaskit check 1-1 --whole=1-1 --resume /tmp/wrong";
    let refused = guest.run(wrong)?;
    assert!(refused.stderr.contains("version 9 is not supported"), "{}", refused.stderr);
    let refused = guest.run("echo hello > /tmp/text; uaskit check 1-1 --whole=1-1 --resume /tmp/text")?;
    assert_eq!(refused.status, 3, "{}", refused.stderr);
    Ok(())
}

#[test]
fn a_pass_over_all_blocks_takes_little_memory() -> Result<()> {
    const MEMORY_KIB_MAX: u64 = 64 << 10;
    let guest = &mut BENCH.lock()?.vm.guest;
    let port = guest.await_disk(SERIAL, PLUG_LIMIT)?.port;
    let script = format!(
        "uaskit check {port} --whole={port} --yes --only whole-blocks > /dev/null 2>&1 & pid=$!
         most=0; while now=$(grep VmHWM /proc/$pid/status) && test -n \"$now\"; do most=$now; sleep 0.1; done; echo $most"
    );
    let printed = guest.stdout_within(RUN_LIMIT, &script)?;
    let most = printed.split_whitespace().nth(1).and_then(|number| number.parse().ok());
    let most: u64 = most.unwrap_or_else(|| panic!("no number in {printed}"));
    println!("{most} KiB");
    assert!((1..=MEMORY_KIB_MAX).contains(&most), "{most} KiB");
    Ok(())
}
