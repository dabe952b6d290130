//! A real browser, to look at what is made for browsers: Debian's Chromium, driven by Playwright's library, with axe-core for what it knows of
//! accessibility.
//!
//! Both libraries come from npm, in the versions of `interop/browser/package-lock.json`, into `target/browser`; no browser is
//! downloaded. What is looked for is in `interop/browser/report.mjs`, which says each thing that does not hold in a line.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Error, Result, child, debian, scratch, supervised::End};

/// Findings of a browser on pages, one a line. Pictures of them are left in
/// `target/browser/pictures`.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Checks that fail.
    pub wrong: String,
    /// Measurements, such as how long a frame takes.
    pub measured: String,
}

/// Takes a picture of the top of a page, in a window of so many pixels across and down.
pub fn photograph(page: &Path, window: [u32; 2], picture: &Path) -> Result<()> {
    let mut command = Command::new(chromium()?);
    // Chromium's sandbox does not work for root, who is who runs this in a container.
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]);
    command.arg(format!("--window-size={},{}", window[0], window[1]));
    command.arg(format!("--screenshot={}", picture.display())).arg(format!("file://{}", page.display()));
    child::output_of(&mut command).map(drop)
}

fn chromium() -> Result<PathBuf> {
    debian::find("chromium").ok_or_else(|| Error::unexpected("look for chromium", "it is not there"))
}

/// Looks at pages.
pub fn look_at(pages: &[PathBuf]) -> Result<Seen> {
    let directory = ready()?;
    let pictures = directory.join("pictures");
    scratch::create(&pictures)?;
    let chromium = chromium()?;
    let mut command = Command::new("node");
    command.current_dir(&directory).arg("report.mjs").arg(chromium).arg(&pictures).args(pages);
    let report = child::report_of(&mut command)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (wrong, measured) = (text(&report.stdout), text(&report.stderr));
    if let End::Killed { .. } = report.end {
        return Err(Error::unexpected("look at pages in Chromium", report.end.to_string()));
    }
    if !report.end.is_success() && wrong.is_empty() {
        return Err(Error::unexpected("look at pages in Chromium", measured));
    }
    Ok(Seen { wrong, measured })
}

/// The folder of the scripts, with the libraries in it. The first caller installs them, the others wait.
fn ready() -> Result<PathBuf> {
    let (source, directory) =
        (scratch::workspace().join("interop/browser"), scratch::target().join("browser"));
    scratch::create(&directory)?;
    let _lock = scratch::lock(&directory)?;
    // npm writes it when all else is there.
    let installed = directory.join("node_modules/.package-lock.json");
    for name in ["package.json", "package-lock.json", "report.mjs"] {
        // What is the same is let be: another test's node may be reading it.
        let [wanted, there] = [&source, &directory].map(|folder| std::fs::read(folder.join(name)).ok());
        if wanted.is_none() || wanted != there {
            if name == "package-lock.json" {
                drop(std::fs::remove_file(&installed));
            }
            let copied = std::fs::copy(source.join(name), directory.join(name));
            copied.map_err(Error::io(format!("copy {name}")))?;
        }
    }
    if !installed.exists() {
        let mut command = Command::new("npm");
        command.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(&directory);
        child::output_of(&mut command)?;
    }
    Ok(directory)
}
