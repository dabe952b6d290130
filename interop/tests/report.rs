//! Reports in a real browser: nothing is fetched, charts answer, dark and small screens and print are served, and axe-core finds nothing serious.

use std::path::PathBuf;
use std::process::Command;

use uaskit_interop::{Error, Result, drive, scratch::Scratch, tools::browser};

/// Bytes of a page, at most.
const PAGE_BYTES_MAX: u64 = 1_500_000;

/// Makes a page by a command of the program; its exit status is its own.
fn page(scratch: &Scratch, name: &str, arguments: &[&str]) -> Result<PathBuf> {
    let path = scratch.path(&format!("{name}.html"));
    let mut command = Command::new(drive::binary()?);
    let output =
        command.args(arguments).arg("--report").arg(&path).output().map_err(Error::io("start uaskit"))?;
    if !path.exists() {
        return Err(Error::unexpected(
            format!("uaskit {arguments:?}"),
            String::from_utf8_lossy(&output.stderr),
        ));
    }
    let bytes = std::fs::metadata(&path).map_err(Error::io("measure a page"))?.len();
    assert!(bytes <= PAGE_BYTES_MAX, "{name}: {bytes} bytes");
    Ok(path)
}

/// Runs `uaskit`, which saves the run.
fn save_run(arguments: &[&str]) -> Result<()> {
    let output =
        Command::new(drive::binary()?).args(arguments).output().map_err(Error::io("start uaskit"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "uaskit {arguments:?}: {stderr}");
    Ok(())
}

/// Fails with what does not hold.
fn holds(pages: &[PathBuf]) -> Result<()> {
    let seen = browser::look_at(pages)?;
    println!("{}", seen.measured);
    assert!(seen.wrong.is_empty(), "{}", seen.wrong);
    Ok(())
}

#[test]
fn a_comparison_is_a_page() -> Result<()> {
    let scratch = Scratch::new()?;
    let flash = page(&scratch, "compare", &["compare", "--depth", "1,4,16"])?;
    let disk = page(
        &scratch,
        "platter",
        &["compare", "--drive", "disk-7200", "--depth", "1,4", "--commands", "200"],
    )?;
    holds(&[flash, disk])
}

#[test]
fn a_benchmark_is_a_page() -> Result<()> {
    let scratch = Scratch::new()?;
    let arguments = [
        "bench",
        "--virtual",
        "--transport",
        "all",
        "--rw",
        "randread",
        "--depth",
        "1,8",
        "--seconds",
        "0.1",
    ];
    let page = page(&scratch, "bench", &[arguments.as_slice(), &["--rounds", "3", "--quiet"]].concat())?;
    holds(&[page])
}

#[test]
fn runs_that_were_kept_are_pages() -> Result<()> {
    let scratch = Scratch::new()?;
    let file = scratch.path("runs.sqlite").display().to_string();
    let save = format!("--save={file}");
    for label in ["before", "after", "<third>"] {
        let run = ["bench", "--virtual", "--transport", "all", "--rw", "randread", "--depth", "1,8"];
        let terms = ["--seconds", "0.1", "--rounds", "3", "--quiet", &save, "--label", label];
        save_run(&[&run[..], &terms].concat())?;
    }
    save_run(&["compare", "--transport", "bot,uasp", "--block", "4K", "--depth", "1,8", &save])?;
    let diff = page(&scratch, "diff", &["diff", "before", "after", "--file", &file])?;
    let history = page(&scratch, "history", &["history", "--file", &file])?;
    holds(&[diff, history])
}

#[test]
fn a_validation_is_a_page() -> Result<()> {
    let scratch = Scratch::new()?;
    holds(&[page(&scratch, "validate", &["validate", "--only", "myce"])?])
}

/// The time of a frame is printed; only a second fails the test.
#[test]
fn a_hundred_thousand_commands_are_panned_and_zoomed() -> Result<()> {
    let scratch = Scratch::new()?;
    let many = page(&scratch, "many", &["compare", "--depth", "32", "--commands", "100000"])?;
    let html = std::fs::read_to_string(&many).map_err(Error::io("read a page"))?;
    assert!(!html.contains("commands are shown"), "some are left out");
    assert!(html.contains("Times are in steps of 0.01 µs"), "times are coarse");
    holds(&[many])
}

/// A page with a figure of every kind, whose numbers are invented.
#[test]
fn every_kind_of_figure_is_on_a_page() -> Result<()> {
    let scratch = Scratch::new()?;
    let path = scratch.path("every.html");
    let output = Command::new(drive::example_of("uaskit-report", "page")?).output();
    let output = output.map_err(Error::io("start the example"))?;
    std::fs::write(&path, output.stdout).map_err(Error::io("write a page"))?;
    holds(&[path])
}
